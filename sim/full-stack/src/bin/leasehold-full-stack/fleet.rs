//! The parent: a process for every world, several at a time.

use crate::cli::Args;
use crate::summary::{Outcome, Summary};
use leasehold_full_stack::verdict::Verdict;
use leasehold_testing::harness::{Which, shrink};
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// One of this many worlds runs with logging on as well.
const LOGGED_EVERY: u64 = 25;
/// How many runs are made to leave out faults of a failed world.
const SHRINKS: u32 = 60;

/// Runs all worlds and reports.
pub(crate) fn run(args: &Args) -> ExitCode {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => {
            eprintln!("error: expected to find this program's own file: {error}");
            return ExitCode::from(2);
        }
    };
    let worlds = args.seeds.0.as_slice();
    let next = AtomicUsize::new(0);
    let (sender, outcomes) = mpsc::channel();
    let mut summary = Summary::new(worlds.len() as u64);
    std::thread::scope(|scope| {
        for _ in 0..args.jobs {
            let (sender, next, program) = (sender.clone(), &next, &program);
            scope.spawn(move || {
                while let Some(which) = worlds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if sender.send(one(program, args, which)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for outcome in outcomes {
            // A reader's early end is no error; the exit code still tells the result.
            let _ = outcome.print(args.json, &mut io::stdout().lock());
            summary.add(outcome);
        }
    });
    let _ = summary.print(args.json, &mut io::stdout().lock());
    if summary.is_good() { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn one(program: &Path, args: &Args, which: &Which) -> Outcome {
    let run = |which: &Which, more: &[&str]| world(program, args, which, more);
    let mut outcome = Outcome { seed: which.seed, ..Outcome::default() };
    match run(which, &[]) {
        Ok(verdict) => outcome.verdict = Some(verdict),
        Err(why) => outcome.failure = Some(why),
    }
    if args.twice && outcome.verdict.is_some() {
        outcome.again(run(which, &[]), "in its second run");
        outcome.repeats += 1;
        if which.seed.is_multiple_of(LOGGED_EVERY) {
            outcome.again(run(which, &["--log"]), "with logging on");
            outcome.logged = true;
        }
    }
    if let Some(first) = outcome.verdict.as_ref().filter(|verdict| verdict.broken.is_some()) {
        let left = |faults: &[usize]| Which { seed: which.seed, faults: Some(faults.to_vec()) };
        let all = which.left(&vec![(); first.drawn]);
        let fails =
            |faults: &[usize]| run(&left(faults), &[]).is_ok_and(|verdict| verdict.broken == first.broken);
        let kept = shrink(&all, SHRINKS, fails);
        outcome.report = run(&left(&kept), &["--tell"]).ok().and_then(|verdict| verdict.report);
    }
    outcome
}

fn world(program: &Path, args: &Args, which: &Which, more: &[&str]) -> Result<Verdict, String> {
    let mut command = Command::new(program);
    command.arg("--world").arg(which.to_string()).args(more);
    if let Some(directory) = &args.traces {
        command.arg("--traces").arg(directory);
    }
    let output = command.output().map_err(|error| format!("its process cannot be run: {error}"))?;
    serde_json::from_slice(&output.stdout).map_err(|_| {
        let text = String::from_utf8_lossy(&output.stderr);
        let mut last: Vec<&str> = text.lines().rev().take(6).collect();
        last.reverse();
        format!("it ended without a verdict: {}", last.join(" | "))
    })
}

/// Prints a line and flushes the output.
pub(crate) fn line(to: &mut impl Write, text: &str) -> io::Result<()> {
    writeln!(to, "{text}")?;
    to.flush()
}
