//! Carrying writes out on an item in memory, as DynamoDB would.

use super::number::{add_numbers, same_number};
use super::{Action, AttributeName, AttributeValue, Condition, Item, ItemWrite, Update};
use std::fmt;

/// Why a write was not carried out. The item is as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// The condition does not hold.
    ConditionFailed,
    /// The write makes no sense for this item: the write adds to a value that is no whole number.
    Invalid {
        /// The attribute.
        attribute: AttributeName,
        /// The DynamoDB type of the present value.
        found: &'static str,
    },
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ConditionFailed => f.write_str("the condition does not hold"),
            Self::Invalid { attribute, found } => {
                write!(f, "expected {attribute} to be a whole number to add to, found type {found}")
            }
        }
    }
}

impl std::error::Error for WriteError {}

/// Whether a condition holds of an item, or of its absence.
pub fn holds(condition: &Condition, item: Option<&Item>) -> bool {
    let value = |name: &AttributeName| item.and_then(|item| item.get(name));
    match condition {
        Condition::Exists(name) => value(name).is_some(),
        Condition::NotExists(name) => value(name).is_none(),
        Condition::NoString(name) => value(name).and_then(AttributeValue::as_s).is_none(),
        Condition::Equals(name, expected) => value(name).is_some_and(|found| same(found, expected)),
        Condition::All(conditions) => conditions.iter().all(|condition| holds(condition, item)),
        Condition::Any(conditions) => conditions.iter().any(|condition| holds(condition, item)),
    }
}

fn same(a: &AttributeValue, b: &AttributeValue) -> bool {
    match (a, b) {
        (AttributeValue::N(a), AttributeValue::N(b)) => same_number(a, b),
        _ => a == b,
    }
}

impl ItemWrite {
    /// Checks the condition and changes the item, or leaves the item as it is.
    pub fn carry_out(&self, item: &mut Option<Item>) -> Result<(), WriteError> {
        if !holds(&self.condition, item.as_ref()) {
            return Err(WriteError::ConditionFailed);
        }
        match &self.action {
            Action::Put(new) => *item = Some(new.clone()),
            Action::Delete => *item = None,
            Action::Update(update) => match item {
                Some(item) => update.carry_out(item)?,
                None => {
                    let mut new = self.key.clone();
                    update.carry_out(&mut new)?;
                    *item = Some(new);
                }
            },
        }
        Ok(())
    }
}

impl Update {
    /// Changes the item, or does nothing.
    pub fn carry_out(&self, item: &mut Item) -> Result<(), WriteError> {
        // All sums first: a write takes place wholly or not at all, and sees only the item as it was.
        let mut sums = Vec::with_capacity(self.add.len());
        for (name, number) in &self.add {
            let sum = match item.get(name) {
                None => Some(number.to_string()),
                Some(AttributeValue::N(text)) => add_numbers(text, *number),
                Some(_) => None,
            };
            sums.push(sum.ok_or_else(|| WriteError::Invalid {
                attribute: name.clone(),
                found: item.get(name).map_or("N", AttributeValue::type_name),
            })?);
        }
        for ((name, _), sum) in self.add.iter().zip(sums) {
            item.insert(name.clone(), AttributeValue::n(sum));
        }
        for (name, value) in &self.set {
            item.insert(name.clone(), value.clone());
        }
        for name in &self.remove {
            item.remove(name);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(attributes: &[(&'static str, AttributeValue)]) -> Item {
        attributes.iter().map(|(name, value)| ((*name).into(), value.clone())).collect()
    }

    #[test]
    fn conditions_see_type_and_value_and_absence() {
        let some = item(&[
            ("n", AttributeValue::n(1)),
            ("s", AttributeValue::s("1")),
            ("null", AttributeValue::Null),
        ]);
        let equals = |name: &'static str, value| Condition::Equals(name.into(), value);
        for (condition, of_item, of_none) in [
            (Condition::Exists("n".into()), true, false),
            (Condition::Exists("null".into()), true, false),
            (Condition::Exists("x".into()), false, false),
            (Condition::NotExists("x".into()), true, true),
            (Condition::NotExists("n".into()), false, true),
            (Condition::NoString("x".into()), true, true),
            (Condition::NoString("null".into()), true, true),
            (Condition::NoString("n".into()), true, true),
            (Condition::NoString("s".into()), false, true),
            (equals("n", AttributeValue::s("1")), false, false),
            (equals("n", AttributeValue::N("1.0".into())), true, false),
            (equals("s", AttributeValue::s("1")), true, false),
            (equals("x", AttributeValue::Null), false, false),
            (
                Condition::All(vec![Condition::Exists("n".into()), Condition::NotExists("s".into())]),
                false,
                false,
            ),
        ] {
            assert_eq!(holds(&condition, Some(&some)), of_item, "{condition:?}");
            assert_eq!(holds(&condition, None), of_none, "{condition:?}");
        }
    }

    #[test]
    fn updates_create_count_and_leave_the_rest() {
        let update =
            Update::default().set("s", AttributeValue::s("new")).add("n", 2).remove("r").remove("absent");
        let write = ItemWrite {
            key: item(&[("k", AttributeValue::s("key"))]),
            condition: Condition::NotExists("stop".into()),
            action: Action::Update(update),
        };
        let mut table = None;
        write.carry_out(&mut table).unwrap();
        let fresh = item(&[
            ("k", AttributeValue::s("key")),
            ("n", AttributeValue::n(2)),
            ("s", AttributeValue::s("new")),
        ]);
        assert_eq!(table, Some(fresh.clone()));
        let rest = [("r", AttributeValue::Bool(true)), ("other", AttributeValue::Null)];
        table.as_mut().unwrap().extend(item(&rest));
        write.carry_out(&mut table).unwrap();
        let mut expected = fresh;
        expected.extend(item(&[("n", AttributeValue::n(4)), ("other", AttributeValue::Null)]));
        assert_eq!(table, Some(expected));
    }

    #[test]
    fn a_refused_write_changes_nothing() {
        let update = Update::default().set("s", AttributeValue::s("new")).add("a", 1).add("n", 1);
        let before = item(&[("n", AttributeValue::s("one"))]);
        let mut after = before.clone();
        assert_eq!(
            update.carry_out(&mut after).unwrap_err().to_string(),
            "expected n to be a whole number to add to, found type S"
        );
        assert_eq!(after, before);
        let mut table = Some(before.clone());
        let guarded = ItemWrite {
            key: Item::new(),
            condition: Condition::NotExists("n".into()),
            action: Action::Delete,
        };
        assert_eq!(guarded.carry_out(&mut table), Err(WriteError::ConditionFailed));
        assert_eq!(table, Some(before));
    }
}
