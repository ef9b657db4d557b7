//! Get, put, update and delete in JSON.

use super::ReturnCapacity;
use super::body::{Fields, absent};
use super::expressions::Expressions;
use super::legacy;
use super::value::show_item;
use crate::dynamo::requests::{DeleteItem, GetItem, PutItem, ReturnValues, UpdateItem, WriteReply};
use crate::dynamo::{Dynamo, DynamoResult};
use serde_json::{Value, json};

const RETURN_VALUES: [(&str, ReturnValues); 5] = [
    ("ALL_NEW", ReturnValues::AllNew),
    ("UPDATED_OLD", ReturnValues::UpdatedOld),
    ("ALL_OLD", ReturnValues::AllOld),
    ("NONE", ReturnValues::None),
    ("UPDATED_NEW", ReturnValues::UpdatedNew),
];

/// `GetItem`
pub(super) fn get_item(dynamo: &mut Dynamo, now_ms: i64, fields: Fields<'_>) -> DynamoResult<Value> {
    let capacity = ReturnCapacity::read(fields)?;
    let mut expressions = Expressions::read(fields, &["ProjectionExpression"], &["AttributesToGet"])?;
    let request = GetItem {
        table: fields.table()?,
        key: fields.required_item("Key")?,
        consistent: fields.flag("ConsistentRead")?,
        projection: expressions.projection()?,
        as_of: None,
    };
    expressions.finish()?;
    let reply = dynamo.get_item(now_ms, &request)?;
    let mut body = json!({});
    if let Some(item) = &reply.item {
        body["Item"] = show_item(item);
    }
    capacity.tell(&mut body, dynamo, &request.table, &reply.consumed);
    Ok(body)
}

/// `PutItem`
pub(super) fn put_item(dynamo: &mut Dynamo, now_ms: i64, fields: Fields<'_>) -> DynamoResult<Value> {
    let capacity = ReturnCapacity::read(fields)?;
    let request = put(fields, true)?;
    let reply = dynamo.put_item(now_ms, &request)?;
    Ok(show_write(dynamo, &request.table, &reply, capacity))
}

/// `DeleteItem`
pub(super) fn delete_item(dynamo: &mut Dynamo, now_ms: i64, fields: Fields<'_>) -> DynamoResult<Value> {
    let capacity = ReturnCapacity::read(fields)?;
    let request = delete(fields, true)?;
    let reply = dynamo.delete_item(now_ms, &request)?;
    Ok(show_write(dynamo, &request.table, &reply, capacity))
}

/// `UpdateItem`
pub(super) fn update_item(dynamo: &mut Dynamo, now_ms: i64, fields: Fields<'_>) -> DynamoResult<Value> {
    let capacity = ReturnCapacity::read(fields)?;
    let request = update(fields, true)?;
    let reply = dynamo.update_item(now_ms, &request)?;
    Ok(show_write(dynamo, &request.table, &reply, capacity))
}

fn show_write(dynamo: &Dynamo, table: &str, reply: &WriteReply, capacity: ReturnCapacity) -> Value {
    let mut body = json!({});
    if let Some(attributes) = &reply.attributes {
        body["Attributes"] = show_item(attributes);
    }
    capacity.tell(&mut body, dynamo, table, &reply.consumed);
    body
}

/// A put, alone (`legacy` parameters allowed) or in a transaction.
pub(super) fn put(fields: Fields<'_>, alone: bool) -> DynamoResult<PutItem> {
    let mut expressions = Expressions::read(fields, &["ConditionExpression"], old_condition(alone))?;
    let request = PutItem {
        table: fields.table()?,
        item: fields.required_item("Item")?,
        condition: condition(&mut expressions, fields, alone)?,
        return_values: return_values(fields, alone)?,
        old_on_failure: old_on_failure(fields)?,
    };
    expressions.finish()?;
    Ok(request)
}

/// A delete, alone or in a transaction.
pub(super) fn delete(fields: Fields<'_>, alone: bool) -> DynamoResult<DeleteItem> {
    let mut expressions = Expressions::read(fields, &["ConditionExpression"], old_condition(alone))?;
    let request = DeleteItem {
        table: fields.table()?,
        key: fields.required_item("Key")?,
        condition: condition(&mut expressions, fields, alone)?,
        return_values: return_values(fields, alone)?,
        old_on_failure: old_on_failure(fields)?,
    };
    expressions.finish()?;
    Ok(request)
}

/// The old parameters of a condition, which transactions do not know.
fn old_condition(alone: bool) -> &'static [&'static str] {
    if alone { &["Expected", "ConditionalOperator"] } else { &[] }
}

/// An update, alone or in a transaction.
pub(super) fn update(fields: Fields<'_>, alone: bool) -> DynamoResult<UpdateItem> {
    let old: &[&str] = if alone { &["AttributeUpdates", "Expected", "ConditionalOperator"] } else { &[] };
    let mut expressions = Expressions::read(fields, &["UpdateExpression", "ConditionExpression"], old)?;
    let update = match expressions.update()? {
        Some(update) => update,
        None if alone => legacy::attribute_updates(fields)?.unwrap_or_default(),
        None => return Err(absent("UpdateExpression")),
    };
    let request = UpdateItem {
        table: fields.table()?,
        key: fields.required_item("Key")?,
        update,
        condition: condition(&mut expressions, fields, alone)?,
        return_values: return_values(fields, alone)?,
        old_on_failure: old_on_failure(fields)?,
    };
    expressions.finish()?;
    Ok(request)
}

fn condition(
    expressions: &mut Expressions<'_>, fields: Fields<'_>, alone: bool,
) -> DynamoResult<Option<crate::dynamo::expr::Condition>> {
    match expressions.condition()? {
        None if alone => legacy::expected(fields),
        parsed => Ok(parsed),
    }
}

fn return_values(fields: Fields<'_>, alone: bool) -> DynamoResult<ReturnValues> {
    let wanted = if alone { fields.choice("ReturnValues", &RETURN_VALUES)? } else { None };
    Ok(wanted.unwrap_or_default())
}

/// Whether a failed condition answers with the item.
pub(super) fn old_on_failure(fields: Fields<'_>) -> DynamoResult<bool> {
    let choices = [("ALL_OLD", true), ("NONE", false)];
    Ok(fields.choice("ReturnValuesOnConditionCheckFailure", &choices)?.unwrap_or(false))
}
