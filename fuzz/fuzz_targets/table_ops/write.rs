//! Writes: drawn, said as requests, and carried out by the model.

use crate::draw::{self, Bytes};
use crate::model::{Change, Condition, Item, V, fits_index, item_json, updated};
use crate::say::Saying;
use arbitrary::Result;
use serde_json::{Value, json};

#[derive(Debug)]
pub enum Action {
    Put(Item),
    Update(Item, Vec<Change>),
    Delete(Item),
    Check(Item),
}

/// A write, alone or in a transaction.
#[derive(Debug)]
pub struct Write {
    pub action: Action,
    condition: Option<Condition>,
    returns: &'static str,
    old_on_failure: bool,
}

/// Why a write is not done.
#[derive(Debug, PartialEq)]
pub enum Why {
    ConditionFailed(Option<Value>),
    Refused,
}

/// Partition and sort key of an item or a key.
pub fn place(item: &Item) -> (String, i128) {
    match (&item["p"], &item["q"]) {
        (V::S(partition), V::N(sort)) => (partition.clone(), *sort),
        other => panic!("{other:?} is no key"),
    }
}

impl Write {
    pub fn draw(u: Bytes<'_, '_>, in_transaction: bool) -> Result<Self> {
        let key = draw::key(u)?;
        let action = match u.int_in_range(0..=if in_transaction { 6 } else { 5 })? {
            0 | 1 => {
                let mut item = draw::attributes(u)?;
                item.extend(key);
                Action::Put(item)
            }
            2..=4 => Action::Update(key, draw::changes(u)?),
            5 => Action::Delete(key),
            _ => Action::Check(key),
        };
        let needed = matches!(action, Action::Check(_));
        let condition =
            if needed || u.arbitrary()? { Some(draw::condition(u, &draw::ALL, 0)?) } else { None };
        let choices: &[&str] = match &action {
            Action::Update(_, changes) if draw::only_whole(changes) => {
                &["NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"]
            }
            Action::Update(..) => &["NONE", "ALL_OLD", "ALL_NEW"],
            _ => &["NONE", "ALL_OLD"],
        };
        Ok(Self { action, condition, returns: u.choose(choices)?, old_on_failure: u.arbitrary()? })
    }

    pub fn place(&self) -> (String, i128) {
        match &self.action {
            Action::Put(item) | Action::Update(item, _) | Action::Delete(item) | Action::Check(item) => {
                place(item)
            }
        }
    }

    /// As requests of transactions name the action.
    pub fn name(&self) -> &'static str {
        match self.action {
            Action::Put(_) => "Put",
            Action::Update(..) => "Update",
            Action::Delete(_) => "Delete",
            Action::Check(_) => "ConditionCheck",
        }
    }

    /// The item after the write, by the model.
    pub fn carried_out(&self, old: Option<&Item>) -> std::result::Result<Option<Item>, Why> {
        if matches!(&self.action, Action::Put(item) if !fits_index(item)) {
            return Err(Why::Refused);
        }
        if let Some(condition) = &self.condition
            && !condition.holds(old.unwrap_or(&Item::new()))
        {
            let shown = old.filter(|_| self.old_on_failure).map(|item| sorted(item_json(item, 0)));
            return Err(Why::ConditionFailed(shown));
        }
        match &self.action {
            Action::Put(item) => Ok(Some(item.clone())),
            Action::Delete(_) => Ok(None),
            Action::Check(_) => Ok(old.cloned()),
            // An update that only takes away makes no item.
            Action::Update(_, changes) if old.is_none() && draw::only_takes(changes) => Ok(None),
            Action::Update(key, changes) => match updated(old.unwrap_or(key), changes) {
                Ok(new) if fits_index(&new) => Ok(Some(new)),
                _ => Err(Why::Refused),
            },
        }
    }

    /// The request. Numbers in the request have one of several spellings.
    pub fn body(&self, u: Bytes<'_, '_>, alone: bool) -> Result<Value> {
        let spelling = u.int_in_range(0..=3)?;
        let mut saying = Saying::new(spelling);
        let mut body = json!({ "TableName": "table" });
        match &self.action {
            Action::Put(item) => body["Item"] = item_json(item, spelling),
            Action::Update(key, _) | Action::Delete(key) | Action::Check(key) => {
                body["Key"] = item_json(key, spelling)
            }
        }
        if let Some(condition) = &self.condition {
            body["ConditionExpression"] = json!(saying.condition(condition));
        }
        if let Action::Update(_, changes) = &self.action
            && let Some(text) = saying.update(changes)
        {
            body["UpdateExpression"] = json!(text);
        }
        if alone {
            body["ReturnValues"] = json!(self.returns);
        }
        if self.old_on_failure {
            body["ReturnValuesOnConditionCheckFailure"] = json!("ALL_OLD");
        }
        saying.finish(&mut body);
        Ok(body)
    }

    /// The answer's content of the item before and after.
    pub fn returned(&self, old: Option<&Item>, new: Option<&Item>) -> Option<Value> {
        let touched = |item: &Item| -> Item {
            let Action::Update(_, changes) = &self.action else {
                return Item::new();
            };
            let heads = draw::heads(changes);
            item.iter()
                .filter(|(name, _)| heads.contains(*name))
                .map(|(n, v)| (n.clone(), v.clone()))
                .collect()
        };
        let item = match self.returns {
            "ALL_OLD" => old.cloned(),
            "ALL_NEW" => new.cloned(),
            "UPDATED_OLD" => old.map(touched).filter(|item| !item.is_empty()),
            "UPDATED_NEW" => new.map(touched).filter(|item| !item.is_empty()),
            _ => None,
        };
        item.map(|item| sorted(item_json(&item, 0)))
    }
}

/// An answer with its sets in one order: the service's order has no meaning.
pub fn sorted(mut value: Value) -> Value {
    match &mut value {
        Value::Object(map) => {
            for (name, inner) in map.iter_mut() {
                *inner = sorted(inner.take());
                if let (true, Value::Array(list)) = (matches!(name.as_str(), "SS" | "NS"), inner) {
                    list.sort_by_key(ToString::to_string);
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|inner| *inner = sorted(inner.take())),
        _ => {}
    }
    value
}
