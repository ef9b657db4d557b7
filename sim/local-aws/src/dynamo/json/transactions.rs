//! Transactions in JSON.

use super::ReturnCapacity;
use super::body::{Fields, absent};
use super::expressions::Expressions;
use super::items;
use super::value::show_item;
use crate::dynamo::requests::{ConditionCheck, GetItem, TransactAction, TransactGet, TransactWrite};
use crate::dynamo::{ApiError, Dynamo, DynamoResult};
use serde_json::{Value, json};

/// `TransactGetItems`
pub(super) fn transact_get(dynamo: &mut Dynamo, now_ms: i64, fields: Fields<'_>) -> DynamoResult<Value> {
    let capacity = ReturnCapacity::read(fields)?;
    let mut request = TransactGet::default();
    for part in fields.list("TransactItems")?.ok_or_else(|| absent("TransactItems"))? {
        let get = Fields::of(part)?.required_object("Get")?;
        let mut expressions = Expressions::read(get, &["ProjectionExpression"], &[])?;
        request.gets.push(GetItem {
            table: get.table()?,
            key: get.required_item("Key")?,
            consistent: true,
            projection: expressions.projection()?,
            as_of: None,
        });
        expressions.finish()?;
    }
    let reply = dynamo.transact_get(now_ms, &request)?;
    let show = |item: &Option<_>| {
        item.as_deref().map_or_else(|| json!({}), |item| json!({ "Item": show_item(item) }))
    };
    let mut body = json!({ "Responses": reply.items.iter().map(show).collect::<Vec<_>>() });
    capacity.tell_all(&mut body, dynamo, &reply.consumed);
    Ok(body)
}

/// `TransactWriteItems`
pub(super) fn transact_write(dynamo: &mut Dynamo, now_ms: i64, fields: Fields<'_>) -> DynamoResult<Value> {
    let capacity = ReturnCapacity::read(fields)?;
    let mut request =
        TransactWrite { actions: Vec::new(), token: fields.string("ClientRequestToken")?.map(str::to_owned) };
    for part in fields.list("TransactItems")?.ok_or_else(|| absent("TransactItems"))? {
        request.actions.push(action(Fields::of(part)?)?);
    }
    let reply = dynamo.transact_write(now_ms, &request)?;
    let mut body = json!({});
    capacity.tell_all(&mut body, dynamo, &reply.consumed);
    Ok(body)
}

fn action(part: Fields<'_>) -> DynamoResult<TransactAction> {
    let (check, put) = (part.object("ConditionCheck")?, part.object("Put")?);
    let (update, delete) = (part.object("Update")?, part.object("Delete")?);
    match (check, put, update, delete) {
        (Some(check), None, None, None) => condition_check(check).map(TransactAction::Check),
        (None, Some(put), None, None) => items::put(put, false).map(TransactAction::Put),
        (None, None, Some(update), None) => items::update(update, false).map(TransactAction::Update),
        (None, None, None, Some(delete)) => items::delete(delete, false).map(TransactAction::Delete),
        _ => Err(ApiError::validation("TransactItems can only contain one of Check, Put, Update or Delete")),
    }
}

fn condition_check(fields: Fields<'_>) -> DynamoResult<ConditionCheck> {
    let mut expressions = Expressions::read(fields, &["ConditionExpression"], &[])?;
    let check = ConditionCheck {
        table: fields.table()?,
        key: fields.required_item("Key")?,
        condition: expressions.condition()?.ok_or_else(|| absent("ConditionExpression"))?,
        old_on_failure: items::old_on_failure(fields)?,
    };
    expressions.finish()?;
    Ok(check)
}
