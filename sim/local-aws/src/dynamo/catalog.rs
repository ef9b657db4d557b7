//! Tables are created, described, listed and deleted.

use super::Dynamo;
use super::error::{ApiError, DynamoResult};
use super::index::{Index, IndexProjection, IndexSpec};
use super::key::{KeyAttribute, KeySchema};
use super::settings::check_tags;
use super::store::Store;
use super::table::{Backups, Billing, Status, Table};
use crate::constraint::beyond;
use crate::constraint::refuse_if;
use std::collections::BTreeMap;

/// The most global indexes of a table.
pub(super) const MAX_GLOBAL_INDEXES: usize = 20;
/// The most local indexes of a table.
const MAX_LOCAL_INDEXES: usize = 5;
/// The largest provisioned capacity of a request.
const MAX_CAPACITY: u64 = 1_000_000_000_000;

/// Creates a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateTable {
    /// Its name.
    pub name: String,
    /// Its key.
    pub schema: KeySchema,
    /// The key attributes of the table and its indexes.
    pub definitions: Vec<KeyAttribute>,
    /// Its indexes.
    pub indexes: Vec<IndexSpec>,
    /// The billing mode.
    pub billing: Billing,
    /// Whether the table is protected from deletion.
    pub deletion_protection: bool,
    /// The table's class, if the request names a class.
    pub class: Option<String>,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
}

impl CreateTable {
    /// An on-demand table without indexes.
    pub fn new(name: impl Into<String>, schema: KeySchema) -> Self {
        Self {
            name: name.into(),
            definitions: schema.attributes().cloned().collect(),
            schema,
            indexes: Vec::new(),
            billing: Billing::OnDemand,
            deletion_protection: false,
            class: None,
            tags: BTreeMap::new(),
        }
    }
}

/// A page of table names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableNames {
    /// The names, in order.
    pub names: Vec<String>,
    /// The last name of the page, if more tables follow.
    pub last: Option<String>,
}

impl Dynamo {
    /// `CreateTable`.
    pub fn create_table(&mut self, now_ms: i64, request: &CreateTable) -> DynamoResult<&Table> {
        self.advance(now_ms);
        check_name(&request.name)?;
        check_definitions(request)?;
        check_billing(request.billing)?;
        check_tags(&request.tags)?;
        check_indexes(&request.indexes, request.billing)?;
        if self.tables.contains_key(&request.name) {
            return Err(ApiError::in_use(format!("Table already exists: {}", request.name)));
        }
        if self.tables.len() >= self.config.max_tables {
            let count = self.tables.len();
            return Err(ApiError::limit(format_args!(
                "Account already has {count} tables, which is the limit"
            )));
        }
        let changing = self.tables.values().filter(|table| table.status != Status::Active).count();
        if changing >= self.config.max_changing_tables {
            return Err(ApiError::limit(format_args!(
                "Only {} tables can be created, updated, or deleted simultaneously",
                self.config.max_changing_tables
            )));
        }
        let store = Store::new(self.config.keep_versions);
        let build = |spec: &IndexSpec| {
            let status = if spec.local { Status::Active } else { Status::Creating };
            let until = (!spec.local).then(|| now_ms.saturating_add(self.config.create_ms));
            Index::build(spec.clone(), status, until, &store)
        };
        let indexes = request.indexes.iter().map(build).collect();
        self.lives += 1;
        let table = Table {
            name: request.name.clone(),
            life: self.lives,
            schema: request.schema.clone(),
            definitions: request.definitions.clone(),
            status: Status::Creating,
            until_ms: Some(now_ms.saturating_add(self.config.create_ms)),
            created_ms: now_ms,
            billing: request.billing,
            on_demand_since_ms: (request.billing == Billing::OnDemand).then_some(now_ms),
            deletion_protection: request.deletion_protection,
            class: request.class.clone(),
            tags: request.tags.clone(),
            backups: Backups::default(),
            ttl: None,
            indexes,
            store,
            reads: Default::default(),
            writes: Default::default(),
            enforce: self.config.throttle,
            burst_seconds: self.config.burst_seconds,
        };
        self.tables.insert(request.name.clone(), table);
        self.reschedule();
        self.found(&request.name)
    }

    /// `DescribeTable`.
    pub fn describe_table(&mut self, now_ms: i64, name: &str) -> DynamoResult<&Table> {
        self.advance(now_ms);
        self.found(name)
    }

    /// `DeleteTable`. The answer shows the table with its status `DELETING`.
    pub fn delete_table(&mut self, now_ms: i64, name: &str) -> DynamoResult<&Table> {
        self.advance(now_ms);
        let delay = self.config.delete_ms;
        let table = self.found_mut(name)?;
        table.refuse_if_changing()?;
        if table.deletion_protection {
            return Err(ApiError::validation(
                "Resource cannot be deleted as it is currently protected against deletion. \
                 Disable deletion protection first.",
            ));
        }
        table.status = Status::Deleting;
        table.until_ms = Some(now_ms.saturating_add(delay));
        self.reschedule();
        self.found(name)
    }

    /// `ListTables`.
    pub fn list_tables(
        &mut self, now_ms: i64, after: Option<&str>, limit: Option<usize>,
    ) -> DynamoResult<TableNames> {
        self.advance(now_ms);
        let limit = limit.unwrap_or(100);
        if let Some(bound) = beyond(limit, 1, 100) {
            let place = format_args!("Value '{limit}' at 'limit'");
            return Err(ApiError::unmet(place, format_args!("have value {bound}")));
        }
        let mut names =
            self.tables.keys().filter(|name| after.is_none_or(|after| name.as_str() > after)).cloned();
        let page: Vec<String> = names.by_ref().take(limit).collect();
        let last = names.next().and_then(|_| page.last().cloned());
        Ok(TableNames { names: page, last })
    }

