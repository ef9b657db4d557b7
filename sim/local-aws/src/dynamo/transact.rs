//! Transactions: all or nothing.

use super::Dynamo;
use super::capacity::{Consumed, read_cost};
use super::error::{ApiError, CancellationReason, DynamoResult};
use super::key::Position;
use super::read::projected;
use super::requests::{
    ConditionCheck, DeleteItem, TransactAction, TransactGet, TransactGetReply, TransactWrite,
    TransactWriteReply, UpdateItem, account,
};
use super::table::Table;
use super::value::normalize_item;
use super::write::{Outcome, Refusal};
use crate::constraint::beyond;
use crate::constraint::refuse_if;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// The most actions of a transaction.
pub(super) const MAX_ACTIONS: usize = 100;
/// The largest transaction, as the sum of its items.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// How long a token repeats its success.
const TOKEN_MS: i64 = 10 * 60 * 1000;

/// A successful transaction with a token.
#[derive(Clone, Debug)]
pub(super) struct Done {
    request: Arc<TransactWrite>,
    at_ms: i64,
}

impl Dynamo {
    /// `TransactWriteItems`.
    pub fn transact_write(
        &mut self, now_ms: i64, request: &TransactWrite,
    ) -> DynamoResult<TransactWriteReply> {
        check_length("Value at 'transactItems'", request.actions.len(), MAX_ACTIONS)?;
        if let Some(token) = &request.token {
            check_length(format_args!("Value '{token}' at 'clientRequestToken'"), token.len(), 36)?;
            self.done.retain(|_, done| now_ms.saturating_sub(done.at_ms) < TOKEN_MS);
            if let Some(done) = self.done.get(token) {
                if *done.request != *request {
                    return Err(ApiError::new(
                        "IdempotentParameterMismatchException",
                        "Request contains parameters that differ from the original request with the same \
                         ClientRequestToken",
                    ));
                }
                let done = done.request.clone();
                return self.repeat(&done, now_ms);
            }
        }
        let mut seen = BTreeSet::new();
        let mut prepared = Vec::with_capacity(request.actions.len());
        let mut reasons = Vec::with_capacity(request.actions.len());
        let mut bytes = 0;
        for action in &request.actions {
            let table = self.usable(action.table(), now_ms)?;
            let position = table.position(action)?;
            refuse_if(!seen.insert((action.table(), position)), touched_twice)?;
            let outcome = table.prepare(action);
            let open = table.may_write(now_ms);
            reasons.push(match &outcome {
                Err(Refusal::Invalid(error)) => reason("ValidationError", error),
                _ if !open => throttled(),
                Err(Refusal::ConditionFailed(error, _)) => reason("ConditionalCheckFailed", error),
                Ok(_) => CancellationReason::NONE,
            });
            if let Ok(write) = outcome {
                bytes += match &write.outcome {
                    Outcome::Put(row) => row.size,
                    Outcome::Delete | Outcome::Keep => write.old.as_ref().map_or(0, |row| row.size),
                };
                prepared.push(write);
            }
        }
        refuse_cancelled(reasons)?;
        if bytes > MAX_BYTES {
            return Err(ApiError::validation(
                "Member must have length less than or equal to 4194304: the transaction is too large",
            ));
        }
        let mut reply = TransactWriteReply::default();
        for (action, mut write) in request.actions.iter().zip(prepared) {
            let table = self.usable(action.table(), now_ms)?;
            write.cost *= 2;
            let mut cost = table.commit(&write, now_ms);
            cost.indexes.iter_mut().for_each(|(_, halves)| *halves *= 2);
            account(&mut reply.consumed, action.table(), cost);
        }
        if let Some(token) = &request.token {
            let done = Done { request: Arc::new(request.clone()), at_ms: now_ms };
            self.done.insert(token.clone(), done);
        }
        Ok(reply)
    }

    /// A repetition costs reads, and changes no item.
    fn repeat(&mut self, request: &TransactWrite, now_ms: i64) -> DynamoResult<TransactWriteReply> {
        let mut reply = TransactWriteReply { repeated: true, ..TransactWriteReply::default() };
        for action in &request.actions {
            let table = self.usable(action.table(), now_ms)?;
            let position = table.position(action)?;
            let cost = read_cost(table.store.get(&position, None).map_or(0, |row| row.size), true) * 2;
            table.reads.take(cost);
            account(&mut reply.consumed, action.table(), Consumed::table(cost));
        }
        Ok(reply)
    }

