//! Every class of error, made by real SDK clients over an HTTP client that misbehaves.

use super::*;
#[cfg(feature = "https")]
use crate::aws::fake::table_of;
use crate::aws::fake::{FakeHttp, Wire, credentials, stream, table};
use crate::ports::Port;
use crate::testing::op;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider, future};
use leasehold_engine::output::{StreamOp, TableOp};
use std::io;
use std::time::Duration;

async fn read(wire: impl Fn() -> Wire + Send + Sync + 'static) -> Outcome {
    let table = table(FakeHttp::new(move |_, _| wire()), credentials());
    table.execute(op(1), TableOp::Read { key: "k".into() }).await
}

async fn answer(status: u16, body: &str) -> Outcome {
    let body = body.to_owned();
    read(move || Wire::Answer(status, body.clone())).await
}

async fn code(status: u16, code: &str) -> Outcome {
    answer(status, &format!(r#"{{"__type":"com.amazonaws.dynamodb.v20120810#{code}","message":"no"}}"#)).await
}

fn refused(why: Why, code: &str) -> Outcome {
    // Codes of a missing permission name the request's IAM action.
    let action = match code {
        "AccessDenied" | "AccessDeniedException" | "NotAuthorized" => "; the IAM action is dynamodb:GetItem",
        _ => "",
    };
    let clock = match why {
        Why::WrongClock => "; the answer does not tell by how much the clock is off",
        _ => "",
    };
    Outcome::Refused(Refusal { why, current: None, detail: format!("{code}: no{action}{clock}") })
}

#[tokio::test(start_paused = true)]
async fn an_action_that_the_service_names_is_not_named_again() {
    let said = "User: u is not authorized to perform: dynamodb:GetItem";
    let body = format!(r#"{{"__type":"AccessDeniedException","message":"{said}"}}"#);
    let Outcome::Refused(refusal) = answer(400, &body).await else { panic!("a refusal") };
    assert_eq!(refusal.detail, format!("AccessDeniedException: {said}"));
}

/// A wrong secret has the same code: the message tells the two apart.
#[tokio::test(start_paused = true)]
async fn a_signature_that_is_old_means_a_wrong_clock() {
    for (code, message, expected) in [
        ("InvalidSignatureException", "Signature expired: 1 is now earlier than 2", Why::WrongClock),
        ("SignatureDoesNotMatch", "Signature not yet current: 2 is still later than 1", Why::WrongClock),
        ("InvalidSignatureException", "The request signature we calculated does not match", Why::Denied),
        ("ExpiredTokenException", "Signature expired, says a token", Why::Denied),
    ] {
        let body = format!(r#"{{"__type":"{code}","message":"{message}"}}"#);
        let Outcome::Refused(refusal) = answer(400, &body).await else { panic!("a refusal") };
        assert_eq!(refusal.why, expected, "{code}: {message}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_code_of_the_table_means_what_it_says() {
    for (name, meaning) in CODES {
        let expected = match meaning {
            Refused(why) => refused(*why, name),
            Throttled => Outcome::NotSent(Cause::Throttled),
        };
        assert_eq!(code(400, name).await, expected, "{name}");
        assert_eq!(
            code(500, name).await,
            Outcome::Unknown(Cause::Server),
            "{name} with a status that says the server failed"
        );
    }
    let names: std::collections::BTreeSet<_> = CODES.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), CODES.len(), "no code is there twice");
}

#[tokio::test(start_paused = true)]
async fn a_request_by_name_names_the_stream() {
    // The pairs the engine's safety rests on, not taken from the table.
    for (name, expected) in [
        ("ConditionalCheckFailedException", Some(Why::ConditionFailed)),
        ("ResourceNotFoundException", Some(Why::NotFound)),
        ("ResourceInUseException", Some(Why::InUse)),
        ("ExpiredIteratorException", Some(Why::Expired)),
        ("ExpiredNextTokenException", Some(Why::Expired)),
        ("AccessDeniedException", Some(Why::Denied)),
        ("UnrecognizedClientException", Some(Why::Denied)),
        ("KMSAccessDeniedException", Some(Why::Denied)),
        ("ValidationException", Some(Why::Invalid)),
        ("ProvisionedThroughputExceededException", None),
        ("ThrottlingException", None),
        ("RequestLimitExceeded", None),
        ("LimitExceededException", None),
    ] {
        let expected = match expected {
            Some(why) => refused(why, name),
            None => Outcome::NotSent(Cause::Throttled),
        };
        assert_eq!(code(400, name).await, expected, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn codes_of_kinesis_are_read_the_same_way() {
    for (name, expected) in [
        ("ExpiredIteratorException", refused(Why::Expired, "ExpiredIteratorException")),
        ("ProvisionedThroughputExceededException", Outcome::NotSent(Cause::Throttled)),
        ("InvalidArgumentException", refused(Why::Invalid, "InvalidArgumentException")),
        ("KMSThrottlingException", Outcome::NotSent(Cause::Throttled)),
    ] {
        let body = format!(r#"{{"__type":"{name}","message":"no"}}"#);
        let (stream, store) = stream(FakeHttp::new(move |_, _| Wire::Answer(400, body.clone())));
        store.keep_cursor(&"s".into(), op(1), "iterator".into());
        let get = StreamOp::GetRecords { shard: "s".into(), via: op(1), limit: 10 };
        assert_eq!(stream.execute(op(2), get).await, expected, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_leaves_the_outcome_unknown() {
    assert_eq!(code(500, "InternalServerError").await, Outcome::Unknown(Cause::Server));
    assert_eq!(code(503, "ServiceUnavailable").await, Outcome::Unknown(Cause::Server));
    assert_eq!(answer(502, "<html>bad gateway</html>").await, Outcome::Unknown(Cause::Server));
    assert_eq!(answer(504, "").await, Outcome::Unknown(Cause::Server));
}

#[tokio::test(start_paused = true)]
async fn an_unclear_failure_is_unknown() {
    let garbled = Outcome::Unknown(Cause::Garbled);
    assert_eq!(code(400, "SomethingNewException").await, garbled);
    assert_eq!(answer(400, "").await, garbled);
    assert_eq!(answer(403, "<html>a proxy says no</html>").await, garbled);
    assert_eq!(answer(200, "{").await, garbled);
    assert_eq!(answer(200, "<html>welcome to the hotel</html>").await, garbled);
    assert_eq!(answer(408, "").await, Outcome::Unknown(Cause::Timeout));
    assert_eq!(answer(429, "").await, Outcome::NotSent(Cause::Throttled));
}

fn io_error(kind: io::ErrorKind) -> ConnectorError {
    ConnectorError::io(io::Error::new(kind, "on purpose").into())
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_is_unknown_and_a_refused_one_unsent() {
    for kind in [
        io::ErrorKind::ConnectionReset,
        io::ErrorKind::BrokenPipe,
        io::ErrorKind::UnexpectedEof,
        // Reported on connections that were in use, too.
        io::ErrorKind::HostUnreachable,
    ] {
        assert_eq!(
            read(move || Wire::Fails(io_error(kind))).await,
            Outcome::Unknown(Cause::Network),
            "{kind}"
        );
    }
    assert_eq!(
        read(|| Wire::Fails(io_error(io::ErrorKind::ConnectionRefused))).await,
        Outcome::NotSent(Cause::Network)
    );
    assert_eq!(
        read(|| Wire::Fails(ConnectorError::timeout("read".into()))).await,
        Outcome::Unknown(Cause::Timeout)
    );
    assert_eq!(
        read(|| Wire::Fails(ConnectorError::other("what?".into(), None))).await,
        Outcome::Unknown(Cause::Network)
    );
}

#[tokio::test(start_paused = true)]
async fn a_silent_service_is_a_timeout_before_the_driver_gives_up() {
    let patience = Duration::from(crate::testing::boot().config.table_timeout());
    let outcome = tokio::time::timeout(patience, read(|| Wire::Hangs)).await;
    assert_eq!(outcome, Ok(Outcome::Unknown(Cause::Timeout)));
}

#[derive(Debug)]
enum Broken {
    Fails,
    Hangs,
}

impl ProvideCredentials for Broken {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        match self {
            Broken::Fails => future::ProvideCredentials::ready(Err(CredentialsError::not_loaded("none"))),
            Broken::Hangs => future::ProvideCredentials::new(std::future::pending()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn without_credentials_nothing_is_sent() {
    for broken in [Broken::Fails, Broken::Hangs] {
        let hangs = matches!(broken, Broken::Hangs);
        let http = FakeHttp::new(|_, _| Wire::Answer(200, "{}".into()));
        let seen = http.seen.clone();
        let table = table(http, SharedCredentialsProvider::new(broken));
        let outcome = table.execute(op(1), TableOp::Read { key: "k".into() }).await;
        let Outcome::NotSent(cause) = outcome else { panic!("{outcome:?}") };
        let expected = if hangs { Cause::Timeout } else { Cause::Credentials };
        assert_eq!(cause, expected);
        assert!(seen.lock().unwrap().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn the_sdk_does_not_retry_by_itself() {
    let http = FakeHttp::new(|_, _| Wire::Answer(400, r#"{"__type":"ThrottlingException"}"#.into()));
    let seen = http.seen.clone();
    let table = table(http, credentials());
    let outcome = table.execute(op(1), TableOp::Describe).await;
    assert_eq!(outcome, Outcome::NotSent(Cause::Throttled));
    assert_eq!(seen.lock().unwrap().len(), 1);
}

/// The texts of hyper in [`dispatch`] are still current: a real client connects to a port without a listener.
#[cfg(feature = "https")]
#[tokio::test]
async fn a_real_client_that_cannot_connect_has_not_sent_anything() {
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    for endpoint in [format!("http://127.0.0.1:{port}"), "http://nowhere.invalid".to_owned()] {
        let table = table_of(crate::aws::https_client(), |config| config.endpoint_url(&endpoint));
        let outcome = table.execute(op(1), TableOp::Describe).await;
        assert_eq!(outcome, Outcome::NotSent(Cause::Network), "{endpoint}");
        let failure = table.failure(op(1)).expect("a reason");
        assert_eq!(failure.at, Some(endpoint));
        assert!(
            failure.why.starts_with("Connection refused") || failure.why.contains("lookup"),
            "{failure:?}"
        );
        assert_eq!(table.failure(op(1)), None, "told once");
    }
}

/// A request that can never be sent does not count as given up, and is told with its reason.
#[cfg(feature = "https")]
#[tokio::test]
async fn a_client_that_cannot_make_requests_says_why() {
    use aws_sdk_dynamodb::config::Region;
    let here = || Some(Region::new("eu-west-1"));
    for (region, endpoint, why) in [
        (None, None, "region"),
        (None, Some("http://127.0.0.1:9"), "region"),
        (here(), Some("foo"), "endpoint"),
        (here(), Some("127.0.0.1:9"), "endpoint"),
        (here(), Some("http://"), "endpoint"),
    ] {
        let table = table_of(crate::aws::https_client(), |mut config| {
            config.set_region(region).set_endpoint_url(endpoint.map(str::to_owned));
            config
        });
        let outcome = table.execute(op(1), TableOp::Describe).await;
        let failure = table.failure(op(1)).expect("a reason");
        assert_eq!(outcome, Outcome::NotSent(Cause::Client), "{endpoint:?}");
        assert!(failure.why.to_lowercase().contains(why), "{failure:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_services_words_are_told_with_the_place_of_the_request() {
    for (status, body, why) in [
        (
            503,
            r#"{"__type":"ServiceUnavailable","message":"later"}"#,
            "ServiceUnavailable: later (HTTP status 503)",
        ),
        (
            400,
            r#"{"__type":"ThrottlingException","message":"Rate exceeded"}"#,
            "ThrottlingException: Rate exceeded (HTTP status 400)",
        ),
        (504, "", "HTTP status 504"),
    ] {
        let table = table(FakeHttp::new(move |_, _| Wire::Answer(status, body.into())), credentials());
        table.execute(op(1), TableOp::Read { key: "k".into() }).await;
        let failure = table.failure(op(1)).expect("a reason");
        assert_eq!(failure.at.as_deref(), Some("https://dynamodb.eu-west-1.amazonaws.com"));
        assert_eq!(failure.why, why);
        // Answers without a reader are not kept for ever.
        table.execute(op(2), TableOp::Read { key: "k".into() }).await;
        table.forget(op(2));
        assert_eq!(table.failure(op(2)), None);
    }
    let table = table(FakeHttp::new(|_, _| Wire::Hangs), SharedCredentialsProvider::new(Broken::Fails));
    let outcome = table.execute(op(1), TableOp::Read { key: "k".into() }).await;
    assert_eq!(outcome, Outcome::NotSent(Cause::Credentials));
    let failure = table.failure(op(1)).expect("a reason");
    let why = "the credential provider was not enabled: none";
    assert_eq!((failure.at, failure.why.as_str()), (None, why));
}
