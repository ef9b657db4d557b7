//! One world in its own process.

use crate::cli::Args;
use leasehold_full_stack::Ran;
use leasehold_testing::harness::Which;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use tracing_subscriber::filter::LevelFilter;

/// A world takes seconds; a world past this time never ends.
const PATIENCE: Duration = Duration::from_secs(300);

/// Runs a world and prints its verdict as one line of JSON.
pub(crate) fn run(which: &Which, args: &Args) -> ExitCode {
    if args.log {
        // All lines of level DEBUG are formatted, and none is kept.
        tracing_subscriber::fmt()
            .with_max_level(LevelFilter::DEBUG)
            .with_writer(std::io::sink)
            .without_time()
            .init();
    }
    // A thread outside of the simulation: its clock is that of the machine.
    std::thread::spawn(|| {
        std::thread::sleep(PATIENCE);
        eprintln!("error: it did not end within {} s", PATIENCE.as_secs());
        std::process::exit(2);
    });
    let world = leasehold_full_stack::run(which, args.tell);
    if let Some(directory) = &args.traces
        && let Err(error) = write_traces(directory, which.seed, &world)
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

fn write_traces(directory: &Path, seed: u64, world: &Ran) -> std::io::Result<()> {
    std::fs::create_dir_all(directory)?;
    for (client, trace) in &world.traces {
        std::fs::write(directory.join(format!("{seed}-{client}.jsonl")), trace)?;
    }
    Ok(())
}
