//! Query and scan in JSON.

use super::ReturnCapacity;
use super::body::Fields;
use super::expressions::Expressions;
use super::legacy;
use super::value::show_item;
use crate::constraint::beyond;
use crate::dynamo::expr::Condition;
use crate::dynamo::requests::{Page, Query, Scan, Select};
use crate::dynamo::{ApiError, Dynamo, DynamoResult};
use serde_json::{Value, json};

/// `Query`
pub(super) fn query(dynamo: &mut Dynamo, now_ms: i64, fields: Fields<'_>) -> DynamoResult<Value> {
    let capacity = ReturnCapacity::read(fields)?;
    let names = ["ProjectionExpression", "FilterExpression", "KeyConditionExpression"];
    // The old key conditions may stand beside a new filter, but not beside new key conditions.
    let old = ["AttributesToGet", "QueryFilter", "ConditionalOperator", "KeyConditions"];
    let old = &old[..if fields.has("KeyConditionExpression") { 4 } else { 3 }];
    let mut expressions = Expressions::read(fields, &names, old)?;
    let key = match expressions.key_condition()? {
        Some(key) => key,
        None => legacy::key_conditions(fields)?.ok_or_else(no_key)?,
    };
    let filter = filter(&mut expressions, fields, "QueryFilter")?;
    let request = Query {
        table: fields.table()?,
        index: fields.string("IndexName")?.map(str::to_owned),
        key,
        filter,
        projection: expressions.projection()?,
        select: select(fields)?,
        limit: fields.count("Limit")?,
        start: start(fields)?,
        backward: fields.boolean("ScanIndexForward")? == Some(false),
        consistent: fields.flag("ConsistentRead")?,
        as_of: None,
    };
    expressions.finish()?;
    let page = dynamo.query(now_ms, &request)?;
    Ok(show_page(dynamo, &request.table, &page, request.select, capacity))
}

/// `Scan`
pub(super) fn scan(dynamo: &mut Dynamo, now_ms: i64, fields: Fields<'_>) -> DynamoResult<Value> {
    let capacity = ReturnCapacity::read(fields)?;
    let names = ["ProjectionExpression", "FilterExpression"];
    let old = ["AttributesToGet", "ScanFilter", "ConditionalOperator"];
    let mut expressions = Expressions::read(fields, &names, &old)?;
    let filter = filter(&mut expressions, fields, "ScanFilter")?;
    let request = Scan {
        table: fields.table()?,
        index: fields.string("IndexName")?.map(str::to_owned),
        filter,
        projection: expressions.projection()?,
        select: select(fields)?,
        limit: fields.count("Limit")?,
        start: start(fields)?,
        segment: segment(fields)?,
        consistent: fields.flag("ConsistentRead")?,
        as_of: None,
    };
    expressions.finish()?;
    let page = dynamo.scan(now_ms, &request)?;
    Ok(show_page(dynamo, &request.table, &page, request.select, capacity))
}

/// The filter of a request: a `FilterExpression`, or else the older parameter named `old`.
fn filter(
    expressions: &mut Expressions<'_>, fields: Fields<'_>, old: &str,
) -> DynamoResult<Option<Condition>> {
    expressions.filter()?.map_or_else(|| legacy::filter(fields, old), |parsed| Ok(Some(parsed)))
}

fn show_page(dynamo: &Dynamo, table: &str, page: &Page, select: Select, capacity: ReturnCapacity) -> Value {
    let mut body = json!({ "Count": page.count, "ScannedCount": page.scanned });
    if select != Select::Count {
        body["Items"] = Value::Array(page.items.iter().map(|item| show_item(item)).collect());
    }
    if let Some(key) = &page.last_key {
        body["LastEvaluatedKey"] = show_item(key);
    }
    capacity.tell(&mut body, dynamo, table, &page.consumed);
    body
}

fn select(fields: Fields<'_>) -> DynamoResult<Select> {
    let names = ["SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES"];
    let parameter = ["ProjectionExpression", "AttributesToGet"].into_iter().find(|name| fields.has(name));
    let without_parameter = |select: Select, what: &str| match parameter {
        None => Ok(select),
        Some(name) => {
            Err(ApiError::validation(format!("Cannot specify the {name} when choosing to get {what}")))
        }
    };
    match fields.one_of("Select", &names)? {
        None => Ok(Select::Default),
        Some("COUNT") => without_parameter(Select::Count, "only the Count"),
        Some("ALL_ATTRIBUTES") => without_parameter(Select::AllAttributes, "ALL_ATTRIBUTES"),
        Some("ALL_PROJECTED_ATTRIBUTES") if !fields.has("IndexName") => Err(ApiError::validation(
            "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName",
        )),
        Some("ALL_PROJECTED_ATTRIBUTES") => without_parameter(Select::Default, "ALL_PROJECTED_ATTRIBUTES"),
        Some(_) if parameter.is_none() => Err(ApiError::validation(
            "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES",
        )),
        Some(_) => Ok(Select::Default),
    }
}

fn start(fields: Fields<'_>) -> DynamoResult<Option<leasehold_engine::table::Item>> {
    fields.item("ExclusiveStartKey").map_err(|error| match error.code {
        "ValidationException" => {
            ApiError::validation(format!("The provided starting key is invalid: {}", error.message))
        }
        _ => error,
    })
}

fn segment(fields: Fields<'_>) -> DynamoResult<Option<(u32, u32)>> {
    let (segment, total) = (fields.number("Segment")?, fields.number("TotalSegments")?);
    let bounded = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let lacks = |absent: &str, present: &str| {
        ApiError::validation(format!(
            "The {absent} parameter is required but was not present in the request when {present}"
        ))
    };
    match (segment, total) {
        (None, None) => Ok(None),
        (Some(_), None) => Err(lacks("TotalSegments", "Segment parameter is present")),
        (None, Some(_)) => Err(lacks("Segment", "parameter TotalSegments is present")),
        (Some(segment), Some(total)) => match beyond(total, 1, 1_000_000) {
            // A segment out of bounds stays out of bounds.
            None => Ok(Some((bounded(segment), bounded(total)))),
            Some(bound) => Err(ApiError::unmet(
                format_args!("Value '{total}' at 'totalSegments'"),
                format_args!("have value {bound}"),
            )),
        },
    }
}

fn no_key() -> ApiError {
    ApiError::validation(
        "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.",
    )
}
