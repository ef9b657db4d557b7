//! The HTTP client given to the SDK: sends every request to the world and turns the result into HTTP.

use crate::carried::{Call, Carried, Request};
use crate::events::Events;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use leasehold::runtime::Runtime;
use leasehold_testing::harness::Outbox;
use std::io::{self, ErrorKind};
use std::sync::Arc;

/// An SDK HTTP client whose requests go to the world.
#[derive(Clone)]
pub struct Connector {
    /// The way to the world.
    pub outbox: Outbox<Request, Carried>,
    /// The clock of the process.
    pub runtime: Arc<dyn Runtime>,
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connector").field("outbox", &self.outbox).finish_non_exhaustive()
    }
}

impl HttpClient for Connector {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let header = |name| request.headers().get(name).unwrap_or_default().to_owned();
        let call = Call {
            target: header("x-amz-target"),
            content_type: header("content-type"),
            body: request.body().bytes().unwrap_or_default().to_vec(),
        };
        let content_type = call.content_type.clone();
        let carried = self.outbox.ask(Request::Call(call));
        let Self { outbox, runtime } = self.clone();
        HttpConnectorFuture::new(async move {
            match carried.await {
                Carried::Subscribed(subscription) => {
                    let events = SdkBody::from_body_1_x(Events::new(outbox, runtime, subscription));
                    answer(200, events, "application/vnd.amazon.eventstream".to_owned())
                }
                carried => respond(carried, content_type),
            }
        })
    }
}

fn respond(carried: Carried, content_type: String) -> Result<HttpResponse, ConnectorError> {
    match carried {
        Carried::Answer { status, body } => answer(status, SdkBody::from(body), content_type),
        Carried::Subscribed(_) | Carried::Pushed(_) => Err(ConnectorError::other(
            "expected an answer with a whole body, found a subscription".into(),
            None,
        )),
        Carried::Refused => Err(failure(ErrorKind::ConnectionRefused)),
        Carried::Reset => Err(failure(ErrorKind::ConnectionReset)),
        Carried::ReadTimeout => Err(ConnectorError::timeout(Box::new(io::Error::from(ErrorKind::TimedOut)))),
    }
}

fn answer(status: u16, body: SdkBody, content_type: String) -> Result<HttpResponse, ConnectorError> {
    let status =
        status.try_into().map_err(|_| ConnectorError::other("the answer has no HTTP status".into(), None))?;
    let mut response = HttpResponse::new(status, body);
    // No `Date`: from a `Date` header, the SDK would correct the clock.
    response.headers_mut().insert("content-type", content_type);
    Ok(response)
}

fn failure(kind: ErrorKind) -> ConnectorError {
    ConnectorError::io(Box::new(io::Error::from(kind)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_of_the_kinds_that_the_worker_tells_apart() {
        let fails = |carried| respond(carried, String::new()).expect_err("a failure");
        assert!(fails(Carried::Refused).is_io());
        assert!(fails(Carried::Reset).is_io());
        assert!(fails(Carried::ReadTimeout).is_timeout());
    }

    #[test]
    fn an_answer_repeats_the_content_type_and_has_no_date() {
        let answer = Carried::Answer { status: 400, body: b"{}".to_vec() };
        let response = respond(answer, "application/x-amz-json-1.1".to_owned()).expect("an answer");
        assert_eq!(response.status().as_u16(), 400);
        assert_eq!(response.headers().get("content-type"), Some("application/x-amz-json-1.1"));
        assert_eq!(response.headers().get("date"), None);
    }
}
