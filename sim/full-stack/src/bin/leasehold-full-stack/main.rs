//! `cargo sim-stack`: worlds of the full-stack tier, each in a process of its own.
//!
//! Exit codes: 0 every world ran and is clean; 1 a world is not clean, or differs in its second run; 2 a world cannot
//! run.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the parent runs in real time: it starts a process for every world and waits for it"
)]

mod cli;
mod fleet;
mod guard;
mod summary;

#[cfg(madsim)]
mod child;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = cli::Args::parse();
    if let Err(sentence) = guard::check() {
        eprintln!("error: {sentence}");
        return ExitCode::from(2);
    }
    #[cfg(madsim)]
    if let Some(which) = &args.world {
        return child::run(which, &args);
    }
    fleet::run(&args)
}
