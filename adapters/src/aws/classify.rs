//! The meaning of every error of the AWS SDK: one of the three outcomes besides success.
//!
//! | class of error | outcome |
//! |---|---|
//! | before the request was handed to the HTTP client | `NotSent`: `Credentials` or `Timeout` if that was the reason, else `Client` |
//! | connection refused, name not resolved, TLS or connect time-out | `NotSent(Network)`, `NotSent(Timeout)` |
//! | any other failure to send or receive | `Unknown(Network)` or `Unknown(Timeout)` |
//! | an answer that cannot be read | `Unknown(Garbled)` |
//! | an answer of status 5xx, whatever its code | `Unknown(Server)` |
//! | an error code of the table below | as the table says |
//! | any other error code | `Unknown(Garbled)` |
//!
//! When in doubt, it is `Unknown`: the engine then reads before it acts.
//!
//! Every outcome also carries the service's words, except a failed guard: a failed guard is no failure. No decision
//! depends on the words.

use super::sent::Sent;
use super::words::{of_clock, said};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::{ConnectorError, SdkError};
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use leasehold_engine::input::{Cause, Outcome, Refusal, Why};
use std::error::Error as StdError;
use std::io::ErrorKind;

/// What an error code means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Refused(Why),
    /// Too many requests, or a collision with another request: not executed, and worth trying again.
    Throttled,
}

use Meaning::{Refused, Throttled};

/// The error codes of Kinesis, DynamoDB and their common front, for answers of status 4xx.
const CODES: &[(&str, Meaning)] = &[
    ("ConditionalCheckFailedException", Refused(Why::ConditionFailed)),
    // The thing is not there.
    ("ResourceNotFoundException", Refused(Why::NotFound)),
    ("TableNotFoundException", Refused(Why::NotFound)),
    // The resource exists already, or is in the wrong state.
    ("ResourceInUseException", Refused(Why::InUse)),
    ("TableAlreadyExistsException", Refused(Why::InUse)),
    ("TableInUseException", Refused(Why::InUse)),
    // Tokens.
    ("ExpiredIteratorException", Refused(Why::Expired)),
    ("ExpiredNextTokenException", Refused(Why::Expired)),
    // Who asks.
    ("AccessDenied", Refused(Why::Denied)),
    ("AccessDeniedException", Refused(Why::Denied)),
    ("NotAuthorized", Refused(Why::Denied)),
    ("OptInRequired", Refused(Why::Denied)),
    ("UnrecognizedClientException", Refused(Why::Denied)),
    ("InvalidClientTokenId", Refused(Why::Denied)),
    ("ExpiredToken", Refused(Why::Denied)),
    ("ExpiredTokenException", Refused(Why::Denied)),
    ("IncompleteSignature", Refused(Why::Denied)),
    ("IncompleteSignatureException", Refused(Why::Denied)),
    ("InvalidSignatureException", Refused(Why::Denied)),
    ("SignatureDoesNotMatch", Refused(Why::Denied)),
    ("MissingAuthenticationToken", Refused(Why::Denied)),
    ("MissingAuthenticationTokenException", Refused(Why::Denied)),
    ("KMSAccessDeniedException", Refused(Why::Denied)),
    ("KMSDisabledException", Refused(Why::Denied)),
    ("KMSInvalidStateException", Refused(Why::Denied)),
    ("KMSNotFoundException", Refused(Why::Denied)),
    ("KMSOptInRequired", Refused(Why::Denied)),
    // The time of the request is wrong, by the clock of this host.
    ("RequestTimeTooSkewed", Refused(Why::WrongClock)),
    ("RequestExpired", Refused(Why::WrongClock)),
    ("RequestInTheFuture", Refused(Why::WrongClock)),
    // What is asked.
    ("ValidationException", Refused(Why::Invalid)),
    ("ValidationError", Refused(Why::Invalid)),
    ("InvalidArgumentException", Refused(Why::Invalid)),
    ("SerializationException", Refused(Why::Invalid)),
    ("UnknownOperationException", Refused(Why::Invalid)),
    ("ItemCollectionSizeLimitExceededException", Refused(Why::Invalid)),
    // How often it is asked.
    ("ProvisionedThroughputExceededException", Throttled),
    ("ThrottlingException", Throttled),
    ("Throttling", Throttled),
    ("ThrottledException", Throttled),
    ("RequestThrottledException", Throttled),
    ("RequestLimitExceeded", Throttled),
    ("TooManyRequestsException", Throttled),
    ("LimitExceededException", Throttled),
    ("KMSThrottlingException", Throttled),
    ("TransactionConflictException", Throttled),
    ("ReplicatedWriteConflictException", Throttled),
];

