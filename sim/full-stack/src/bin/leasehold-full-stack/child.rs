//! One world in its own process.

use crate::cli::Args;
use std::fmt::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Runs a world and prints its verdict as one line of JSON.
pub(crate) fn run(seed: u64, args: &Args) -> ExitCode {
    if args.log {
        // Set once, in a process of one world: no subscriber can be set before.
        let _ = tracing::subscriber::set_global_default(LogToNothing::default());
    }
    let world = leasehold_full_stack::run(seed);
    if let Some(directory) = &args.traces
        && let Err(error) = write_traces(directory, seed, &world)
    {
        eprintln!("error: expected to be able to write traces into {directory:?}: {error}");
        return ExitCode::from(2);
    }
    match serde_json::to_string(&world.verdict) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn write_traces(directory: &Path, seed: u64, world: &leasehold_full_stack::World) -> std::io::Result<()> {
    std::fs::create_dir_all(directory)?;
    for (client, trace) in &world.traces {
        std::fs::write(directory.join(format!("{seed}-{client}.jsonl")), trace)?;
    }
    Ok(())
}

/// Formats all log lines of level DEBUG, and keeps none.
#[derive(Debug, Default)]
struct LogToNothing {
    spans: AtomicU64,
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a text cannot fail.
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}

impl Subscriber for LogToNothing {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::DEBUG
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut Text(String::new()));
        Id::from_u64(self.spans.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut Text(String::new()));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Text(String::new()));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
