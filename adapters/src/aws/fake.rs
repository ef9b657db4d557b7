//! An HTTP client that answers from a closure, below real SDK clients.

use super::{DynamoTable, KinesisStream};
use crate::runtime::{Runtime, TokioRuntime};
use crate::store::Store;
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_sdk_dynamodb::config::Builder;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use std::fmt;
use std::sync::{Arc, Mutex};

/// What the wire brings.
pub(super) enum Wire {
    Answer(u16, String),
    /// An answer of status 200 with this body, at the body's pace.
    Body(SdkBody),
    Fails(ConnectorError),
    Hangs,
}

type MakeAnswer = dyn Fn(&str, &serde_json::Value) -> Wire + Send + Sync;

/// Answers by the operation's name and the request.
#[derive(Clone)]
pub(super) struct FakeHttp {
    answer: Arc<MakeAnswer>,
    pub(super) seen: Arc<Mutex<Vec<(String, serde_json::Value)>>>,
}

impl fmt::Debug for FakeHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FakeHttp")
    }
}

impl FakeHttp {
    pub(super) fn new(answer: impl Fn(&str, &serde_json::Value) -> Wire + Send + Sync + 'static) -> Self {
        Self { answer: Arc::new(answer), seen: Arc::default() }
    }
}

impl HttpClient for FakeHttp {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for FakeHttp {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let body = serde_json::from_slice(request.body().bytes().unwrap_or_default()).unwrap_or_default();
        let answer = (self.answer)(&operation, &body);
        self.seen.lock().unwrap().push((operation, body));
        HttpConnectorFuture::new(async move {
            match answer {
                Wire::Answer(status, body) => {
                    Ok(HttpResponse::new(status.try_into().unwrap(), SdkBody::from(body)))
                }
                Wire::Body(body) => Ok(HttpResponse::new(200.try_into().unwrap(), body)),
                Wire::Fails(error) => Err(error),
                Wire::Hangs => std::future::pending().await,
            }
        })
    }
}

pub(super) fn runtime() -> Arc<dyn Runtime> {
    Arc::new(TokioRuntime::current().unwrap())
}

pub(super) fn credentials() -> SharedCredentialsProvider {
    SharedCredentialsProvider::new(Credentials::new("AK", "SK", None, None, "test"))
}

pub(super) fn table(http: FakeHttp, credentials: SharedCredentialsProvider) -> DynamoTable {
    table_of(http, |config| config.credentials_provider(credentials))
}

/// A table with another client.
pub(super) fn table_of(
    http: impl HttpClient + 'static, change: impl FnOnce(Builder) -> Builder,
) -> DynamoTable {
    use aws_sdk_dynamodb::config::{BehaviorVersion, Region};
    let runtime = runtime();
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-west-1"))
        .http_client(http)
        .sleep_impl(super::SdkSleep(runtime.clone()))
        .credentials_provider(credentials());
    let client = aws_sdk_dynamodb::Client::from_conf(change(config).build());
    DynamoTable::new(&client, &runtime, &crate::testing::boot().config)
}

pub(super) fn stream(http: FakeHttp) -> (KinesisStream, Store) {
    use aws_sdk_kinesis::config::{BehaviorVersion, Region};
    let runtime = runtime();
    let config = aws_sdk_kinesis::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-west-1"))
        .http_client(http)
        .sleep_impl(super::SdkSleep(runtime.clone()))
        .credentials_provider(credentials())
        .build();
    let client = aws_sdk_kinesis::Client::from_conf(config);
    let store = Store::default();
    let stream = KinesisStream::new(&client, &runtime, &crate::testing::boot().config, store.clone());
    (stream, store)
}
