//! The `leasehold` command: one file per subcommand.
//!
//! Results go to stdout, logs and progress to stderr. The exit code is 0 if all is well, 1 if what was looked for was
//! found (a violation, a divergence, a lost record), 2 if the command or its input cannot be used.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "commands are the edge: they read the clock, the environment and files, and start threads"
)]

#[cfg(feature = "aws")]
mod admin;
mod bench;
#[cfg(feature = "aws")]
mod clients;
#[cfg(feature = "aws")]
pub mod consume;
mod copy;
#[cfg(feature = "aws")]
mod demo;
mod determinism;
mod diff;
mod exhaust;
mod exit;
mod explain;
mod formats;
mod hazards;
mod input;
#[cfg(feature = "aws")]
mod local;
mod logging;
#[cfg(feature = "aws")]
mod migrate;
mod mutants;
#[cfg(feature = "aws")]
mod names;
mod page;
mod plan;
mod position;
mod present;
mod replay;
mod scenario;
mod show;
mod signal;
mod sim;
mod story;
#[cfg(feature = "aws")]
mod streams;
mod text;
mod trace_file;

use clap::{CommandFactory, Parser, Subcommand};
#[cfg(feature = "aws")]
use exit::{Failure, Verdict};
use leasehold_engine::shown::is_hidden;
use std::ffi::OsString;
#[cfg(feature = "aws")]
use std::future::Future;
use std::io::{self, Write};
use std::process::ExitCode;

/// A Kinesis consumer for simulation and replay.
#[derive(Debug, Parser)]
#[command(
    name = "leasehold",
    version,
    arg_required_else_help = true,
    propagate_version = true,
    disable_help_subcommand = true,
    after_help = "Example, with no AWS account:\n  leasehold demo\n\nExit codes: 0 fine, 1 found what was looked for, 2 wrong usage or unreadable input."
)]
struct Cli {
    /// More logs on stderr; twice for even more. The variable RUST_LOG sets the details.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the whole system at work on this machine: an in-memory AWS, a fleet of workers, resharding, a killed worker.
    #[cfg(feature = "aws")]
    Demo(demo::DemoArgs),
    /// Serve the in-memory Kinesis and DynamoDB to any AWS SDK.
    #[cfg(feature = "aws")]
    Local(local::LocalArgs),
    /// Consume a stream: one JSON line per record.
    #[cfg(feature = "aws")]
    Consume(consume::ConsumeArgs),
    /// Look at a lease table and change it: owners of leases, release, rewind, repair; end a consumer.
    #[cfg(feature = "aws")]
    Admin(admin::AdminArgs),
    /// Move an application's leases to another table: checkpoints, parents and ends.
    #[cfg(feature = "aws")]
    Migrate(migrate::MigrateArgs),
    /// Run simulated fleets through faults and judge the outcome.
    Sim(sim::SimArgs),
    /// Put deliberate bugs into the sources and see whether the oracles catch them.
    Mutants(mutants::MutantsArgs),
    /// Run the same worlds in two processes and compare them all along.
    Determinism(determinism::DeterminismArgs),
    /// What `determinism` starts.
    #[command(hide = true)]
    Digests(determinism::DigestsArgs),
    /// Visit every order of events of a small scope.
    Exhaust(exhaust::ExhaustArgs),
    /// Say what shard sync would do to a lease table, and find faults of the table, from two files.
    Plan(plan::PlanArgs),
    /// Measure how fast this machine runs the engine, the simulator and the reader.
    Bench(bench::BenchArgs),
    /// Feed a recorded trace to the engine again and compare the answers.
    Replay(replay::ReplayArgs),
    /// Show a trace as a timeline: one page without other files.
    Show(show::ShowArgs),
    /// Find the first difference between two traces.
    Diff(diff::DiffArgs),
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refused(&error),
    };
    // The demo tells its own story. The warnings of other commands are the demo's subject.
    #[cfg(feature = "aws")]
    let quiet = matches!(cli.command, Command::Demo(_));
    #[cfg(not(feature = "aws"))]
    let quiet = false;
    let outcome = logging::init(cli.verbose, quiet).and_then(|()| match cli.command {
        #[cfg(feature = "aws")]
        Command::Demo(args) => on_tokio(demo::run(args)),
        #[cfg(feature = "aws")]
        Command::Local(args) => on_tokio(local::run(args)),
        #[cfg(feature = "aws")]
        Command::Consume(args) => on_tokio(consume::run(args)),
        #[cfg(feature = "aws")]
        Command::Admin(args) => on_tokio(admin::run(args)),
        #[cfg(feature = "aws")]
        Command::Migrate(args) => on_tokio(migrate::run(args)),
        Command::Sim(args) => sim::run(&args),
        Command::Mutants(args) => mutants::run(&args),
        Command::Determinism(args) => determinism::run(&args),
        Command::Digests(args) => determinism::digests(&args),
        Command::Exhaust(args) => exhaust::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Diff(args) => diff::run(&args),
    });
    exit::code(outcome)
}

/// Prints wrong usage with exit code 2, and a request for help with exit code 0.
fn refused(error: &clap::Error) -> ExitCode {
    let hidden = |argument: OsString| argument.to_string_lossy().chars().any(is_hidden);
    if !error.use_stderr() || !std::env::args_os().any(hidden) {
        error.exit();
    }
    // Without clap's own colours, escape codes in the message are of an argument.
    let plain = Cli::command().styles(clap::builder::Styles::plain()).try_get_matches();
    let said = text::usage(plain.as_ref().err().unwrap_or(error));
    let _ = writeln!(io::stderr(), "{said}");
    ExitCode::from(2)
}

#[cfg(feature = "aws")]
fn on_tokio(work: impl Future<Output = Result<Verdict, Failure>>) -> Result<Verdict, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::unusable(format!("the runtime cannot be started: {error}")))?;
    let outcome = runtime.block_on(work);
    runtime.shutdown_background();
    outcome
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
