//! The sending of a request: whether and when the request left the SDK, its address, and the arrival of the answer. A
//! failure before the sending means that the request was certainly not executed.

use super::failures::Failures;
use super::heard::Ear;
use crate::ports::Failure;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::Intercept;
use aws_smithy_runtime_api::client::interceptors::context::{
    BeforeDeserializationInterceptorContextMut, BeforeTransmitInterceptorContextRef,
};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::config_bag::ConfigBag;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

/// Attached to one request. Notes the moment of its hand-over to the HTTP client: after serialization, credentials
/// and signing.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    /// The service's address, once the request is handed over.
    to: Arc<OnceLock<String>>,
    /// The required IAM action, such as `kinesis:GetRecords`, once the request is handed over.
    action: Arc<OnceLock<String>>,
    /// The hand-over time, by the signing clock.
    at: Arc<OnceLock<SystemTime>>,
    failures: Failures,
    /// Who listens to the answer as it comes.
    ear: Option<Ear>,
}

impl Sent {
    pub(super) fn new(failures: Failures) -> Self {
        Self { to: Arc::default(), action: Arc::default(), at: Arc::default(), failures, ear: None }
    }

    /// The answer is listened to as it comes.
    pub(super) fn heard_by(mut self, ear: &Ear) -> Self {
        self.ear = Some(ear.clone());
        self
    }

    pub(super) fn is_sent(&self) -> bool {
        self.to.get().is_some()
    }

    pub(super) fn action(&self) -> Option<&str> {
        self.action.get().map(String::as_str)
    }

    pub(super) fn at(&self) -> Option<SystemTime> {
        self.at.get().copied()
    }

    /// The request failed, for this reason.
    pub(super) fn failed(&self, why: String) {
        let at = self.to.get().cloned();
        self.failures.keep(Failure { at, why });
    }
}

#[aws_smithy_runtime_api::client::interceptors::dyn_dispatch_hint]
impl Intercept for Sent {
    fn name(&self) -> &'static str {
        "leasehold::Sent"
    }

    fn read_before_transmit(
        &self, context: &BeforeTransmitInterceptorContextRef<'_>, components: &RuntimeComponents,
        _config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let _ = self.to.set(address(context.request().uri()));
        if let Some(clock) = components.time_source() {
            let _ = self.at.set(clock.now());
        }
        let target = context.request().headers().get("x-amz-target");
        if let Some(action) = target.and_then(action) {
            let _ = self.action.set(action);
        }
        Ok(())
    }

    fn modify_before_deserialization(
        &self, context: &mut BeforeDeserializationInterceptorContextMut<'_>, _components: &RuntimeComponents,
        _config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let Some(ear) = &self.ear {
            let body = context.response_mut().body_mut();
            *body = ear.listen(std::mem::replace(body, SdkBody::taken()));
        }
        Ok(())
    }
}

/// The IAM action of an operation named in a request: `dynamodb:Scan` for `DynamoDB_20120810.Scan`.
fn action(target: &str) -> Option<String> {
    let (service, operation) = target.split_once('.')?;
    let service = service.split('_').next()?.to_lowercase();
    Some(format!("{service}:{operation}"))
}

/// A URL up to its path.
fn address(url: &str) -> String {
    let host = url.find("://").map_or(0, |at| at + 3);
    let end = url[host..].find(['/', '?']).map_or(url.len(), |at| host + at);
    url[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::{action, address};

    #[test]
    fn an_operation_names_its_iam_action() {
        let named = |target| action(target).unwrap_or_default();
        assert_eq!(named("DynamoDB_20120810.Scan"), "dynamodb:Scan");
        assert_eq!(named("Kinesis_20131202.DescribeStreamSummary"), "kinesis:DescribeStreamSummary");
        assert_eq!(named("nothing"), "");
    }

    #[test]
    fn an_address_is_a_url_without_its_path() {
        for (url, expected) in [
            ("http://127.0.0.1:9/", "http://127.0.0.1:9"),
            ("https://kinesis.eu-west-1.amazonaws.com/a?b=c", "https://kinesis.eu-west-1.amazonaws.com"),
            ("http://[::1]:80", "http://[::1]:80"),
            ("foo/bar", "foo"),
            ("", ""),
        ] {
            assert_eq!(address(url), expected);
        }
    }
}