    pub(super) fn found(&self, name: &str) -> DynamoResult<&Table> {
        self.tables.get(name).ok_or_else(|| ApiError::no_table(name))
    }

    pub(super) fn found_mut(&mut self, name: &str) -> DynamoResult<&mut Table> {
        self.tables.get_mut(name).ok_or_else(|| ApiError::no_table(name))
    }
}

impl Table {
    /// Refuses a change during another change of the table.
    pub(super) fn refuse_if_changing(&self) -> DynamoResult<()> {
        let doing = match self.status {
            Status::Active => return Ok(()),
            Status::Creating => "created",
            Status::Updating => "updated",
            Status::Deleting => "deleted",
        };
        Err(ApiError::in_use(format!(
            "Attempt to change a resource which is still in use: Table is being {doing}: {}",
            self.name
        )))
    }
}

/// Refuses an invalid name of a table or an index.
pub(super) fn check_name(name: &str) -> DynamoResult<()> {
    refuse_if(!(3..=255).contains(&name.len()), || {
        ApiError::validation("TableName must be at least 3 characters long and at most 255 characters long")
    })?;
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte)) {
        let place = format_args!("Value '{name}' at 'tableName'");
        return Err(ApiError::unmet(place, "satisfy regular expression pattern: [a-zA-Z0-9_.-]+"));
    }
    Ok(())
}

fn check_definitions(request: &CreateTable) -> DynamoResult<()> {
    let defined: Vec<&str> = request.definitions.iter().map(|definition| definition.name.as_ref()).collect();
    let schemas = std::iter::once(&request.schema).chain(request.indexes.iter().map(|index| &index.schema));
    let used: Vec<&str> =
        schemas.flat_map(KeySchema::attributes).map(|attribute| attribute.name.as_ref()).collect();
    if defined.iter().all(|name| used.contains(name)) {
        return Ok(());
    }
    if request.indexes.is_empty() {
        return Err(ApiError::invalid_parameter(
            "Number of attributes in KeySchema does not exactly match number of attributes defined in \
             AttributeDefinitions",
        ));
    }
    Err(ApiError::invalid_parameter(format_args!(
        "Some AttributeDefinitions are not used. AttributeDefinitions: [{}], keys used: [{}]",
        defined.join(", "),
        used.join(", ")
    )))
}

/// Refuses capacity out of bounds.
pub(super) fn check_billing(billing: Billing) -> DynamoResult<()> {
    let Billing::Provisioned(throughput) = billing else {
        return Ok(());
    };
    for (kind, units) in [("Read", throughput.read), ("Write", throughput.write)] {
        if units == 0 {
            let member = kind.to_ascii_lowercase();
            let place = format_args!("Value '0' at 'provisionedThroughput.{member}CapacityUnits'");
            return Err(ApiError::unmet(place, "have value greater than or equal to 1"));
        }
        if units > MAX_CAPACITY {
            let message = format!("Given value {units} for {kind}CapacityUnits is out of bounds");
            return Err(ApiError::validation(message));
        }
    }
    Ok(())
}

fn check_indexes(indexes: &[IndexSpec], billing: Billing) -> DynamoResult<()> {
    for (at, index) in indexes.iter().enumerate() {
        check_index(index, billing)?;
        if indexes[..at].iter().any(|other| other.name == index.name) {
            return Err(ApiError::invalid_parameter(format_args!("Duplicate index name: {}", index.name)));
        }
    }
    let global = indexes.iter().filter(|index| !index.local).count();
    if global > MAX_GLOBAL_INDEXES {
        return Err(ApiError::invalid_parameter(format_args!(
            "GlobalSecondaryIndex count exceeds the per-table limit of {MAX_GLOBAL_INDEXES}"
        )));
    }
    if indexes.len() - global > MAX_LOCAL_INDEXES {
        return Err(ApiError::invalid_parameter(format_args!(
            "Number of LocalSecondaryIndexes exceeds per-table limit of {MAX_LOCAL_INDEXES}"
        )));
    }
    Ok(())
}

pub(super) fn check_index(index: &IndexSpec, billing: Billing) -> DynamoResult<()> {
    check_name(&index.name).map_err(|error| {
        ApiError::validation(
            error.message.replace("TableName", "IndexName").replace("tableName", "indexName"),
        )
    })?;
    if let IndexProjection::Include(names) = &index.projection
        && names.is_empty()
    {
        return Err(ApiError::invalid_parameter(
            "ProjectionType is INCLUDE, but NonKeyAttributes is not specified",
        ));
    }
    match (index.throughput, billing) {
        (Some(_), Billing::OnDemand) => Err(paid_twice(&index.name)),
        (None, Billing::Provisioned(_)) if !index.local => Err(unpaid(&index.name)),
        (Some(throughput), Billing::Provisioned(_)) => check_billing(Billing::Provisioned(throughput)),
        _ => Ok(()),
    }
}

/// The refusal of an index with capacity in an on-demand table.
pub(super) fn paid_twice(index: &str) -> ApiError {
    ApiError::invalid_parameter(format_args!(
        "ProvisionedThroughput should not be specified for index: {index} when BillingMode is PAY_PER_REQUEST"
    ))
}

/// The refusal of an index without capacity in a provisioned table.
pub(super) fn unpaid(index: &str) -> ApiError {
    ApiError::invalid_parameter(format_args!("ProvisionedThroughput must be specified for index: {index}"))
}
