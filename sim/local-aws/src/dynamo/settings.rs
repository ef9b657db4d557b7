//! Settings of a table beside its shape: continuous backups, expiry, tags.

use super::Dynamo;
use super::error::{ApiError, DynamoResult};
use super::table::{Backups, Status, Table};
use crate::constraint::refuse_if;
use std::collections::BTreeMap;

/// The days back to which a table can be restored, unless said otherwise.
const BACKUP_DAYS: u32 = 35;
const MAX_TAGS: usize = 50;

impl Dynamo {
    /// `UpdateContinuousBackups`: switches point-in-time recovery.
    pub fn update_continuous_backups(
        &mut self, now_ms: i64, name: &str, enabled: bool, period_days: Option<u32>,
    ) -> DynamoResult<Backups> {
        if period_days.is_some_and(|days| !(1..=BACKUP_DAYS).contains(&days)) {
            return Err(ApiError::unmet(
                "Value at 'pointInTimeRecoverySpecification.recoveryPeriodInDays'",
                "have value between 1 and 35",
            ));
        }
        let table = self.backed_up(now_ms, name)?;
        table.backups = if enabled {
            Backups {
                since_ms: table.backups.since_ms.or(Some(now_ms)),
                period_days: period_days.unwrap_or(BACKUP_DAYS),
            }
        } else {
            Backups::default()
        };
        Ok(table.backups)
    }

    /// `DescribeContinuousBackups`.
    pub fn describe_continuous_backups(&mut self, now_ms: i64, name: &str) -> DynamoResult<Backups> {
        Ok(self.backed_up(now_ms, name)?.backups)
    }

    fn backed_up(&mut self, now_ms: i64, name: &str) -> DynamoResult<&mut Table> {
        self.advance(now_ms);
        match self.tables.get_mut(name) {
            Some(table) if table.status == Status::Creating => Err(ApiError::new(
                "ContinuousBackupsUnavailableException",
                format!("Backups are being enabled for the table: {name}. Please retry later"),
            )),
            Some(table) if table.status != Status::Deleting => Ok(table),
            _ => Err(ApiError::new("TableNotFoundException", format!("Table not found: {name}"))),
        }
    }

    /// `UpdateTimeToLive`.
    pub fn update_time_to_live(
        &mut self, now_ms: i64, name: &str, attribute: &str, enabled: bool,
    ) -> DynamoResult<()> {
        self.advance(now_ms);
        if !(1..=255).contains(&attribute.len()) {
            let place = "Value at 'timeToLiveSpecification.attributeName'";
            return Err(ApiError::unmet(place, "have length between 1 and 255"));
        }
        let table = self.found_mut(name)?;
        table.refuse_if_changing()?;
        match (&table.ttl, enabled) {
            (Some(current), _) if current != attribute => Err(ApiError::validation(format!(
                "TimeToLive is active on a different AttributeName: current AttributeName is {current}"
            ))),
            (Some(_), true) => Err(ApiError::validation("TimeToLive is already enabled")),
            (None, false) => Err(ApiError::validation("TimeToLive is already disabled")),
            (_, enabled) => {
                table.ttl = enabled.then(|| attribute.to_owned());
                Ok(())
            }
        }
    }

    /// `DescribeTimeToLive`: the attribute, where enabled.
    pub fn describe_time_to_live(&mut self, now_ms: i64, name: &str) -> DynamoResult<Option<&str>> {
        self.advance(now_ms);
        Ok(self.found(name)?.ttl.as_deref())
    }

    /// `TagResource`.
    pub fn tag_resource(
        &mut self, now_ms: i64, arn: &str, tags: &BTreeMap<String, String>,
    ) -> DynamoResult<()> {
        if tags.is_empty() {
            return Err(ApiError::validation("Atleast one Tag needs to be provided as Input."));
        }
        check_tags(tags)?;
        let table = self.tagged(now_ms, arn)?;
        let mut all = table.tags.clone();
        all.extend(tags.clone());
        check_tags(&all)?;
        table.tags = all;
        Ok(())
    }

    /// `UntagResource`.
    pub fn untag_resource(&mut self, now_ms: i64, arn: &str, keys: &[&str]) -> DynamoResult<()> {
        if keys.is_empty() {
            return Err(ApiError::validation("Atleast one Tag Key needs to be provided as Input."));
        }
        let table = self.tagged(now_ms, arn)?;
        table.tags.retain(|key, _| !keys.contains(&key.as_str()));
        Ok(())
    }

    /// `ListTagsOfResource`.
    pub fn list_tags(&mut self, now_ms: i64, arn: &str) -> DynamoResult<&BTreeMap<String, String>> {
        self.tagged(now_ms, arn).map(|table| &table.tags)
    }

    fn tagged(&mut self, now_ms: i64, arn: &str) -> DynamoResult<&mut Table> {
        self.advance(now_ms);
        let Some(name) = arn.strip_prefix(&self.arn("")).map(str::to_owned) else {
            if table_of_arn(arn).is_some() {
                return Err(ApiError::new(
                    "AccessDeniedException",
                    format!("User is not authorized to perform this action on resource: {arn}"),
                ));
            }
            return Err(ApiError::validation(format!(
                "Invalid TableArn: Invalid ResourceArn provided as input {arn}"
            )));
        };
        self.tables.get_mut(&name).ok_or_else(|| {
            ApiError::new(
                "ResourceNotFoundException",
                format!("Requested resource not found: ResourcArn: {arn} not found"),
            )
        })
    }

    /// The ARN of a table of this account and region.
    pub fn arn(&self, table: &str) -> String {
        format!("arn:aws:dynamodb:{}:{}:table/{table}", self.config.region, self.config.account_id)
    }
}

/// The table an ARN names.
pub fn table_of_arn(arn: &str) -> Option<&str> {
    let mut parts = arn.splitn(6, ':');
    let fits = parts.next() == Some("arn") && parts.next().is_some() && parts.next() == Some("dynamodb");
    parts.nth(2).and_then(|rest| rest.strip_prefix("table/")).filter(|name| fits && !name.is_empty())
}

pub(super) fn check_tags(tags: &BTreeMap<String, String>) -> DynamoResult<()> {
    refuse_if(tags.len() > MAX_TAGS, || ApiError::invalid_parameter("Too many tags"))?;
    for (key, value) in tags {
        let complaint =
            |constraint| Err(ApiError::unmet(format_args!("Value '{key}' at 'tags'"), constraint));
        if key.is_empty() || key.chars().count() > 128 {
            return complaint("have length between 1 and 128");
        }
        if value.chars().count() > 256 {
            return complaint("have length less than or equal to 256");
        }
        if key.to_ascii_lowercase().starts_with("aws:") {
            return Err(ApiError::validation("Tag keys cannot start with 'aws:'"));
        }
    }
    Ok(())
}
