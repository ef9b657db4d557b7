//! The table port over the DynamoDB client.

use super::bill::Bill;
use super::bounded::Bounded;
use super::classify::classify;
use super::failures::Failures;
use super::host_cpu::HostCpu;
use super::pool::Pool;
use super::sent::Sent;
use super::values::{SdkMap, item_from_sdk, item_to_sdk, value_to_sdk};
use super::words::garbled;
use super::{SdkSleep, SdkTime, no_retries, timeouts};
use crate::ports::{Consumed, Failure, Port};
use crate::runtime::{BoxFuture, Runtime};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::error::ConditionalCheckFailedException;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue as SdkValue, BillingMode, ConsumedCapacity, KeySchemaElement,
    KeyType, ReturnConsumedCapacity, ReturnValuesOnConditionCheckFailure, ScalarAttributeType,
    TableDescription, TableStatus,
};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use leasehold_engine::config::Config;
use leasehold_engine::fleet::{FleetTable, FleetWrite};
use leasehold_engine::format::{Kcl, LeaseFormat};
use leasehold_engine::ids::{LeaseKey, OpId};
use leasehold_engine::input::{Outcome, Refusal, Reply, ScanPage, TableState, Why};
use leasehold_engine::output::TableOp;
use leasehold_engine::row::{Change, RowRead};
use leasehold_engine::table::{Action, AttributeValue, Item, ItemWrite, render};
use leasehold_engine::time::Mono;
use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Keeps leases in one DynamoDB table. Clones are handles on the same.
#[derive(Clone)]
pub struct DynamoTable {
    pub(super) client: Client,
    _pool: Arc<Pool>,
    /// The application's name.
    pub(super) application: Arc<str>,
    pub(super) table: Arc<str>,
    /// The tables with the reports and the leader of workers of KCL 3.0 to 3.4.
    fleet_tables: [Arc<str>; 2],
    pub(super) format: Arc<dyn LeaseFormat + Send + Sync>,
    pub(super) failures: Failures,
    pub(super) bill: Bill,
    cpu: HostCpu,
    runtime: Arc<dyn Runtime>,
}

impl fmt::Debug for DynamoTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamoTable").field("table", &self.table).finish_non_exhaustive()
    }
}

impl DynamoTable {
    /// Uses the configured table, with rows as KCL for Java writes them.
    pub fn new(client: &Client, runtime: &Arc<dyn Runtime>, config: &Config) -> Self {
        let pool = Pool::new();
        let sdk = client
            .config()
            .to_builder()
            .retry_config(no_retries())
            .timeout_config(timeouts(config.table_timeout(), &pool))
            .sleep_impl(SdkSleep(runtime.clone()))
            .time_source(SdkTime(runtime.clone()))
            .interceptor(Bounded)
            .build();
        Self {
            client: Client::from_conf(sdk),
            _pool: Arc::new(pool),
            application: Arc::from(config.table()),
            table: Arc::from(config.table()),
            fleet_tables: FleetTable::ALL.map(|table| config.fleet_table(table).into()),
            format: Arc::new(Kcl),
            failures: Failures::default(),
            bill: Bill::default(),
            cpu: HostCpu::default(),
            runtime: runtime.clone(),
        }
    }

    /// Sets another lease format. The policies of the worker's configuration must be this format's. The tables of a
    /// format with further tables are named after the application; the application's name is the configured table's
    /// name.
    #[must_use]
    pub fn with_format(mut self, format: Arc<dyn LeaseFormat + Send + Sync>) -> Self {
        self.table = match format.membership() {
            Some(membership) => membership.leases(&self.application).into(),
            None => self.application.clone(),
        };
        self.format = format;
        self
    }

    pub(super) async fn describe(self, name: Arc<str>, key: &'static str) -> Outcome {
        match self.described(&name).await {
            Ok(table) => state(&table, key),
            // That there is none is an answer.
            Err(Outcome::Refused(Refusal { why: Why::NotFound, .. })) => {
                Outcome::Applied(Reply::Table(TableState::Missing))
            }
            Err(other) => other,
        }
    }