    /// `TransactGetItems`.
    pub fn transact_get(&mut self, now_ms: i64, request: &TransactGet) -> DynamoResult<TransactGetReply> {
        check_length("Value at 'transactItems'", request.gets.len(), MAX_ACTIONS)?;
        let mut seen = BTreeSet::new();
        for get in &request.gets {
            let table = self.usable(&get.table, now_ms)?;
            table.check_projection(get.projection.as_ref())?;
            let position = table.schema.position_of_key(&get.key)?;
            refuse_if(!seen.insert((get.table.as_str(), position)), touched_twice)?;
        }
        let mut reply = TransactGetReply::default();
        let mut reasons = Vec::with_capacity(request.gets.len());
        for get in &request.gets {
            let open = self.usable(&get.table, now_ms)?.may_read(None, now_ms);
            reasons.push(if open { CancellationReason::NONE } else { throttled() });
        }
        refuse_cancelled(reasons)?;
        for get in &request.gets {
            let table = self.usable(&get.table, now_ms)?;
            let position = table.schema.position_of_key(&get.key)?;
            let row = table.store.get(&position, None);
            let cost = read_cost(row.map_or(0, |row| row.size), true) * 2;
            reply.items.push(row.map(|row| projected(&row.item, get.projection.as_ref())));
            table.reads.take(cost);
            account(&mut reply.consumed, &get.table, Consumed::table(cost));
        }
        Ok(reply)
    }
}

impl Table {
    /// The position of the item that an action is about.
    fn position(&self, action: &TransactAction) -> DynamoResult<Position> {
        match action {
            TransactAction::Put(put) => {
                let mut item = put.item.clone();
                normalize_item(&mut item)?;
                self.schema.position_of_item(&item)
            }
            TransactAction::Check(ConditionCheck { key, .. })
            | TransactAction::Update(UpdateItem { key, .. })
            | TransactAction::Delete(DeleteItem { key, .. }) => self.schema.position_of_key(key),
        }
    }
}

fn touched_twice() -> ApiError {
    ApiError::validation("Transaction request cannot include multiple operations on one item")
}

/// The reason of an action without capacity.
fn throttled() -> CancellationReason {
    reason("ProvisionedThroughputExceeded", &ApiError::throughput_exceeded())
}

fn reason(code: &'static str, error: &ApiError) -> CancellationReason {
    CancellationReason { code, message: Some(error.message.clone()), item: error.item.clone() }
}

/// Refuses a transaction if one of its actions has a fault.
fn refuse_cancelled(reasons: Vec<CancellationReason>) -> DynamoResult<()> {
    let codes: Vec<&str> = reasons.iter().map(|reason| reason.code).collect();
    if codes.iter().all(|code| *code == "None") {
        return Ok(());
    }
    let message = format!(
        "Transaction cancelled, please refer cancellation reasons for specific reasons [{}]",
        codes.join(", ")
    );
    Err(ApiError { cancellation_reasons: reasons, ..ApiError::new("TransactionCanceledException", message) })
}