/// The outcome of a request that failed.
pub(super) fn classify<E>(error: &SdkError<E, HttpResponse>, sent: &Sent) -> Outcome
where
    E: ProvideErrorMetadata + StdError + 'static,
{
    let mut outcome = class(error, sent);
    if let Outcome::Refused(refusal) = &mut outcome
        && refusal.why == Why::WrongClock
    {
        let date = error.raw_response().and_then(|response| response.headers().get("date"));
        refusal.detail += &of_clock(sent.at(), date);
    }
    match &outcome {
        Outcome::Refused(refusal) if refusal.why != Why::ConditionFailed => {
            sent.failed(refusal.detail.clone());
        }
        Outcome::NotSent(_) | Outcome::Unknown(_) if sent.is_sent() => sent.failed(why(error)),
        Outcome::NotSent(_) | Outcome::Unknown(_) => sent.failed(in_full(error)),
        Outcome::Applied(_) | Outcome::Refused(_) => {}
    }
    tracing::debug!(
        target: "leasehold",
        error = %aws_smithy_types::error::display::DisplayErrorContext(error),
        code = error.as_service_error().and_then(ProvideErrorMetadata::code),
        ?outcome,
        "a request failed"
    );
    outcome
}

/// The failure in words: the service's words, or else the innermost error, as the most precise text.
pub(crate) fn why<E>(error: &SdkError<E, HttpResponse>) -> String
where
    E: ProvideErrorMetadata + StdError + 'static,
{
    let status = error.raw_response().map(|response| response.status().as_u16());
    match (error.as_service_error().map(ProvideErrorMetadata::meta), status) {
        (Some(meta), Some(status)) => match (meta.code(), meta.message()) {
            (Some(code), Some(message)) => format!("{code}: {} (HTTP status {status})", said(message)),
            (Some(text), None) | (None, Some(text)) => format!("{} (HTTP status {status})", said(text)),
            (None, None) => format!("HTTP status {status}"),
        },
        (None, Some(status)) => format!("HTTP status {status}, {}", said(&innermost(error))),
        (_, None) => said(&innermost(error)).into_owned(),
    }
}