    /// What the service says of a table, or how the request ended.
    pub(super) async fn described(&self, name: &str) -> Result<TableDescription, Outcome> {
        let sent = self.failures.request();
        let answer =
            self.client.describe_table().table_name(name).customize().interceptor(sent.clone()).send().await;
        match answer {
            Ok(answer) => answer.table.ok_or_else(|| garbled(&sent, "a description of the table", "none")),
            Err(error) => Err(classify(&error, &sent)),
        }
    }

    /// Creates a table with one string attribute as the primary key.
    pub(super) async fn create(self, name: Arc<str>, key: &'static str) -> Outcome {
        let attribute =
            AttributeDefinition::builder().attribute_name(key).attribute_type(ScalarAttributeType::S).build();
        let element = KeySchemaElement::builder().attribute_name(key).key_type(KeyType::Hash).build();
        let (Ok(attribute), Ok(key)) = (attribute, element) else {
            return refused(Why::Invalid, format!("expected a key attribute, found {key:?}"));
        };
        let sent = self.failures.request();
        let answer = self
            .client
            .create_table()
            .table_name(&*name)
            .attribute_definitions(attribute)
            .key_schema(key)
            .billing_mode(BillingMode::PayPerRequest)
            .customize()
            .interceptor(sent.clone())
            .send()
            .await;
        match answer {
            Ok(_) => Outcome::Applied(Reply::Done),
            Err(error) => classify(&error, &sent),
        }
    }

