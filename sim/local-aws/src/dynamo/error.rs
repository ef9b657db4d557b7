//! Errors with DynamoDB's own codes and messages.

use crate::constraint::unmet;
use leasehold_engine::table::Item;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A refusal, as the service would send it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// The exception's name, such as `ConditionalCheckFailedException`.
    pub code: &'static str,
    /// The HTTP status.
    pub http_status: u16,
    /// The message for people.
    pub message: Cow<'static, str>,
    /// The old item, if requested by `ReturnValuesOnConditionCheckFailure`.
    pub item: Option<Arc<Item>>,
    /// The reasons of a cancelled transaction: one reason for each of its actions, in their order.
    pub cancellation_reasons: Vec<CancellationReason>,
}

/// The reason why one action stopped a transaction (code `None`: the action did not stop the transaction).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancellationReason {
    /// `None`, `ConditionalCheckFailed`, `ValidationError`, `ProvisionedThroughputExceeded`, ….
    pub code: &'static str,
    /// The message, absent for `None`.
    pub message: Option<Cow<'static, str>>,
    /// The old item, if requested.
    pub item: Option<Arc<Item>>,
}

/// The result of every operation.
pub type DynamoResult<T> = Result<T, ApiError>;

impl CancellationReason {
    /// The reason of an action without a fault.
    pub const NONE: Self = Self { code: "None", message: None, item: None };
}

impl ApiError {
    /// An error of a code, with HTTP status 400 as nearly all of DynamoDB's have.
    pub fn new(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, http_status: 400, message: message.into(), item: None, cancellation_reasons: Vec::new() }
    }

    /// `ValidationException`.
    pub fn validation(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new("ValidationException", message)
    }

    /// `ValidationException` with the usual opening words.
    pub fn invalid_parameter(message: impl fmt::Display) -> Self {
        Self::validation(format!("One or more parameter values were invalid: {message}"))
    }

    /// `ValidationException` about a member that violates a constraint.
    pub(super) fn unmet(place: impl fmt::Display, constraint: impl fmt::Display) -> Self {
        Self::validation(unmet(place, constraint))
    }

    /// `ValidationException` about a `BETWEEN` without a value.
    pub(super) fn bounds_swapped() -> Self {
        Self::validation(
            "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound",
        )
    }

    /// `LimitExceededException`: a limit of the account or of a table.
    pub(super) fn limit(what: impl fmt::Display) -> Self {
        Self::new("LimitExceededException", format!("Subscriber limit exceeded: {what}"))
    }

    /// `SerializationException`: the body is not of the operation's shape.
    pub fn serialization(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new("SerializationException", message)
    }

    /// `ConditionalCheckFailedException`.
    pub fn condition_failed(item: Option<Arc<Item>>) -> Self {
        Self { item, ..Self::new("ConditionalCheckFailedException", "The conditional request failed") }
    }

    /// `ResourceNotFoundException` of item operations: the message does not name the table.
    pub fn no_resource() -> Self {
        Self::new("ResourceNotFoundException", "Requested resource not found")
    }

    /// `ResourceNotFoundException` of table operations.
    pub fn no_table(name: &str) -> Self {
        Self::new(
            "ResourceNotFoundException",
            format!("Requested resource not found: Table: {name} not found"),
        )
    }

    /// `ResourceInUseException`.
    pub fn in_use(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new("ResourceInUseException", message)
    }

    /// `ProvisionedThroughputExceededException`.
    pub fn throughput_exceeded() -> Self {
        Self::new(
            "ProvisionedThroughputExceededException",
            "The level of configured provisioned throughput for the table was exceeded. \
             Consider increasing your provisioning level with the UpdateTable API.",
        )
    }

    /// The namespace AWS puts before the code in `__type`.
    pub fn namespace(&self) -> &'static str {
        match self.code {
            "ValidationException" => "com.amazon.coral.validate#",
            "SerializationException"
            | "UnknownOperationException"
            | "AccessDeniedException"
            | "InternalFailure" => "com.amazon.coral.service#",
            _ => "com.amazonaws.dynamodb.v20120810#",
        }
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for ApiError {}
