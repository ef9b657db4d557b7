//! Put, update, delete: each is first prepared, which changes nothing, then committed.

use super::Dynamo;
use super::capacity::{Halves, write_cost};
use super::error::ApiError;
use super::expr::{Condition, Update};
use super::key::Position;
use super::requests::{
    ConditionCheck, DeleteItem, PutItem, ReturnValues, TransactAction, UpdateItem, WriteReply,
};
use super::store::Row;
use super::table::Table;
use super::value::{MAX_ITEM_BYTES, item_size, normalize_item};
use leasehold_engine::table::Item;
use std::sync::{Arc, LazyLock};

static NO_ITEM: LazyLock<Item> = LazyLock::new(Item::new);

/// A write that has passed every check.
pub(super) struct Prepared {
    pub position: Position,
    pub old: Option<Row>,
    pub outcome: Outcome,
    pub cost: Halves,
}

/// What is left to do.
pub(super) enum Outcome {
    /// Nothing: a condition alone, or an update that creates nothing.
    Keep,
    /// Put this item there.
    Put(Arc<Item>),
    /// Delete what is there.
    Delete,
}

/// A write that was not prepared: a condition that failed costs what the write would have.
pub(super) enum Refusal {
    Invalid(ApiError),
    ConditionFailed(ApiError, Halves),
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self::Invalid(error)
    }
}

impl Refusal {
    pub(super) fn into_error(self) -> ApiError {
        match self {
            Self::Invalid(error) | Self::ConditionFailed(error, _) => error,
        }
    }
}

impl Table {
    pub(super) fn prepare(&self, action: &TransactAction) -> Result<Prepared, Refusal> {
        match action {
            TransactAction::Check(check) => self.prepare_check(check),
            TransactAction::Put(put) => self.prepare_put(put),
            TransactAction::Update(update) => self.prepare_update(update),
            TransactAction::Delete(delete) => self.prepare_delete(delete),
        }
    }

    fn prepare_check(&self, check: &ConditionCheck) -> Result<Prepared, Refusal> {
        let position = self.schema.position_of_key(&check.key)?;
        let old = self.meet(&position, Some(&check.condition), check.old_on_failure)?;
        let cost = write_cost(old.as_ref().map_or(0, |row| row.size));
        Ok(Prepared {
            position,
            old,
            outcome: Outcome::Keep,
            cost,
        })
    }

    fn prepare_put(&self, put: &PutItem) -> Result<Prepared, Refusal> {
        if !matches!(put.return_values, ReturnValues::None | ReturnValues::AllOld) {
            return Err(ApiError::validation("ReturnValues can only be ALL_OLD or NONE").into());
        }
        let mut item = put.item.clone();
        normalize_item(&mut item)?;
        let size = item_size(&item);
        if size > MAX_ITEM_BYTES {
            return Err(ApiError::validation("Item size has exceeded the maximum allowed size").into());
        }
        let position = self.schema.position_of_item(&item)?;
        self.indexes.iter().try_for_each(|index| index.check(&item))?;
        let old = self.meet(&position, put.condition.as_ref(), put.old_on_failure)?;
        let cost = write_cost(size.max(old.as_ref().map_or(0, |row| row.size)));
        Ok(Prepared {
            position,
            old,
            outcome: Outcome::Put(Arc::new(item)),
            cost,
        })
    }

    fn prepare_delete(&self, delete: &DeleteItem) -> Result<Prepared, Refusal> {
        if !matches!(delete.return_values, ReturnValues::None | ReturnValues::AllOld) {
            return Err(ApiError::validation("ReturnValues can only be ALL_OLD or NONE").into());
        }
        let position = self.schema.position_of_key(&delete.key)?;
        let old = self.meet(&position, delete.condition.as_ref(), delete.old_on_failure)?;
        let cost = write_cost(old.as_ref().map_or(0, |row| row.size));
        Ok(Prepared {
            position,
            old,
            outcome: Outcome::Delete,
            cost,
        })
    }

