//! Transactions: all or nothing.

use super::Dynamo;
use super::capacity::{Consumed, read_cost};
use super::error::{ApiError, CancellationReason, THROUGHPUT_MESSAGE};
use super::requests::{
    TransactAction, TransactGet, TransactGetReply, TransactWrite, TransactWriteReply, account,
};
use super::value::item_size;
use super::write::{Outcome, Refusal};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The most actions of a transaction.
pub const MAX_ACTIONS: usize = 100;
/// The largest transaction, all its items together.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// For how long a token repeats its success.
const TOKEN_MS: i64 = 10 * 60 * 1000;

/// A transaction that succeeded under a token.
#[derive(Clone, Debug)]
pub(super) struct Done {
    request: Arc<TransactWrite>,
    at_ms: i64,
}

impl Dynamo {
    /// `TransactWriteItems`.
    pub fn transact_write(
        &mut self,
        now_ms: i64,
        request: &TransactWrite,
    ) -> Result<TransactWriteReply, ApiError> {
        check_count("transactItems", request.actions.len())?;
        if let Some(token) = &request.token {
            check_token(token)?;
            self.done
                .retain(|_, done| now_ms.saturating_sub(done.at_ms) < TOKEN_MS);
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
            let position = match action {
                TransactAction::Put(put) => {
                    let mut item = put.item.clone();
                    super::value::normalize_item(&mut item)?;
                    table.schema.position_of_item(&item)?
                }
                TransactAction::Check(check) => table.schema.position_of_key(&check.key)?,
                TransactAction::Update(update) => table.schema.position_of_key(&update.key)?,
                TransactAction::Delete(delete) => table.schema.position_of_key(&delete.key)?,
            };
            if !seen.insert((action.table(), position)) {
                return Err(ApiError::validation(
                    "Transaction request cannot include multiple operations on one item",
                ));
            }
            let outcome = table.prepare(action);
            let throttled = !table.may_write(now_ms);
            reasons.push(match &outcome {
                Err(Refusal::Invalid(error)) => reason("ValidationError", error),
                _ if throttled => CancellationReason {
                    code: "ProvisionedThroughputExceeded",
                    message: Some(THROUGHPUT_MESSAGE.into()),
                    item: None,
                },
                Err(Refusal::ConditionFailed(error, _)) => reason("ConditionalCheckFailed", error),
                Ok(_) => CancellationReason::NONE,
            });
            if let Ok(write) = outcome {
                bytes += match &write.outcome {
                    Outcome::Put(item) => item_size(item),
                    Outcome::Delete | Outcome::Keep => write.old.as_ref().map_or(0, |row| row.size),
                };
                prepared.push(write);
            }
        }
        if reasons.iter().any(|reason| reason.code != "None") {
            return Err(cancelled(reasons));
        }
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
            for (_, halves) in &mut cost.indexes {
                *halves *= 2;
            }
            account(&mut reply.consumed, action.table(), cost);
        }
        if let Some(token) = &request.token {
            let done = Done {
                request: Arc::new(request.clone()),
                at_ms: now_ms,
            };
            self.done.insert(token.clone(), done);
        }
        Ok(reply)
    }

    /// A repetition costs reads, and changes nothing.
    fn repeat(&mut self, request: &TransactWrite, now_ms: i64) -> Result<TransactWriteReply, ApiError> {
        let mut reply = TransactWriteReply {
            repeated: true,
            ..TransactWriteReply::default()
        };
        for action in &request.actions {
            let table = self.usable(action.table(), now_ms)?;
            let position = match action {
                TransactAction::Put(put) => table.schema.position_of_key(&table.schema.key_of(&put.item))?,
                TransactAction::Check(check) => table.schema.position_of_key(&check.key)?,
                TransactAction::Update(update) => table.schema.position_of_key(&update.key)?,
                TransactAction::Delete(delete) => table.schema.position_of_key(&delete.key)?,
            };
            let cost = read_cost(table.store.get(&position, None).map_or(0, |row| row.size), true) * 2;
            table.reads.take(cost);
            account(&mut reply.consumed, action.table(), Consumed::table(cost));
        }
        Ok(reply)
    }

    /// `TransactGetItems`.
    pub fn transact_get(&mut self, now_ms: i64, request: &TransactGet) -> Result<TransactGetReply, ApiError> {
        check_count("transactItems", request.gets.len())?;
        let mut seen = BTreeSet::new();
        for get in &request.gets {
            let table = self.usable(&get.table, now_ms)?;
            table.check_projection(get.projection.as_ref())?;
            let position = table.schema.position_of_key(&get.key)?;
            if !seen.insert((get.table.as_str(), position)) {
                return Err(ApiError::validation(
                    "Transaction request cannot include multiple operations on one item",
                ));
            }
        }
        let mut reply = TransactGetReply::default();
        let mut reasons = Vec::with_capacity(request.gets.len());
        for get in &request.gets {
            let open = self.usable(&get.table, now_ms)?.may_read(None, now_ms);
            reasons.push(if open {
                CancellationReason::NONE
            } else {
                CancellationReason {
                    code: "ProvisionedThroughputExceeded",
                    message: Some(THROUGHPUT_MESSAGE.into()),
                    item: None,
                }
            });
        }
        if reasons.iter().any(|reason| reason.code != "None") {
            return Err(cancelled(reasons));
        }
        for get in &request.gets {
            let table = self.usable(&get.table, now_ms)?;
            let position = table.schema.position_of_key(&get.key)?;
            let row = table.store.get(&position, None);
            let cost = read_cost(row.map_or(0, |row| row.size), true) * 2;
            reply.items.push(row.map(|row| match &get.projection {
                None => row.item.clone(),
                Some(projection) => Arc::new(projection.apply(&row.item)),
            }));
            table.reads.take(cost);
            account(&mut reply.consumed, &get.table, Consumed::table(cost));
        }
        Ok(reply)
    }
}

fn reason(code: &'static str, error: &ApiError) -> CancellationReason {
    CancellationReason {
        code,
        message: Some(error.message.clone()),
        item: error.item.clone(),
    }
}

fn cancelled(reasons: Vec<CancellationReason>) -> ApiError {
    let codes: Vec<&str> = reasons.iter().map(|reason| reason.code).collect();
    let message = format!(
        "Transaction cancelled, please refer cancellation reasons for specific reasons [{}]",
        codes.join(", ")
    );
    ApiError {
        cancellation_reasons: reasons,
        ..ApiError::new("TransactionCanceledException", message)
    }
}

fn check_count(parameter: &str, count: usize) -> Result<(), ApiError> {
    let bound = match count {
        0 => "greater than or equal to 1",
        1..=MAX_ACTIONS => return Ok(()),
        _ => "less than or equal to 100",
    };
    Err(ApiError::validation(format!(
        "1 validation error detected: Value at '{parameter}' failed to satisfy constraint: \
         Member must have length {bound}"
    )))
}

fn check_token(token: &str) -> Result<(), ApiError> {
    let bound = match token.len() {
        0 => "greater than or equal to 1",
        1..=36 => return Ok(()),
        _ => "less than or equal to 36",
    };
    Err(ApiError::validation(format!(
        "1 validation error detected: Value '{token}' at 'clientRequestToken' failed to satisfy constraint: \
         Member must have length {bound}"
    )))
}
