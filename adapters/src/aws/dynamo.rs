//! The table port over the DynamoDB client.

use super::classify::classify;
use super::sent::Sent;
use super::values::{item_from_sdk, item_to_sdk, value_to_sdk};
use super::{SdkSleep, SdkTime, no_retries, timeouts};
use crate::ports::Port;
use crate::runtime::{BoxFuture, Runtime};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::error::ConditionalCheckFailedException;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue as SdkValue, BillingMode, KeySchemaElement, KeyType,
    ReturnValuesOnConditionCheckFailure, ScalarAttributeType, TableDescription, TableStatus,
};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use leasehold_engine::config::Config;
use leasehold_engine::dialect::{Dialect, Kcl};
use leasehold_engine::ids::{LeaseKey, OpId};
use leasehold_engine::input::{Cause, Outcome, Refusal, Reply, ScanPage, TableState, Why};
use leasehold_engine::output::TableOp;
use leasehold_engine::row::{Change, RowRead};
use leasehold_engine::table::{Action, AttributeValue, Item, render};
use std::collections::HashMap;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

/// Keeps leases in one DynamoDB table. Clones are handles on the same.
#[derive(Clone)]
pub struct DynamoTable {
    client: Client,
    table: Arc<str>,
    dialect: Arc<dyn Dialect + Send + Sync>,
}

impl fmt::Debug for DynamoTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamoTable")
            .field("table", &self.table)
            .finish_non_exhaustive()
    }
}

impl DynamoTable {
    /// Uses the configured table, with rows as KCL for Java writes them.
    pub fn new(client: &Client, runtime: &Arc<dyn Runtime>, config: &Config) -> Self {
        let sdk = client
            .config()
            .to_builder()
            .retry_config(no_retries())
            .timeout_config(timeouts(config.table_timeout))
            .sleep_impl(SdkSleep(runtime.clone()))
            .time_source(SdkTime(runtime.clone()))
            .build();
        Self {
            client: Client::from_conf(sdk),
            table: Arc::from(config.table.as_str()),
            dialect: Arc::new(Kcl),
        }
    }

    /// Reads and writes rows otherwise. The policies of the worker's configuration must be this dialect's.
    #[must_use]
    pub fn with_dialect(mut self, dialect: Arc<dyn Dialect + Send + Sync>) -> Self {
        self.dialect = dialect;
        self
    }

    async fn describe(self) -> Outcome {
        let sent = Sent::default();
        let answer = self
            .client
            .describe_table()
            .table_name(&*self.table)
            .customize()
            .interceptor(sent.clone())
            .send()
            .await;
        match answer {
            Ok(answer) => match answer.table() {
                Some(table) => self.state(table),
                None => Outcome::Unknown(Cause::Garbled),
            },
            // That there is none is an answer.
            Err(error) => match classify(&error, &sent) {
                Outcome::Refused(Refusal {
                    why: Why::NotFound, ..
                }) => Outcome::Applied(Reply::Table(TableState::Missing)),
                other => other,
            },
        }
    }

    fn state(&self, table: &TableDescription) -> Outcome {
        let state = match table.table_status() {
            Some(TableStatus::Creating) => TableState::Creating,
            Some(TableStatus::Deleting) => TableState::Deleting,
            Some(TableStatus::Active | TableStatus::Updating) if self.has_our_key(table) => {
                TableState::Usable
            }
            Some(TableStatus::Active | TableStatus::Updating) => TableState::Incompatible,
            other => {
                let why = match other {
                    Some(
                        TableStatus::InaccessibleEncryptionCredentials
                        | TableStatus::ReplicationNotAuthorized,
                    ) => Why::Denied,
                    _ => Why::InUse,
                };
                let status = other.map_or("none", TableStatus::as_str);
                return refused(why, format!("expected table status ACTIVE, found {status}"));
            }
        };
        Outcome::Applied(Reply::Table(state))
    }

    /// Whether the primary key is the dialect's one string attribute.
    fn has_our_key(&self, table: &TableDescription) -> bool {
        let name = self.dialect.key_name();
        let [key] = table.key_schema() else { return false };
        key.attribute_name() == name
            && *key.key_type() == KeyType::Hash
            && table.attribute_definitions().iter().any(|attribute| {
                attribute.attribute_name() == name && *attribute.attribute_type() == ScalarAttributeType::S
            })
    }