    fn prepare_update(&self, request: &UpdateItem) -> Result<Prepared, Refusal> {
        let position = self.schema.position_of_key(&request.key)?;
        self.check_update(&request.update)?;
        let old = self.meet(&position, request.condition.as_ref(), request.old_on_failure)?;
        let old_size = old.as_ref().map_or(0, |row| row.size);
        if old.is_none() && request.update.only_removes() {
            // Nothing to take from: no item comes into being.
            return Ok(Prepared {
                position,
                old,
                outcome: Outcome::Keep,
                cost: write_cost(0),
            });
        }
        let mut item = match &old {
            Some(row) => request.update.apply(&row.item)?,
            None => request.update.apply(&request.key)?,
        };
        normalize_item(&mut item)?;
        self.indexes.iter().try_for_each(|index| index.check(&item))?;
        let size = item_size(&item);
        if size > MAX_ITEM_BYTES {
            let message = "Item size to update has exceeded the maximum allowed size";
            return Err(ApiError::validation(message).into());
        }
        Ok(Prepared {
            position,
            old,
            outcome: Outcome::Put(Arc::new(item)),
            cost: write_cost(size.max(old_size)),
        })
    }

    fn check_update(&self, update: &Update) -> Result<(), ApiError> {
        for action in &update.actions {
            let path = action.path();
            if self.schema.contains(&path.head) {
                if !path.rest.is_empty() {
                    return self.check_path(path);
                }
                return Err(ApiError::invalid_parameter(format_args!(
                    "Cannot update attribute {}. This attribute is part of the key",
                    path.head
                )));
            }
            self.check_path(path)?;
        }
        Ok(())
    }

    /// The row at a position, if the condition holds of it.
    fn meet(
        &self,
        position: &Position,
        condition: Option<&Condition>,
        old_on_failure: bool,
    ) -> Result<Option<Row>, Refusal> {
        let row = self.store.get(position, None);
        if let Some(condition) = condition {
            self.check_condition(Some(condition))?;
            if !condition.holds(row.map_or(&NO_ITEM, |row| &row.item)) {
                let shown = row.filter(|_| old_on_failure).map(|row| row.item.clone());
                let cost = write_cost(row.map_or(0, |row| row.size));
                return Err(Refusal::ConditionFailed(ApiError::condition_failed(shown), cost));
            }
        }
        Ok(row.cloned())
    }

    /// Carries out what was prepared, with nothing in between.
    pub(super) fn commit(&mut self, prepared: &Prepared, now_ms: i64) -> super::capacity::Consumed {
        match &prepared.outcome {
            Outcome::Put(item) => {
                self.store_row(&prepared.position, Some(item.clone()), prepared.cost, now_ms)
            }
            Outcome::Delete if prepared.old.is_some() => {
                self.store_row(&prepared.position, None, prepared.cost, now_ms)
            }
            Outcome::Delete | Outcome::Keep => {
                self.writes.take(prepared.cost);
                super::capacity::Consumed::table(prepared.cost)
            }
        }
    }

    /// One write by itself: checked, throttled, conditional, then done.
    fn write(
        &mut self,
        prepared: Result<Prepared, Refusal>,
        now_ms: i64,
        answer: impl FnOnce(&Prepared) -> Option<Arc<Item>>,
    ) -> Result<WriteReply, ApiError> {
        if matches!(prepared, Err(Refusal::Invalid(_))) {
            return prepared
                .map(|_| WriteReply::default())
                .map_err(Refusal::into_error);
        }
        if !self.may_write(now_ms) {
            return Err(ApiError::throughput_exceeded());
        }
        let prepared = prepared.map_err(|refusal| {
            if let Refusal::ConditionFailed(_, cost) = &refusal {
                self.writes.take(*cost);
            }
            refusal.into_error()
        })?;
        let attributes = answer(&prepared);
        Ok(WriteReply {
            attributes,
            consumed: self.commit(&prepared, now_ms),
        })
    }
}

