//! The fake's only error type: AWS's code, HTTP status and message.

use crate::constraint::unmet;
use std::fmt;

/// A refusal, exactly as the service would put it on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// The exception's name, such as `ResourceNotFoundException`.
    pub code: &'static str,
    /// 400 for the caller's fault, 500 for the service's.
    pub http_status: u16,
    /// The human readable part.
    pub message: String,
}

/// The result of every operation of the fake.
pub type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    /// A refusal with status 400.
    pub fn client(code: &'static str, message: impl Into<String>) -> Self {
        ApiError { code, http_status: 400, message: message.into() }
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::client("ResourceNotFoundException", message)
    }

    pub(crate) fn in_use(message: impl Into<String>) -> Self {
        Self::client("ResourceInUseException", message)
    }

    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self::client("InvalidArgumentException", message)
    }

    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self::client("LimitExceededException", message)
    }

    pub(crate) fn validation(message: impl Into<String>) -> Self {
        Self::client("ValidationException", message)
    }

    /// `ValidationException` about a member that violates a constraint.
    pub(crate) fn unmet(place: impl fmt::Display, constraint: impl fmt::Display) -> Self {
        Self::validation(unmet(place, constraint))
    }

    pub(crate) fn serialization(message: impl Into<String>) -> Self {
        Self::client("SerializationException", message)
    }

    /// The answer to a request that would have succeeded.
    pub(crate) fn dry_run() -> Self {
        Self::client("DryRunOperationException", "Request would have succeeded, but DryRun flag is set.")
    }

    pub(crate) fn throughput(message: impl Into<String>) -> Self {
        Self::client("ProvisionedThroughputExceededException", message)
    }

    /// The body of the answer in the JSON protocol.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({ "__type": self.code, "message": self.message })
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for ApiError {}
