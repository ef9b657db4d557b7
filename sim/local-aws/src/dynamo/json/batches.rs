//! Batches in JSON.

use super::ReturnCapacity;
use super::body::{Fields, absent, table_name, unexpected_structure};
use super::expressions::Expressions;
use super::value::{parse_item, show_item};
use crate::constraint::refuse_if;
use crate::dynamo::requests::{BatchGet, BatchGetTable, BatchWrite, BatchWriteAction};
use crate::dynamo::{ApiError, Dynamo, DynamoResult};
use serde_json::{Map, Value, json};

/// `BatchGetItem`
pub(super) fn batch_get(dynamo: &mut Dynamo, now_ms: i64, fields: Fields<'_>) -> DynamoResult<Value> {
    let capacity = ReturnCapacity::read(fields)?;
    let asked = requested(fields)?;
    let mut request = BatchGet::default();
    for (name, part) in asked.each() {
        let part = Fields::of(part)?;
        let mut expressions = Expressions::read(part, &["ProjectionExpression"], &["AttributesToGet"])?;
        let keys = part.list("Keys")?.ok_or_else(|| absent(&format!("requestItems.{name}.member.keys")))?;
        refuse_if(keys.is_empty(), || too_few(&format!("requestItems.{name}.member.keys")))?;
        request.tables.push(BatchGetTable {
            table: table_name(name)?,
            keys: keys.iter().map(parse_item).collect::<Result<_, _>>()?,
            consistent: part.flag("ConsistentRead")?,
            projection: expressions.projection()?,
        });
        expressions.finish()?;
    }
    let reply = dynamo.batch_get(now_ms, &request)?;
    let (mut responses, mut unprocessed) = (Map::new(), Map::new());
    for ((name, part), read) in asked.each().zip(&reply.tables) {
        responses.insert(name.clone(), read.items.iter().map(|item| show_item(item)).collect());
        if !read.unprocessed.is_empty() {
            // Asked again as it was asked, for the rest of the keys.
            let mut rest = part.clone();
            rest["Keys"] = read.unprocessed.iter().map(show_item).collect();
            unprocessed.insert(name.clone(), rest);
        }
    }
    let mut body = json!({ "Responses": responses, "UnprocessedKeys": unprocessed });
    let costs: Vec<_> = reply.tables.into_iter().map(|read| (read.table, read.consumed)).collect();
    capacity.tell_all(&mut body, dynamo, &costs);
    Ok(body)
}

/// `BatchWriteItem`
pub(super) fn batch_write(dynamo: &mut Dynamo, now_ms: i64, fields: Fields<'_>) -> DynamoResult<Value> {
    let capacity = ReturnCapacity::read(fields)?;
    let asked = requested(fields)?;
    let mut request = BatchWrite::default();
    for (name, writes) in asked.each() {
        let table = table_name(name)?;
        let Value::Array(writes) = writes else {
            return Err(unexpected_structure());
        };
        refuse_if(writes.is_empty(), || too_few(&format!("requestItems.{name}.member")))?;
        for write in writes {
            let write = Fields::of(write)?;
            let action = match (write.object("PutRequest")?, write.object("DeleteRequest")?) {
                (Some(put), None) => BatchWriteAction::Put(put.required_item("Item")?),
                (None, Some(delete)) => BatchWriteAction::Delete(delete.required_item("Key")?),
                _ => {
                    return Err(ApiError::validation(
                        "Supplied AttributeValue has more than one datatypes set, must contain exactly one of \
                         the supported datatypes",
                    ));
                }
            };
            request.writes.push((table.clone(), action));
        }
    }
    let reply = dynamo.batch_write(now_ms, &request)?;
    let mut unprocessed = json!({});
    for (name, action) in &reply.unprocessed {
        let write = match action {
            BatchWriteAction::Put(item) => json!({ "PutRequest": { "Item": show_item(item) } }),
            BatchWriteAction::Delete(key) => json!({ "DeleteRequest": { "Key": show_item(key) } }),
        };
        match &mut unprocessed[name] {
            Value::Array(list) => list.push(write),
            absent => *absent = json!([write]),
        }
    }
    let mut body = json!({ "UnprocessedItems": unprocessed });
    capacity.tell_all(&mut body, dynamo, &reply.consumed);
    Ok(body)
}

fn requested(fields: Fields<'_>) -> DynamoResult<Fields<'_>> {
    let asked = fields.required_object("RequestItems")?;
    refuse_if(asked.each().next().is_none(), || too_few("requestItems"))?;
    Ok(asked)
}

fn too_few(member: &str) -> ApiError {
    ApiError::unmet(format_args!("Value at '{member}'"), "have length greater than or equal to 1")
}
