//! Logs, on stderr.

use crate::exit::Failure;
use leasehold_engine::shown::Escaping;
use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal};
use tracing::field::Field;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts logging at the levels of `RUST_LOG`, or else at the level of `verbose`. With `quiet`, logging is off by
/// default.
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
        .fmt_fields(debug_fn(field).delimited(" "))
        .with_ansi(io::stderr().is_terminal());
    // A subscriber set before (by a test) stays in use.
    let _ = tracing_subscriber::registry().with(filter).with(lines).try_init();
    Ok(())
}

/// Writes a field of an event or of a span. Fields hold names from outside and sentences of services. Control
/// characters are shown as escapes, because a line of the log is one event.
fn field(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    match field.name() {
        "message" => write!(Escaping(writer), "{value:?}"),
        // Raw identifiers.
        name => write!(Escaping(writer), "{}={value:?}", name.trim_start_matches("r#")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::sync::Mutex;

    #[test]
    fn an_event_is_one_line_whatever_is_in_it() {
        let (mut log, writer) = io::pipe().expect("a pipe");
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(Mutex::new(writer))
            .with_ansi(false)
            .without_time()
            .fmt_fields(debug_fn(field).delimited(" "));
        let hostile = "a\nERROR forged\u{1b}[2J\u{9b}\u{202e}";
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), || {
            let span = tracing::info_span!("span", shown = %hostile);
            let _entered = span.enter();
            tracing::info!(target: "leasehold", kind = hostile, owner = %hostile, n = 7, "message {hostile}");
        });
        let mut text = String::new();
        log.read_to_string(&mut text).expect("UTF-8");
        let escaped = "a\\nERROR forged\\u{1b}[2J\\u{9b}\\u{202e}";
        assert_eq!(text.matches(escaped).count(), 4, "{text:?}");
        assert!(text.contains("n=7"), "{text}");
        assert_eq!(text.find('\n'), Some(text.len() - 1), "{text:?}");
        assert!(!text.trim_end().chars().any(leasehold_engine::shown::is_hidden), "{text:?}");
    }
}
