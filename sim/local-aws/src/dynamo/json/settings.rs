//! Continuous backups, expiry, tags and account-wide questions in JSON.

use super::body::{Fields, absent};
use super::seconds;
use crate::dynamo::{ApiError, Backups, Dynamo, DynamoResult};
use serde_json::{Value, json};

/// `UpdateContinuousBackups`
pub(super) fn update_continuous_backups(
    dynamo: &mut Dynamo, now_ms: i64, fields: Fields<'_>,
) -> DynamoResult<Value> {
    let wanted = fields.required_object("PointInTimeRecoverySpecification")?;
    let enabled = wanted.boolean("PointInTimeRecoveryEnabled")?;
    let enabled = enabled.ok_or_else(|| absent("PointInTimeRecoveryEnabled"))?;
    let days = wanted.number("RecoveryPeriodInDays")?.map(|days| u32::try_from(days).unwrap_or(u32::MAX));
    let backups = dynamo.update_continuous_backups(now_ms, &fields.table()?, enabled, days)?;
    Ok(show_backups(backups, now_ms))
}

/// `DescribeContinuousBackups`
pub(super) fn describe_continuous_backups(
    dynamo: &mut Dynamo, now_ms: i64, fields: Fields<'_>,
) -> DynamoResult<Value> {
    let backups = dynamo.describe_continuous_backups(now_ms, &fields.table()?)?;
    Ok(show_backups(backups, now_ms))
}

fn show_backups(backups: Backups, now_ms: i64) -> Value {
    let recovery = match backups.since_ms {
        None => json!({ "PointInTimeRecoveryStatus": "DISABLED" }),
        Some(since) => {
            let reach = i64::from(backups.period_days) * 24 * 3600 * 1000;
            json!({
                "PointInTimeRecoveryStatus": "ENABLED",
                "RecoveryPeriodInDays": backups.period_days,
                "EarliestRestorableDateTime": seconds(since.max(now_ms.saturating_sub(reach))),
                "LatestRestorableDateTime": seconds(now_ms),
            })
        }
    };
    json!({
        "ContinuousBackupsDescription": {
            "ContinuousBackupsStatus": "ENABLED",
            "PointInTimeRecoveryDescription": recovery,
        }
    })
}

/// `UpdateTimeToLive`
pub(super) fn update_time_to_live(
    dynamo: &mut Dynamo, now_ms: i64, fields: Fields<'_>,
) -> DynamoResult<Value> {
    let wanted = fields.required_object("TimeToLiveSpecification")?;
    let attribute = wanted.required_string("AttributeName")?;
    let enabled = wanted.boolean("Enabled")?.ok_or_else(|| absent("Enabled"))?;
    dynamo.update_time_to_live(now_ms, &fields.table()?, attribute, enabled)?;
    Ok(json!({ "TimeToLiveSpecification": { "AttributeName": attribute, "Enabled": enabled } }))
}

/// `DescribeTimeToLive`
pub(super) fn describe_time_to_live(
    dynamo: &mut Dynamo, now_ms: i64, fields: Fields<'_>,
) -> DynamoResult<Value> {
    let description = match dynamo.describe_time_to_live(now_ms, &fields.table()?)? {
        None => json!({ "TimeToLiveStatus": "DISABLED" }),
        Some(name) => json!({ "TimeToLiveStatus": "ENABLED", "AttributeName": name }),
    };
    Ok(json!({ "TimeToLiveDescription": description }))
}

/// `TagResource`
pub(super) fn tag_resource(dynamo: &mut Dynamo, now_ms: i64, fields: Fields<'_>) -> DynamoResult<Value> {
    let arn = resource(fields)?;
    let tags = super::tables::tags(fields)?.ok_or_else(|| absent("Tags"))?;
    dynamo.tag_resource(now_ms, arn, &tags)?;
    Ok(json!({}))
}

/// `UntagResource`
pub(super) fn untag_resource(dynamo: &mut Dynamo, now_ms: i64, fields: Fields<'_>) -> DynamoResult<Value> {
    let arn = resource(fields)?;
    let keys = fields.strings("TagKeys")?.ok_or_else(|| absent("TagKeys"))?;
    dynamo.untag_resource(now_ms, arn, &keys)?;
    Ok(json!({}))
}

/// `ListTagsOfResource`
pub(super) fn list_tags(dynamo: &mut Dynamo, now_ms: i64, fields: Fields<'_>) -> DynamoResult<Value> {
    let tags = dynamo.list_tags(now_ms, resource(fields)?)?;
    let tags: Vec<Value> = tags.iter().map(|(key, value)| json!({ "Key": key, "Value": value })).collect();
    Ok(json!({ "Tags": tags }))
}

fn resource(fields: Fields<'_>) -> DynamoResult<&str> {
    fields.string("ResourceArn")?.ok_or_else(|| ApiError::validation("Invalid TableArn"))
}

/// `DescribeLimits`: the quotas of a new account.
pub(super) fn describe_limits(_: &mut Dynamo, _: i64, _: Fields<'_>) -> DynamoResult<Value> {
    Ok(json!({
        "AccountMaxReadCapacityUnits": 80_000,
        "AccountMaxWriteCapacityUnits": 80_000,
        "TableMaxReadCapacityUnits": 40_000,
        "TableMaxWriteCapacityUnits": 40_000,
    }))
}

/// `DescribeEndpoints`
pub(super) fn describe_endpoints(dynamo: &mut Dynamo, _: i64, _: Fields<'_>) -> DynamoResult<Value> {
    let address = format!("dynamodb.{}.amazonaws.com", dynamo.config().region);
    Ok(json!({ "Endpoints": [{ "Address": address, "CachePeriodInMinutes": 1440 }] }))
}