fn old_item(prepared: &Prepared, wanted: ReturnValues) -> Option<Arc<Item>> {
    prepared
        .old
        .as_ref()
        .filter(|_| wanted == ReturnValues::AllOld)
        .map(|row| row.item.clone())
}

impl Dynamo {
    /// `PutItem`.
    pub fn put_item(&mut self, now_ms: i64, request: &PutItem) -> Result<WriteReply, ApiError> {
        let table = self.usable(&request.table, now_ms)?;
        let prepared = table.prepare_put(request);
        table.write(prepared, now_ms, |prepared| {
            old_item(prepared, request.return_values)
        })
    }

    /// `DeleteItem`.
    pub fn delete_item(&mut self, now_ms: i64, request: &DeleteItem) -> Result<WriteReply, ApiError> {
        let table = self.usable(&request.table, now_ms)?;
        let prepared = table.prepare_delete(request);
        table.write(prepared, now_ms, |prepared| {
            old_item(prepared, request.return_values)
        })
    }

    /// `UpdateItem`.
    pub fn update_item(&mut self, now_ms: i64, request: &UpdateItem) -> Result<WriteReply, ApiError> {
        let table = self.usable(&request.table, now_ms)?;
        let prepared = table.prepare_update(request);
        table.write(prepared, now_ms, |prepared| {
            let old = prepared.old.as_ref().map(|row| &row.item);
            let new = match &prepared.outcome {
                Outcome::Put(item) => Some(item),
                Outcome::Keep | Outcome::Delete => None,
            };
            let touched = |item: &Arc<Item>| {
                let part = request.update.projection().apply(item);
                (!part.is_empty()).then(|| Arc::new(part))
            };
            match request.return_values {
                ReturnValues::None => None,
                ReturnValues::AllOld => old.cloned(),
                ReturnValues::AllNew => new.cloned(),
                ReturnValues::UpdatedOld => old.and_then(touched),
                ReturnValues::UpdatedNew => new.and_then(touched),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::expr::Comparator;
    use super::super::testing::*;
    use super::super::*;
    use super::*;
    use leasehold_engine::table::AttributeValue;

    fn update(update: Update) -> UpdateItem {
        UpdateItem {
            table: "tab".into(),
            key: item([("p", s("a"))]),
            update,
            ..UpdateItem::default()
        }
    }

    #[test]
    fn puts_replace_and_answer_with_what_was_there() {
        let mut dynamo = simple();
        put(&mut dynamo, item([("p", s("a")), ("x", n(1))]));
        let request = PutItem {
            table: "tab".into(),
            item: item([("p", s("a")), ("y", AttributeValue::n("2.50"))]),
            return_values: ReturnValues::AllOld,
            ..PutItem::default()
        };
        let reply = dynamo.put_item(NOW, &request).unwrap();
        assert_eq!(*reply.attributes.unwrap(), item([("p", s("a")), ("x", n(1))]));
        let stored = dynamo.peek("tab", &item([("p", s("a"))])).unwrap();
        assert_eq!(**stored, item([("p", s("a")), ("y", AttributeValue::n("2.5"))]));
    }

    #[test]
    fn a_failed_condition_changes_nothing_and_shows_the_item_only_if_asked() {
        let mut dynamo = simple();
        put(&mut dynamo, item([("p", s("a")), ("counter", n(7))]));
        let mut request = update(Update::new().set("owner", s("me")));
        request.condition = Some(Condition::equals("counter", n(6)));
        let error = refused(
            dynamo.update_item(NOW, &request),
            "ConditionalCheckFailedException",
            "conditional",
        );
        assert_eq!(error.item, None);
        request.old_on_failure = true;
        let error = dynamo.update_item(NOW, &request).unwrap_err();
        assert_eq!(error.item.unwrap()["counter"], n(7));
        request.condition = Some(Condition::compare("counter", Comparator::Gt, n(6)));
        dynamo.update_item(NOW, &request).unwrap();
        assert_eq!(dynamo.peek("tab", &request.key).unwrap()["owner"], s("me"));
        // On an absent item nothing exists, and there is nothing to show.
        let absent = DeleteItem {
            table: "tab".into(),
            key: item([("p", s("zz"))]),
            condition: Some(Condition::exists("p")),
            old_on_failure: true,
            ..DeleteItem::default()
        };
        assert_eq!(dynamo.delete_item(NOW, &absent).unwrap_err().item, None);
    }

    #[test]
    fn updates_answer_with_all_five_return_values() {
        for (wanted, expected) in [
            (ReturnValues::None, None),
            (
                ReturnValues::AllOld,
                Some(item([("p", s("a")), ("x", n(1)), ("y", n(1))])),
            ),
            (ReturnValues::UpdatedOld, Some(item([("x", n(1))]))),
            (
                ReturnValues::AllNew,
                Some(item([("p", s("a")), ("x", n(2)), ("y", n(1)), ("z", n(3))])),
            ),
            (ReturnValues::UpdatedNew, Some(item([("x", n(2)), ("z", n(3))]))),
        ] {
            let mut dynamo = simple();
            put(&mut dynamo, item([("p", s("a")), ("x", n(1)), ("y", n(1))]));
            let mut request = update(Update::new().set("x", n(2)).set("z", n(3)));
            request.return_values = wanted;
            let reply = dynamo.update_item(NOW, &request).unwrap();
            assert_eq!(
                reply.attributes.map(|item| (*item).clone()),
                expected,
                "{wanted:?}"
            );
        }
    }

    #[test]
    fn an_update_creates_unless_it_only_removes() {
        let mut dynamo = simple();
        dynamo
            .update_item(NOW, &update(Update::new().remove("x")))
            .unwrap();
        assert!(dynamo.table("tab").unwrap().is_empty());
        dynamo.update_item(NOW, &update(Update::new())).unwrap();
        assert_eq!(
            **dynamo.peek("tab", &item([("p", s("a"))])).unwrap(),
            item([("p", s("a"))])
        );
    }

    #[test]
    fn what_cannot_be_stored_is_refused() {
        let indexes = vec![index("by-owner", false, IndexProjection::All)];
        let mut dynamo = with_table(DynamoConfig::default(), false, indexes);
        let mut try_put = |item: Item, part: &str| {
            let request = PutItem {
                table: "tab".into(),
                item,
                ..PutItem::default()
            };
            refused(dynamo.put_item(NOW, &request), "ValidationException", part);
        };
        try_put(item([("x", n(1))]), "Missing the key p in the item");
        try_put(
            item([("p", n(1))]),
            "Type mismatch for key p expected: S actual: N",
        );
        try_put(item([("p", s(""))]), "empty string value. Key: p");
        try_put(
            item([("p", s("a")), ("x", s(&"y".repeat(MAX_ITEM_BYTES)))]),
            "maximum allowed size",
        );
        try_put(
            item([("p", s("a")), ("owner", n(1))]),
            "Type mismatch for Index Key owner Expected: S Actual: N",
        );
        try_put(
            item([("p", s("a")), ("owner", s(""))]),
            "IndexName: by-owner, IndexKey: owner",
        );
        let wrong = UpdateItem {
            key: item([("q", s("a"))]),
            ..update(Update::new())
        };
        refused(
            dynamo.update_item(NOW, &wrong),
            "ValidationException",
            "key element does not match the schema",
        );
        let result = dynamo.update_item(NOW, &update(Update::new().set("p", s("b"))));
        refused(
            result,
            "ValidationException",
            "Cannot update attribute p. This attribute is part of the key",
        );
        let result = dynamo.update_item(NOW, &update(Update::new().set("owner", n(5))));
        refused(result, "ValidationException", "Index Key owner");
        put(
            &mut dynamo,
            item([("p", s("a")), ("x", s(&"y".repeat(300 * 1024)))]),
        );
        let result = dynamo.update_item(NOW, &update(Update::new().set("z", s(&"y".repeat(150 * 1024)))));
        refused(result, "ValidationException", "Item size to update has exceeded");
        let request = PutItem {
            table: "nope".into(),
            item: item([("p", s("a"))]),
            ..PutItem::default()
        };
        refused(
            dynamo.put_item(NOW, &request),
            "ResourceNotFoundException",
            "Requested resource not found",
        );
    }

    #[test]
    fn writes_cost_the_larger_of_before_and_after_and_their_indexes() {
        let indexes = vec![index("by-owner", false, IndexProjection::KeysOnly)];
        let mut dynamo = with_table(DynamoConfig::default(), false, indexes);
        let big = item([("p", s("a")), ("x", s(&"y".repeat(2500))), ("owner", s("w"))]);
        put(&mut dynamo, big);
        let reply = dynamo
            .update_item(NOW, &update(Update::new().remove("x")))
            .unwrap();
        // Three blocks of 1 KB at the table; the index does not hold `x`.
        assert_eq!(reply.consumed, Consumed::table(6));
        let reply = dynamo
            .update_item(NOW, &update(Update::new().set("owner", s("v"))))
            .unwrap();
        assert_eq!(
            reply.consumed,
            Consumed {
                table: 2,
                indexes: vec![("by-owner".into(), 4)]
            }
        );
    }

    #[test]
    fn provisioned_capacity_is_enforced_where_asked_for() {
        let mut dynamo = Dynamo::new(DynamoConfig {
            throttle: true,
            ..DynamoConfig::default()
        });
        let throughput = Throughput { read: 1, write: 2 };
        let billing = Billing::Provisioned(throughput);
        dynamo
            .create_table(
                0,
                &CreateTable {
                    billing,
                    ..creation("tab", false, Vec::new())
                },
            )
            .unwrap();
        let request = PutItem {
            table: "tab".into(),
            item: item([("p", s("a"))]),
            ..PutItem::default()
        };
        let mut passed = |at: i64| (0..10).filter(|_| dynamo.put_item(at, &request).is_ok()).count();
        assert_eq!(passed(NOW), 2);
        assert_eq!(passed(NOW + 1_000), 2);
        assert_eq!(passed(NOW + 11_000), 10);
        // Validation comes before capacity, capacity before the condition.
        while dynamo.put_item(NOW + 11_000, &request).is_ok() {}
        let unmet = PutItem {
            condition: Some(Condition::not_exists("p")),
            ..request.clone()
        };
        refused(
            dynamo.put_item(NOW + 11_000, &unmet),
            "ProvisionedThroughputExceededException",
            "level",
        );
        let invalid = PutItem {
            item: Item::new(),
            ..request
        };
        refused(
            dynamo.put_item(NOW + 11_000, &invalid),
            "ValidationException",
            "Missing the key",
        );
        dynamo
            .operator_put(NOW + 11_000, "tab", &item([("p", s("b"))]))
            .unwrap();
        assert_eq!(dynamo.table("tab").unwrap().len(), 2);
    }

    #[test]
    fn a_clone_is_another_world() {
        let mut dynamo = simple();
        put(&mut dynamo, item([("p", s("a")), ("x", n(1))]));
        let mut other = dynamo.clone();
        other
            .update_item(NOW, &update(Update::new().set("x", n(2))))
            .unwrap();
        assert_eq!(dynamo.peek("tab", &item([("p", s("a"))])).unwrap()["x"], n(1));
        assert_eq!(other.peek("tab", &item([("p", s("a"))])).unwrap()["x"], n(2));
    }
}
