//! `UpdateTable`: billing, capacity, protection, and one index at a time.

use super::Dynamo;
use super::catalog::{MAX_GLOBAL_INDEXES, check_billing, check_index, paid_twice, unpaid};
use super::error::{ApiError, DynamoResult};
use super::index::{Index, IndexSpec};
use super::key::KeyAttribute;
use super::table::{Billing, Status, Table, Throughput};
use crate::constraint::refuse_if;

/// Changes a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpdateTable {
    /// The table.
    pub name: String,
    /// Definitions of new key attributes.
    pub definitions: Vec<KeyAttribute>,
    /// The new billing mode.
    pub billing: Option<Billing>,
    /// Changes of indexes.
    pub indexes: Vec<IndexChange>,
    /// Whether the table is protected from deletion.
    pub deletion_protection: Option<bool>,
    /// Its new class.
    pub class: Option<String>,
}

/// A change of one global index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexChange {
    /// Creates an index. The index is back-filled while the table stays in use.
    Create(IndexSpec),
    /// Gives one other capacity.
    Update(String, Throughput),
    /// Deletes one.
    Delete(String),
}

impl Dynamo {
    /// `UpdateTable`.
    pub fn update_table(&mut self, now_ms: i64, request: &UpdateTable) -> DynamoResult<&Table> {
        self.advance(now_ms);
        let (update_ms, delete_ms) = (self.config.create_ms, self.config.delete_ms);
        let table = self.found_mut(&request.name)?;
        table.refuse_if_changing()?;
        let nothing = request.billing.is_none()
            && request.indexes.is_empty()
            && request.deletion_protection.is_none()
            && request.class.is_none();
        if nothing {
            return Err(ApiError::validation(
                "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, \
                 GlobalSecondaryIndexUpdates or SSESpecification or ReplicaUpdates is required",
            ));
        }
        let billing = request.billing.unwrap_or(table.billing);
        if let Some(wanted) = request.billing {
            check_billing(wanted)?;
            table.refuse_same(wanted)?;
        }
        table.check_definitions(&request.definitions)?;
        table.check_changes(&request.indexes, billing)?;

        // Every check has passed; no later step fails.
        let until = now_ms.saturating_add(update_ms);
        for change in &request.indexes {
            match change {
                IndexChange::Create(spec) => {
                    for part in spec.schema.attributes() {
                        if table.definitions.iter().all(|definition| definition.name != part.name) {
                            table.definitions.push(part.clone());
                        }
                    }
                    // The end is set when back-filling starts.
                    table.indexes.push(Index::build(spec.clone(), Status::Creating, None, &table.store));
                }
                IndexChange::Update(name, throughput) => {
                    table.change_index(name, Status::Updating, until, Some(*throughput));
                }
                IndexChange::Delete(name) => {
                    table.change_index(name, Status::Deleting, now_ms.saturating_add(delete_ms), None);
                }
            }
        }
        if let Some(wanted) = request.billing {
            if wanted == Billing::OnDemand && table.billing != Billing::OnDemand {
                table.on_demand_since_ms = Some(now_ms);
                table.indexes.iter_mut().for_each(|index| index.spec.throughput = None);
            }
            table.billing = wanted;
        }
        if let Some(protection) = request.deletion_protection {
            table.deletion_protection = protection;
        }
        if let Some(class) = &request.class {
            table.class = Some(class.clone());
        }
        if request.billing.is_some() || !request.indexes.is_empty() || request.class.is_some() {
            table.status = Status::Updating;
            table.until_ms = Some(until);
        }
        self.reschedule();
        self.found(&request.name)
    }
}

impl Table {
    fn change_index(&mut self, name: &str, status: Status, until_ms: i64, throughput: Option<Throughput>) {
        if let Some(index) = self.indexes.iter_mut().find(|index| index.spec.name == name) {
            index.spec.throughput = throughput.or(index.spec.throughput);
            index.status = status;
            index.until_ms = Some(until_ms);
        }
    }

    fn refuse_same(&self, wanted: Billing) -> DynamoResult<()> {
        let (Billing::Provisioned(now), Billing::Provisioned(wanted)) = (self.billing, wanted) else {
            return Ok(());
        };
        if now != wanted {
            return Ok(());
        }
        Err(ApiError::validation(format!(
            "The provisioned throughput for the table will not change. The requested value equals the current \
             value. Current ReadCapacityUnits provisioned for the table: {}. Requested ReadCapacityUnits: {}. \
             Current WriteCapacityUnits provisioned for the table: {}. Requested WriteCapacityUnits: {}. Refer \
             to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits.",
            now.read, wanted.read, now.write, wanted.write
        )))
    }

    fn check_definitions(&self, definitions: &[KeyAttribute]) -> DynamoResult<()> {
        for new in definitions {
            if self.definitions.iter().any(|old| old.name == new.name && old.key_type != new.key_type) {
                return Err(ApiError::invalid_parameter(format_args!(
                    "Attribute type of {} does not match its definition in the table",
                    new.name
                )));
            }
        }
        Ok(())
    }

    fn check_changes(&self, changes: &[IndexChange], billing: Billing) -> DynamoResult<()> {
        let moving = |change: &&IndexChange| !matches!(change, IndexChange::Update(..));
        refuse_if(changes.iter().filter(moving).count() > 1, one_online_index)?;
        for change in changes {
            let existing = |name: &str| {
                let found = self.index(name).filter(|index| !index.spec.local);
                found.ok_or_else(|| {
                    ApiError::new(
                        "ResourceNotFoundException",
                        format!("Requested resource not found: Index: {name} not found"),
                    )
                })
            };
            let busy = || {
                self.indexes.iter().any(|index| matches!(index.status, Status::Creating | Status::Deleting))
            };
            match change {
                IndexChange::Create(spec) => {
                    check_index(spec, billing)?;
                    if self.index(&spec.name).is_some() {
                        return Err(ApiError::validation(format!(
                            "Attempting to create an index which already exists: {}",
                            spec.name
                        )));
                    }
                    refuse_if(busy(), one_online_index)?;
                    if self.indexes.iter().filter(|index| !index.spec.local).count() >= MAX_GLOBAL_INDEXES {
                        return Err(ApiError::limit(format_args!(
                            "GlobalSecondaryIndex count exceeds the per-table limit of {MAX_GLOBAL_INDEXES}"
                        )));
                    }
                }
                IndexChange::Update(name, throughput) => {
                    existing(name)?;
                    refuse_if(billing == Billing::OnDemand, || paid_twice(name))?;
                    check_billing(Billing::Provisioned(*throughput))?;
                }
                IndexChange::Delete(name) => {
                    if existing(name)?.status == Status::Deleting {
                        return Err(ApiError::in_use(format!(
                            "Attempt to change a resource which is still in use: Index is being deleted: {name}"
                        )));
                    }
                }
            }
        }
        let given = |name: &str| {
            changes.iter().any(|change| match change {
                IndexChange::Update(other, _) | IndexChange::Delete(other) => other == name,
                IndexChange::Create(_) => false,
            })
        };
        let kept = self.indexes.iter().map(|index| &index.spec).filter(|spec| !given(&spec.name));
        kept.into_iter().try_for_each(|spec| match billing {
            Billing::Provisioned(_) if !spec.local && spec.throughput.is_none() => Err(unpaid(&spec.name)),
            _ => Ok(()),
        })
    }
}

fn one_online_index() -> ApiError {
    ApiError::limit("Only 1 online index can be created or deleted simultaneously per table")
}