    async fn scan(self, after: Option<LeaseKey>, limit: Option<u32>) -> Outcome {
        let sent = self.failures.request();
        let answer = self
            .client
            .scan()
            .table_name(&*self.table)
            .set_exclusive_start_key(after.map(|key| item_to_sdk(self.format.key(&key))))
            .set_limit(limit.map(|limit| i32::try_from(limit.max(1)).unwrap_or(i32::MAX)))
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .customize()
            .interceptor(sent.clone())
            .send()
            .await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return classify(&error, &sent),
        };
        self.bill.read(answer.consumed_capacity(), 0.5);
        let next = match answer.last_evaluated_key {
            None => None,
            Some(key) if key.is_empty() => None,
            Some(key) => {
                let key = item_from_sdk(key);
                match key.get(self.format.key_name()).and_then(AttributeValue::as_s) {
                    Some(key) => Some(LeaseKey::from(key)),
                    None => return garbled(&sent, "a lease's key as the key of the next page", "another"),
                }
            }
        };
        let rows = answer.items.unwrap_or_default().into_iter().map(|item| self.decode(item)).collect();
        Outcome::Applied(Reply::Page(ScanPage { rows, next }))
    }

    async fn read(self, key: LeaseKey) -> Outcome {
        match self.get(&self.table, self.format.key(&key)).await {
            Ok(item) => {
                let row = item.map(|item| Box::new(self.format.decode(&item)));
                Outcome::Applied(Reply::Row(row))
            }
            Err(outcome) => *outcome,
        }
    }

    /// An item of any table, strongly consistent.
    pub(super) async fn get(&self, table: &str, key: Item) -> Result<Option<Item>, Box<Outcome>> {
        let sent = self.failures.request();
        let answer = self
            .client
            .get_item()
            .table_name(table)
            .set_key(Some(item_to_sdk(key)))
            .consistent_read(true)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .customize()
            .interceptor(sent.clone())
            .send()
            .await;
        match answer {
            Ok(answer) => {
                self.bill.read(answer.consumed_capacity(), 1.0);
                Ok(answer.item.map(item_from_sdk))
            }
            Err(error) => Err(Box::new(classify(&error, &sent))),
        }
    }

    async fn write(self, change: Change) -> Outcome {
        let write = self.format.encode(&change);
        let table = self.table.clone();
        self.carry_out(table, write).await
    }

    /// The name of a table with the reports or the leader of workers of KCL 3.0 to 3.4.
    pub(super) fn fleet_table(&self, table: FleetTable) -> Arc<str> {
        let [workers, coordinator] = &self.fleet_tables;
        match table {
            FleetTable::Workers => workers.clone(),
            FleetTable::Coordinator => coordinator.clone(),
        }
    }

    /// Writes a row of fleet data of KCL 3.x; `beside`: into that table instead of the lease table.
    pub(super) async fn fleet(self, beside: Option<FleetTable>, mut write: FleetWrite) -> Outcome {
        if let FleetWrite::Report { measure: true, cpu, .. } = &mut write {
            *cpu = self.cpu.report(Duration::from(self.runtime.now().since(Mono(0))));
        }
        let (table, spelled) = match beside {
            None => (self.table.clone(), self.format.encode_fleet(&write)),
            Some(table) => (self.fleet_table(table), self.format.encode_fleet_in(table, &write)),
        };
        match spelled {
            Some(spelled) => self.carry_out(table, spelled).await,
            None => refused(
                Why::Invalid,
                format!("expected a format with a leader, found that it cannot {}", write.verb()),
            ),
        }
    }

    /// Writes an item of any table; a failed guard is refused with the row, if the table is the lease table.
    pub(super) async fn carry_out(self, table: Arc<str>, write: ItemWrite) -> Outcome {
        let text = render(&write);
        let (condition, names, values) = guard(text.condition, text.names, text.values);
        let current = ReturnValuesOnConditionCheckFailure::AllOld;
        let sent = self.failures.request();
        match write.action {
            Action::Put(item) => {
                let answer = self
                    .client
                    .put_item()
                    .table_name(&*table)
                    .set_item(Some(item_to_sdk(item)))
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .return_values_on_condition_check_failure(current)
                    .return_consumed_capacity(ReturnConsumedCapacity::Total)
                    .customize()
                    .interceptor(sent.clone())
                    .send()
                    .await;
                self.written(answer.map(|answer| answer.consumed_capacity), &sent, of_put)
            }
            Action::Update(_) => {
                let answer = self
                    .client
                    .update_item()
                    .table_name(&*table)
                    .set_key(Some(item_to_sdk(write.key)))
                    .set_update_expression(text.update)
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .return_values_on_condition_check_failure(current)
                    .return_consumed_capacity(ReturnConsumedCapacity::Total)
                    .customize()
                    .interceptor(sent.clone())
                    .send()
                    .await;
                self.written(answer.map(|answer| answer.consumed_capacity), &sent, of_update)
            }
            Action::Delete => {
                let answer = self
                    .client
                    .delete_item()
                    .table_name(&*table)
                    .set_key(Some(item_to_sdk(write.key)))
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .return_values_on_condition_check_failure(current)
                    .return_consumed_capacity(ReturnConsumedCapacity::Total)
                    .customize()
                    .interceptor(sent.clone())
                    .send()
                    .await;
                self.written(answer.map(|answer| answer.consumed_capacity), &sent, of_delete)
            }
        }
    }

    /// The outcome of a write, with the present row if the guard failed and DynamoDB sent the row.
    fn written<E>(
        &self, answer: Result<Option<ConsumedCapacity>, SdkError<E, HttpResponse>>, sent: &Sent,
        failed: impl Fn(&E) -> Option<&ConditionalCheckFailedException>,
    ) -> Outcome
    where
        E: ProvideErrorMetadata + StdError + 'static,
    {
        let error = match answer {
            Ok(said) => {
                self.bill.write(said.as_ref());
                return Outcome::Applied(Reply::Done);
            }
            Err(error) => error,
        };
        let mut outcome = classify(&error, sent);
        if let Outcome::Refused(Refusal { why: Why::ConditionFailed, current, .. }) = &mut outcome {
            self.bill.write(None);
            *current = error
                .as_service_error()
                .and_then(failed)
                .and_then(|failed| failed.item())
                // Some servers send an empty item for a row that does not exist.
                .filter(|item| !item.is_empty())
                .map(|item| Box::new(self.decode(item.clone())));
        }
        outcome
    }

    fn decode(&self, item: SdkMap<SdkValue>) -> RowRead {
        let item: Item = item_from_sdk(item);
        self.format.decode(&item)
    }
}

fn of_put(error: &PutItemError) -> Option<&ConditionalCheckFailedException> {
    match error {
        PutItemError::ConditionalCheckFailedException(failed) => Some(failed),
        _ => None,
    }
}

