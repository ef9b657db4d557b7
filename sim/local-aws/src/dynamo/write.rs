//! Put, update, delete: a write is first prepared without any change, then committed.

use super::Dynamo;
use super::capacity::{Consumed, Halves, write_cost};
use super::error::{ApiError, DynamoResult};
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

/// A write after all checks.
pub(super) struct Prepared {
    pub position: Position,
    pub old: Option<Row>,
    pub outcome: Outcome,
    pub cost: Halves,
}

/// The change still to make.
pub(super) enum Outcome {
    /// No change: a condition alone, or an update that creates no item.
    Keep,
    /// Put this item there.
    Put(Row),
    /// Delete what is there.
    Delete,
}

/// An unprepared write: a failed condition costs as much as the write.
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
            TransactAction::Check(ConditionCheck { key, condition, old_on_failure, .. }) => {
                self.prepare_keyed(key, Some(condition), *old_on_failure, Outcome::Keep)
            }
            TransactAction::Put(put) => self.prepare_put(put),
            TransactAction::Update(update) => self.prepare_update(update),
            TransactAction::Delete(delete) => self.prepare_delete(delete),
        }
    }

    /// A check or a delete: neither brings an item.
    fn prepare_keyed(
        &self, key: &Item, condition: Option<&Condition>, old_on_failure: bool, outcome: Outcome,
    ) -> Result<Prepared, Refusal> {
        let position = self.schema.position_of_key(key)?;
        let old = self.meet(&position, condition, old_on_failure)?;
        let cost = write_cost(size_of(old.as_ref()));
        Ok(Prepared { position, old, outcome, cost })
    }

    fn prepare_put(&self, put: &PutItem) -> Result<Prepared, Refusal> {
        check_return_values(put.return_values)?;
        let mut item = put.item.clone();
        normalize_item(&mut item)?;
        let size = item_size(&item);
        if size > MAX_ITEM_BYTES {
            return Err(ApiError::validation("Item size has exceeded the maximum allowed size").into());
        }
        let position = self.schema.position_of_item(&item)?;
        self.indexes.iter().try_for_each(|index| index.check(&item))?;
        let old = self.meet(&position, put.condition.as_ref(), put.old_on_failure)?;
        let cost = write_cost(size.max(size_of(old.as_ref())));
        Ok(Prepared { position, old, outcome: Outcome::Put(Row { item: Arc::new(item), size }), cost })
    }

    fn prepare_delete(&self, delete: &DeleteItem) -> Result<Prepared, Refusal> {
        check_return_values(delete.return_values)?;
        let condition = delete.condition.as_ref();
        self.prepare_keyed(&delete.key, condition, delete.old_on_failure, Outcome::Delete)
    }

    fn prepare_update(&self, request: &UpdateItem) -> Result<Prepared, Refusal> {
        let position = self.schema.position_of_key(&request.key)?;
        self.check_update(&request.update)?;
        let old = self.meet(&position, request.condition.as_ref(), request.old_on_failure)?;
        let old_size = size_of(old.as_ref());
        if old.is_none() && request.update.only_removes() {
            // Nothing to take from: no item comes into being.
            return Ok(Prepared { position, old, outcome: Outcome::Keep, cost: write_cost(0) });
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
            outcome: Outcome::Put(Row { item: Arc::new(item), size }),
            cost: write_cost(size.max(old_size)),
        })
    }

    fn check_update(&self, update: &Update) -> DynamoResult<()> {
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
        &self, position: &Position, condition: Option<&Condition>, old_on_failure: bool,
    ) -> Result<Option<Row>, Refusal> {
        let row = self.store.get(position, None);
        if let Some(condition) = condition {
            self.check_condition(Some(condition))?;
            if !condition.holds(row.map_or(&NO_ITEM, |row| &row.item)) {
                let shown = row.filter(|_| old_on_failure).map(|row| row.item.clone());
                let cost = write_cost(size_of(row));
                return Err(Refusal::ConditionFailed(ApiError::condition_failed(shown), cost));
            }
        }
        Ok(row.cloned())
    }

    /// Carries out a prepared write. No other call may come between the two.
    pub(super) fn commit(&mut self, prepared: &Prepared, now_ms: i64) -> Consumed {
        match &prepared.outcome {
            Outcome::Put(row) => self.store_row(&prepared.position, Some(row.clone()), prepared.cost, now_ms),
            Outcome::Delete if prepared.old.is_some() => {
                self.store_row(&prepared.position, None, prepared.cost, now_ms)
            }
            Outcome::Delete | Outcome::Keep => {
                self.writes.take(prepared.cost);
                Consumed::table(prepared.cost)
            }
        }
    }

    /// One write by itself: checked, throttled, conditional, then done.
    fn write(
        &mut self, prepared: Result<Prepared, Refusal>, now_ms: i64,
        answer: impl FnOnce(&Prepared) -> Option<Arc<Item>>,
    ) -> DynamoResult<WriteReply> {
        let prepared = match prepared {
            Err(Refusal::Invalid(error)) => return Err(error),
            _ if !self.may_write(now_ms) => return Err(ApiError::throughput_exceeded()),
            Err(Refusal::ConditionFailed(error, cost)) => {
                self.writes.take(cost);
                return Err(error);
            }
            Ok(prepared) => prepared,
        };
        let attributes = answer(&prepared);
        Ok(WriteReply { attributes, consumed: self.commit(&prepared, now_ms) })
    }
}

fn check_return_values(wanted: ReturnValues) -> DynamoResult<()> {
    match wanted {
        ReturnValues::None | ReturnValues::AllOld => Ok(()),
        _ => Err(ApiError::validation("ReturnValues can only be ALL_OLD or NONE")),
    }
}

fn size_of(row: Option<&Row>) -> usize {
    row.map_or(0, |row| row.size)
}

fn old_item(prepared: &Prepared, wanted: ReturnValues) -> Option<Arc<Item>> {
    prepared.old.as_ref().filter(|_| wanted == ReturnValues::AllOld).map(|row| row.item.clone())
}

impl Dynamo {
    /// `PutItem`.
    pub fn put_item(&mut self, now_ms: i64, request: &PutItem) -> DynamoResult<WriteReply> {
        let table = self.usable(&request.table, now_ms)?;
        let prepared = table.prepare_put(request);
        table.write(prepared, now_ms, |prepared| old_item(prepared, request.return_values))
    }

    /// `DeleteItem`.
    pub fn delete_item(&mut self, now_ms: i64, request: &DeleteItem) -> DynamoResult<WriteReply> {
        let table = self.usable(&request.table, now_ms)?;
        let prepared = table.prepare_delete(request);
        table.write(prepared, now_ms, |prepared| old_item(prepared, request.return_values))
    }

    /// `UpdateItem`.
    pub fn update_item(&mut self, now_ms: i64, request: &UpdateItem) -> DynamoResult<WriteReply> {
        let table = self.usable(&request.table, now_ms)?;
        let prepared = table.prepare_update(request);
        table.write(prepared, now_ms, |prepared| {
            let old = prepared.old.as_ref().map(|row| &row.item);
            let new = match &prepared.outcome {
                Outcome::Put(row) => Some(&row.item),
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