/// The causes of an error, from the outside in, without the SDK's wrapper types.
fn in_full(error: &(dyn StdError + 'static)) -> String {
    let causes = chain(error).skip(1).filter(|error| !error.is::<ConnectorError>());
    let texts: Vec<String> = causes.map(ToString::to_string).collect();
    match texts.is_empty() {
        true => said(&error.to_string()).into_owned(),
        false => said(&texts.join(": ")).into_owned(),
    }
}

fn innermost(error: &(dyn StdError + 'static)) -> String {
    chain(error).last().unwrap_or(error).to_string()
}

fn class<E>(error: &SdkError<E, HttpResponse>, sent: &Sent) -> Outcome
where
    E: ProvideErrorMetadata + StdError + 'static,
{
    match error {
        SdkError::ServiceError(service) => {
            let meta = service.err();
            let status = service.raw().status().as_u16();
            answered(status, meta.code(), meta.message(), sent.action())
        }
        SdkError::ResponseError(response) => match response.raw().status().as_u16() {
            500..=599 => Outcome::Unknown(Cause::Server),
            _ => Outcome::Unknown(Cause::Garbled),
        },
        // A request not handed over cannot have been executed, whatever the failure.
        SdkError::ConstructionFailure(_) => Outcome::NotSent(unsent(error)),
        SdkError::DispatchFailure(_) if !sent.is_sent() => Outcome::NotSent(unsent(error)),
        SdkError::TimeoutError(_) if !sent.is_sent() => Outcome::NotSent(Cause::Timeout),
        SdkError::TimeoutError(_) => Outcome::Unknown(Cause::Timeout),
        SdkError::DispatchFailure(failure) => match failure.as_connector_error() {
            Some(connector) => dispatch(connector),
            None => Outcome::Unknown(Cause::Network),
        },
        _ => Outcome::Unknown(Cause::Garbled),
    }
}

/// The codes of a wrong signature. With these messages, the signature's time is wrong.
const SIGNATURES: [&str; 2] = ["InvalidSignatureException", "SignatureDoesNotMatch"];
const TIMES: [&str; 2] = ["Signature expired", "Signature not yet current"];

/// The meaning of a code with its message: the message tells whether a signature is wrong or old.
fn with_message(code: &str, why: Why, message: &str) -> Why {
    let old = SIGNATURES.contains(&code) && TIMES.iter().any(|time| message.contains(time));
    if old { Why::WrongClock } else { why }
}

/// The codes that mean: who asks is known, and has no permission.
const PERMISSIONS: [&str; 3] = ["AccessDenied", "AccessDeniedException", "NotAuthorized"];

/// The meaning of an error answer. A refusal for a missing permission names the missing IAM action, even if the
/// service does not.
pub(super) fn answered(
    status: u16, code: Option<&str>, message: Option<&str>, action: Option<&str>,
) -> Outcome {
    if (500..=599).contains(&status) {
        return Outcome::Unknown(Cause::Server);
    }
    // Codes count in answers that blame the request.
    let meaning = code
        .filter(|_| (400..=499).contains(&status))
        .and_then(|code| CODES.iter().find(|(known, _)| *known == code));
    match meaning {
        Some((code, Refused(why))) => Outcome::Refused(Refusal {
            why: with_message(code, *why, message.unwrap_or_default()),
            current: None,
            detail: {
                let said = match message {
                    Some(message) if !message.is_empty() => format!("{code}: {}", said(message)),
                    _ => (*code).to_owned(),
                };
                match action {
                    Some(action) if PERMISSIONS.contains(code) && !said.contains(action) => {
                        format!("{said}; the IAM action is {action}")
                    }
                    _ => said,
                }
            },
        }),
        Some((_, Throttled)) => Outcome::NotSent(Cause::Throttled),
        None if status == 429 => Outcome::NotSent(Cause::Throttled),
        None if status == 408 => Outcome::Unknown(Cause::Timeout),
        None => Outcome::Unknown(Cause::Garbled),
    }
}

/// Why a request did not leave.
fn unsent(error: &(dyn StdError + 'static)) -> Cause {
    let credentials = |error: &(dyn StdError + 'static)| {
        error.is::<aws_credential_types::provider::error::CredentialsError>()
            // A hanging provider, or a client without a provider: the SDK has no type for these errors.
            || error.to_string().contains("identity")
            || error.to_string().contains("auth scheme")
    };
    if chain(error).any(credentials) { Cause::Credentials } else { Cause::Client }
}

/// A failure of the HTTP client. Only what must have happened before the first byte of a request counts as not sent.
fn dispatch(error: &ConnectorError) -> Outcome {
    let before_connection = chain(error).any(|error| {
        // Further kinds, such as an unreachable host, also occur on connections in use.
        let refused = error
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == ErrorKind::ConnectionRefused);
        // hyper hides its kinds but prints their texts. Should a text change one day, the failure counts as unknown,
        // and unknown is safe.
        refused
            || error.is::<aws_smithy_runtime_api::client::dns::ResolveDnsError>()
            || matches!(error.to_string().as_str(), "client error (Connect)" | "dns error")
    });
    let connect_timeout =
        || chain(error).any(|error| error.to_string().starts_with("HTTP connect timeout occurred"));
    match () {
        () if connect_timeout() => Outcome::NotSent(Cause::Timeout),
        () if before_connection => Outcome::NotSent(Cause::Network),
        () if error.is_timeout() => Outcome::Unknown(Cause::Timeout),
        () => Outcome::Unknown(Cause::Network),
    }
}

fn chain<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> + use<'a> {
    std::iter::successors(Some(error), |error: &&'a (dyn StdError + 'static)| StdError::source(*error))
}

#[cfg(all(test, feature = "tokio-runtime"))]
#[path = "classify_tests.rs"]
mod tests;
