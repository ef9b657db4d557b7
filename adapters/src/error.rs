//! What can go wrong with a worker as a whole. What goes wrong with one request is the engine's to deal with.

use crate::report::Report;
use leasehold_engine::config::BadConfig;
use leasehold_engine::notice::Fatal;
use std::io;

/// Why a worker could not be built, stopped without being asked to, or left something behind as it stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A configuration that cannot work.
    #[error("the configuration cannot work: {0}; correct the option")]
    Config(#[from] BadConfig),
    /// Something needed was not given to the builder.
    #[error("expected {what}, found none; call `{call}` on the builder")]
    Missing {
        /// What is needed.
        what: &'static str,
        /// How it is given.
        call: &'static str,
    },
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
    /// There is no thread for what keeps the leases.
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
    /// The trace file cannot be created.
    #[error("expected to be able to create the trace file {path:?}: {source}; choose another path")]
    Trace {
        /// The path.
        path: std::path::PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The worker cannot go on.
    #[error(transparent)]
    Fatal(#[from] Fatal),
    /// The worker was asked to stop and has stopped, but leases were left to expire, or handlers were stopped before the end.
    /// No record is lost by that: other workers take the leases later, and process again what was not checkpointed.
    #[error(
        "the worker has stopped{0}; see the warnings in the log before this, or give a stop more time with `shutdown_timeout` or \
         `Control::shutdown_within`"
    )]
    Unclean(Box<Report>),
}