    async fn create(self) -> Outcome {
        let name = self.dialect.key_name();
        let attribute = AttributeDefinition::builder()
            .attribute_name(name)
            .attribute_type(ScalarAttributeType::S)
            .build();
        let key = KeySchemaElement::builder()
            .attribute_name(name)
            .key_type(KeyType::Hash)
            .build();
        let (Ok(attribute), Ok(key)) = (attribute, key) else {
            return refused(Why::Invalid, format!("expected a key attribute, found {name:?}"));
        };
        let sent = Sent::default();
        let answer = self
            .client
            .create_table()
            .table_name(&*self.table)
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
        let sent = Sent::default();
        let answer = self
            .client
            .scan()
            .table_name(&*self.table)
            .set_exclusive_start_key(after.map(|key| item_to_sdk(self.dialect.key(&key))))
            .set_limit(limit.map(|limit| i32::try_from(limit.max(1)).unwrap_or(i32::MAX)))
            .customize()
            .interceptor(sent.clone())
            .send()
            .await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return classify(&error, &sent),
        };
        let next = match answer.last_evaluated_key {
            None => None,
            Some(key) if key.is_empty() => None,
            Some(key) => {
                let key = item_from_sdk(key);
                match key.get(self.dialect.key_name()).and_then(AttributeValue::as_s) {
                    Some(key) => Some(LeaseKey::from(key)),
                    None => return Outcome::Unknown(Cause::Garbled),
                }
            }
        };
        let rows = answer
            .items
            .unwrap_or_default()
            .into_iter()
            .map(|item| self.decode(item))
            .collect();
        Outcome::Applied(Reply::Page(ScanPage { rows, next }))
    }

    async fn read(self, key: LeaseKey) -> Outcome {
        let sent = Sent::default();
        let answer = self
            .client
            .get_item()
            .table_name(&*self.table)
            .set_key(Some(item_to_sdk(self.dialect.key(&key))))
            .consistent_read(true)
            .customize()
            .interceptor(sent.clone())
            .send()
            .await;
        match answer {
            Ok(answer) => Outcome::Applied(Reply::Row(answer.item.map(|item| Box::new(self.decode(item))))),
            Err(error) => classify(&error, &sent),
        }
    }

    async fn write(self, change: Change) -> Outcome {
        let write = self.dialect.encode(&change);
        let text = render(&write);
        let condition = Some(text.condition).filter(|condition| !condition.is_empty());
        // Empty maps are refused by DynamoDB.
        let names: Option<HashMap<_, _>> = (!text.names.is_empty()).then(|| text.names.into_iter().collect());
        let values: Option<HashMap<_, _>> = (!text.values.is_empty()).then(|| {
            text.values
                .into_iter()
                .map(|(name, value)| (name, value_to_sdk(value)))
                .collect()
        });
        let current = ReturnValuesOnConditionCheckFailure::AllOld;
        let sent = Sent::default();
        match write.action {
            Action::Put(item) => {
                let answer = self
                    .client
                    .put_item()
                    .table_name(&*self.table)
                    .set_item(Some(item_to_sdk(item)))
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .return_values_on_condition_check_failure(current)
                    .customize()
                    .interceptor(sent.clone())
                    .send()
                    .await;
                self.written(answer, &sent, |error| match error {
                    PutItemError::ConditionalCheckFailedException(failed) => Some(failed),
                    _ => None,
                })
            }
            Action::Update(_) => {
                let answer = self
                    .client
                    .update_item()
                    .table_name(&*self.table)
                    .set_key(Some(item_to_sdk(write.key)))
                    .set_update_expression(text.update)
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .return_values_on_condition_check_failure(current)
                    .customize()
                    .interceptor(sent.clone())
                    .send()
                    .await;
                self.written(answer, &sent, |error| match error {
                    UpdateItemError::ConditionalCheckFailedException(failed) => Some(failed),
                    _ => None,
                })
            }
            Action::Delete => {
                let answer = self
                    .client
                    .delete_item()
                    .table_name(&*self.table)
                    .set_key(Some(item_to_sdk(write.key)))
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .return_values_on_condition_check_failure(current)
                    .customize()
                    .interceptor(sent.clone())
                    .send()
                    .await;
                self.written(answer, &sent, |error| match error {
                    DeleteItemError::ConditionalCheckFailedException(failed) => Some(failed),
                    _ => None,
                })
            }
        }
    }

    /// The outcome of a write, with the present row if its guard failed and DynamoDB gave it.
    fn written<T, E>(
        &self,
        answer: Result<T, SdkError<E, HttpResponse>>,
        sent: &Sent,
        failed: impl Fn(&E) -> Option<&ConditionalCheckFailedException>,
    ) -> Outcome
    where
        E: ProvideErrorMetadata + StdError + 'static,
    {
        let error = match answer {
            Ok(_) => return Outcome::Applied(Reply::Done),
            Err(error) => error,
        };
        let mut outcome = classify(&error, sent);
        if let Outcome::Refused(Refusal {
            why: Why::ConditionFailed,
            current,
            ..
        }) = &mut outcome
        {
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

    fn decode(&self, item: HashMap<String, SdkValue>) -> RowRead {
        let item: Item = item_from_sdk(item);
        self.dialect.decode(&item)
    }
}

impl Port<TableOp> for DynamoTable {
    fn execute(&self, _id: OpId, op: TableOp) -> BoxFuture<'static, Outcome> {
        let this = self.clone();
        match op {
            TableOp::Describe => Box::pin(this.describe()),
            TableOp::Create => Box::pin(this.create()),
            TableOp::Scan { after, limit } => Box::pin(this.scan(after, limit)),
            TableOp::Read { key } => Box::pin(this.read(key)),
            TableOp::Write(change) => Box::pin(this.write(change)),
        }
    }
}

fn refused(why: Why, detail: String) -> Outcome {
    Outcome::Refused(Refusal {
        why,
        current: None,
        detail,
    })
}