fn of_update(error: &UpdateItemError) -> Option<&ConditionalCheckFailedException> {
    match error {
        UpdateItemError::ConditionalCheckFailedException(failed) => Some(failed),
        _ => None,
    }
}

fn of_delete(error: &DeleteItemError) -> Option<&ConditionalCheckFailedException> {
    match error {
        DeleteItemError::ConditionalCheckFailedException(failed) => Some(failed),
        _ => None,
    }
}

/// The condition of a write, and the names and values of its expressions.
fn guard(
    condition: String, names: BTreeMap<String, String>, values: BTreeMap<String, AttributeValue>,
) -> (Option<String>, Option<SdkMap<String>>, Option<SdkMap<SdkValue>>) {
    let values = values.into_iter();
    (
        Some(condition).filter(|condition| !condition.is_empty()),
        unless_empty(names.into_iter()),
        unless_empty(values.map(|(name, value)| (name, value_to_sdk(value)))),
    )
}

/// A map, unless nothing is in it: DynamoDB refuses empty ones.
fn unless_empty<V>(entries: impl ExactSizeIterator<Item = (String, V)>) -> Option<SdkMap<V>> {
    (entries.len() > 0).then(|| entries.collect())
}

impl Port<TableOp> for DynamoTable {
    fn execute(&self, id: OpId, op: TableOp) -> BoxFuture<'static, Outcome> {
        let mut this = self.clone();
        this.failures = self.failures.of(id);
        match op {
            TableOp::Describe => {
                let (table, key) = (this.table.clone(), this.format.key_name());
                Box::pin(this.describe(table, key))
            }
            TableOp::Create => {
                let (table, key) = (this.table.clone(), this.format.key_name());
                Box::pin(this.create(table, key))
            }
            TableOp::Members(op) => Box::pin(this.members(op)),
            TableOp::Fleet(write) => Box::pin(this.fleet(None, write)),
            TableOp::FleetTable(table, op) => Box::pin(this.fleet_table_op(table, op)),
            TableOp::OwnerIndex => Box::pin(this.owner_index()),
            TableOp::Owned { owner, after } => Box::pin(this.owned(owner, after)),
            TableOp::Scan { after, limit } => Box::pin(this.scan(after, limit)),
            TableOp::Read { key } => Box::pin(this.read(key)),
            TableOp::Write(change) => Box::pin(this.write(change)),
        }
    }

    fn forget(&self, id: OpId) {
        self.failures.take(id);
    }

    fn failure(&self, id: OpId) -> Option<Failure> {
        self.failures.take(id)
    }

    fn consumed(&self) -> Consumed {
        self.bill.total()
    }
}

fn state(table: &TableDescription, key: &str) -> Outcome {
    let state = match table.table_status() {
        Some(TableStatus::Creating) => TableState::Creating,
        Some(TableStatus::Deleting) => TableState::Deleting,
        Some(TableStatus::Active | TableStatus::Updating) if has_key(table, key) => TableState::Usable,
        Some(TableStatus::Active | TableStatus::Updating) => TableState::Incompatible,
        other => {
            let why = match other {
                Some(
                    TableStatus::InaccessibleEncryptionCredentials | TableStatus::ReplicationNotAuthorized,
                ) => Why::Denied,
                _ => Why::InUse,
            };
            let status = other.map_or("none", TableStatus::as_str);
            return refused(why, format!("expected table status ACTIVE, found {status}"));
        }
    };
    Outcome::Applied(Reply::Table(state))
}

/// Whether the primary key consists of this string attribute alone.
fn has_key(table: &TableDescription, name: &str) -> bool {
    let [key] = table.key_schema() else { return false };
    key.attribute_name() == name
        && *key.key_type() == KeyType::Hash
        && table.attribute_definitions().iter().any(|attribute| {
            attribute.attribute_name() == name && *attribute.attribute_type() == ScalarAttributeType::S
        })
}

pub(super) fn refused(why: Why, detail: String) -> Outcome {
    Outcome::Refused(Refusal { why, current: None, detail })
}