fn check_length(place: impl fmt::Display, length: usize, most: usize) -> DynamoResult<()> {
    match beyond(length, 1, most) {
        Some(bound) => Err(ApiError::unmet(place, format_args!("have length {bound}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::expr::{Condition, Update};
    use super::super::testing::*;
    use super::super::*;
    use super::*;

    fn key(name: &str) -> Item {
        item([("p", s(name))])
    }

    fn put_action(name: &str) -> TransactAction {
        TransactAction::Put(put_of(key(name)))
    }

    fn check(name: &str, condition: Condition) -> TransactAction {
        let check = ConditionCheck { table: "tab".into(), key: key(name), condition, old_on_failure: true };
        TransactAction::Check(check)
    }

    fn request(actions: Vec<TransactAction>) -> TransactWrite {
        TransactWrite { actions, token: None }
    }

    #[test]
    fn all_is_written_or_nothing_and_reasons_come_in_order() {
        let mut dynamo = simple();
        put(&mut dynamo, item([("p", s("a")), ("x", n(1))]));
        let update = TransactAction::Update(UpdateItem {
            table: "tab".into(),
            key: key("b"),
            update: Update::new().set("x", n(5)),
            ..UpdateItem::default()
        });
        let failing =
            request(vec![update.clone(), check("a", Condition::equals("x", n(2))), put_action("c")]);
        let error = refused(
            dynamo.transact_write(NOW, &failing),
            "TransactionCanceledException",
            "specific reasons [None, ConditionalCheckFailed, None]",
        );
        assert_eq!(error.cancellation_reasons[1].item.as_ref().unwrap()["x"], n(1));
        assert_eq!(dynamo.table("tab").unwrap().len(), 1);

        let delete = TransactAction::Delete(DeleteItem {
            table: "tab".into(),
            key: key("c"),
            ..DeleteItem::default()
        });
        let good = request(vec![update, check("a", Condition::equals("x", n(1))), delete]);
        let reply = dynamo.transact_write(NOW, &good).unwrap();
        assert_eq!(reply.consumed, [("tab".to_owned(), Consumed::table(12))]);
        assert_eq!(dynamo.peek("tab", &key("b")).unwrap()["x"], n(5));
    }

    #[test]
    fn an_invalid_update_cancels_with_a_validation_error() {
        let mut dynamo = simple();
        put(&mut dynamo, item([("p", s("a")), ("x", s("text"))]));
        let update = Update::new().add("x", n(1));
        let update = UpdateItem { table: "tab".into(), key: key("a"), update, ..UpdateItem::default() };
        let request = request(vec![put_action("b"), TransactAction::Update(update)]);
        let error = refused(
            dynamo.transact_write(NOW, &request),
            "TransactionCanceledException",
            "[None, ValidationError]",
        );
        assert!(error.cancellation_reasons[1].message.as_ref().unwrap().contains("incorrect data type"));
        assert_eq!(dynamo.peek("tab", &key("b")), None);
    }

    #[test]
    fn one_item_cannot_be_touched_twice_nor_more_than_a_hundred() {
        let mut dynamo = simple();
        let twice = request(vec![put_action("a"), check("a", Condition::exists("p"))]);
        invalid(dynamo.transact_write(NOW, &twice), "multiple operations on one item");
        let many = request((0..101).map(|n| put_action(&n.to_string())).collect());
        invalid(dynamo.transact_write(NOW, &many), "less than or equal to 100");
        invalid(dynamo.transact_write(NOW, &request(Vec::new())), "greater than or equal to 1");
    }

    #[test]
    fn a_token_repeats_its_success_for_ten_minutes() {
        let mut dynamo = simple();
        let add = |by: i64| TransactWrite {
            actions: vec![TransactAction::Update(UpdateItem {
                table: "tab".into(),
                key: key("a"),
                update: Update::new().add("x", n(by)),
                ..UpdateItem::default()
            })],
            token: Some("token".into()),
        };
        assert!(!dynamo.transact_write(NOW, &add(1)).unwrap().repeated);
        assert!(dynamo.transact_write(NOW + 599_999, &add(1)).unwrap().repeated);
        assert_eq!(dynamo.peek("tab", &key("a")).unwrap()["x"], n(1));
        refused(dynamo.transact_write(NOW, &add(2)), "IdempotentParameterMismatchException", "differ");
        assert!(!dynamo.transact_write(NOW + 600_000, &add(1)).unwrap().repeated);
        assert_eq!(dynamo.peek("tab", &key("a")).unwrap()["x"], n(2));
    }

    #[test]
    fn reads_of_one_moment_come_in_order_with_gaps() {
        let mut dynamo = simple();
        put(&mut dynamo, key("b"));
        let get = |name: &str| get_of(key(name));
        let reply = dynamo.transact_get(NOW, &TransactGet { gets: vec![get("a"), get("b")] }).unwrap();
        assert_eq!(reply.items.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true]);
        assert_eq!(reply.consumed[0].1, Consumed::table(8));
        let twice = TransactGet { gets: vec![get("a"), get("a")] };
        invalid(dynamo.transact_get(NOW, &twice), "multiple operations");
    }
}
