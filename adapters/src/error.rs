//! Errors of a whole worker. The engine deals with the errors of single requests.

use crate::report::Report;
use leasehold_engine::config::BadConfig;
use leasehold_engine::notice::Fatal;
use std::io;

/// The build of a worker failed, a worker stopped without a shutdown, or a stopped worker left something behind.
///
/// Faults in a worker's clients, options and surroundings, and the worker's reaction:
///
/// | what is wrong | the worker |
/// |---|---|
/// | a client or a name is not given | the program does not compile: see [`parts`](crate::parts) |
/// | a client has no region, or an option is out of range | [`Builder::build`](crate::Builder::build) refuses it: [`NoRegion`](Error::NoRegion), [`Config`](Error::Config) |
/// | the endpoint of a client is no URL | ends within seconds, after 6 attempts: [`Fatal::Client`] |
/// | no credentials are found at the start | ends within seconds, after 6 attempts: [`Fatal::Denied`] |
/// | at the start, credentials are refused or expired, or a permission is missing for the table or the only stream | ends after a second look, a second later: [`Fatal::Denied`], with the IAM action |
/// | at the start, the host's clock is off by more than 5 minutes | ends at once: [`Fatal::WrongClock`], with the difference |
/// | the table has another key | ends after a second look: [`Fatal::TableIncompatible`] |
/// | the stream does not exist in this account and region | ends after a second look, before creating a table: [`Fatal::StreamMissing`], with the request's address |
/// | nothing listens at the endpoint, its name is not resolved, no answer comes, or the endpoint is not AWS | tries again for ever |
/// | the table or the stream is being created or deleted | waits; for a table no longer than 10 minutes ([`Fatal::TableUnusable`]) |
/// | credentials expire, a permission goes or the clock is set wrong later, while leases are held or not | tries again for ever; a lease that is not renewed in time is paused |
/// | a row is of another stream | ends within seconds of a start, and after the next scans of a running worker: [`Fatal::OtherStream`] |
/// | a permission is missing that the start does not need, as `kinesis:GetRecords` | tries again for ever |
///
/// The start ends when the worker has found the stream and then the table, before taking any lease. The log reports
/// an error retried for ever within 5 s, and then once a minute for each service and cause, with the address, the
/// reason, and the number of failed requests since; a line tells the end of the trouble.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A configuration that cannot work.
    #[error("the configuration cannot work: {0}; correct the option")]
    Config(#[from] BadConfig),
    /// A client that knows no region: it can make no request.
    #[error(
        "expected the {service} client to have an AWS region, found none; set AWS_REGION or the profile's `region` before the \
         configuration is loaded, or call `.region(…)` on the client's configuration"
    )]
    NoRegion {
        /// The client's service.
        service: &'static str,
    },
    /// There is no tokio runtime.
    #[error(
        "expected to be called within a tokio runtime, found none; call `run` from an async fn under #[tokio::main], or give \
         the builder a runtime"
    )]
    NoRuntime,
    /// The thread for the leases cannot be started.
    #[error(
        "expected to be able to start a thread for the leases: {0}; allow the program one more, or call          `coordination_on_caller(true)` on the builder"
    )]
    Thread(#[source] io::Error),
    /// The process cannot listen to signals.
    #[error(
        "expected to be able to listen to Ctrl-C and SIGTERM: {0}; call `Control::shutdown` where the program learns otherwise that \
         it is to end"
    )]
    Signal(#[source] io::Error),
    /// The trace file or the trace folder cannot be created, or another worker uses the folder.
    #[error("expected to be able to create the trace {path:?}: {source}; choose another path")]
    Trace {
        /// The path.
        path: std::path::PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The worker cannot go on.
    #[error(transparent)]
    Fatal(#[from] Fatal),
    /// The worker was asked to stop and has stopped, but leases were left to expire, or handlers were stopped before
    /// the end. No record is lost: other workers take the leases later, and process all records after the checkpoints
    /// again.
    #[error(
        "the worker has stopped{0}; see the warnings in the log before this, or give a stop more time with `shutdown_timeout` or \
         `Control::shutdown_within`"
    )]
    Unclean(Box<Report>),
    /// A worker of several streams has no stream at its start, or reads from a source other than Kinesis.
    #[error(
        "expected at least one stream and a Kinesis client to read it with, found none; give `Builder::streams` what is to be read, and          `Builder::kinesis` a client"
    )]
    NoStreams,
    /// A worker of one stream cannot read further streams.
    #[error(
        "expected a worker of several streams, found one that reads one stream: its leases are named by shard ids alone; build it          with `Builder::streams` and another application name"
    )]
    OneStream,
    /// The policy for records that cannot be processed is invalid.
    #[error("failure policy: expected {expected}, found {found}; {remedy}")]
    FailurePolicy {
        /// What was expected.
        expected: &'static str,
        /// What was found.
        found: &'static str,
        /// What to do.
        remedy: &'static str,
    },
}
