//! Logs, on stderr.

use crate::exit::Failure;
use std::io::{self, IsTerminal};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts logging: as `RUST_LOG` says, or else as loud as asked for. `quiet` logs nothing unless asked.
pub(super) fn init(verbose: u8, quiet: bool) -> Result<(), Failure> {
    let filter = match std::env::var("RUST_LOG") {
        Ok(text) if !text.trim().is_empty() => text.parse::<Targets>().map_err(|error| {
            Failure::unusable(format!(
                "expected RUST_LOG to be a list such as `warn,leasehold=debug`, found {text:?}: {error}"
            ))
        })?,
        _ => Targets::new().with_default(match (verbose, quiet) {
            (0, true) => LevelFilter::OFF,
            (0, false) => LevelFilter::WARN,
            (1, _) => LevelFilter::INFO,
            (2, _) => LevelFilter::DEBUG,
            _ => LevelFilter::TRACE,
        }),
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal());
    // Where a subscriber is set already (tests), that one is used.
    let _ = tracing_subscriber::registry().with(filter).with(lines).try_init();
    Ok(())
}
