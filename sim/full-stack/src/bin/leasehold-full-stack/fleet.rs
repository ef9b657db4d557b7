//! The parent: a process for every world, several at a time.

use crate::cli::Args;
use crate::summary::{Outcome, Summary};
use leasehold_full_stack::verdict::Verdict;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// One of this many worlds runs with logging on as well.
const LOGGED_EVERY: u64 = 25;
/// A world takes seconds; a world past this time never ends.
const PATIENCE: Duration = Duration::from_secs(300);

/// Runs all worlds and reports.
pub(crate) fn run(args: &Args) -> ExitCode {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => {
            eprintln!("error: expected to find this program's own file: {error}");
            return ExitCode::from(2);
        }
    };
    let seeds = args.seeds.0.clone();
    let next = AtomicU64::new(seeds.start);
    let (sender, outcomes) = mpsc::channel();
    let mut summary = Summary::new(seeds.end - seeds.start);
    std::thread::scope(|scope| {
        for _ in 0..args.jobs {
            let (sender, next, seeds, program) = (sender.clone(), &next, &seeds, &program);
            scope.spawn(move || {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end || sender.send(one(program, args, seed)).is_err() {
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

fn one(program: &Path, args: &Args, seed: u64) -> Outcome {
    let mut outcome = Outcome { seed, ..Outcome::default() };
    match world(program, args, seed, false) {
        Ok(verdict) => outcome.verdict = Some(verdict),
        Err(why) => outcome.failure = Some(why),
    }
    if args.twice && outcome.verdict.is_some() {
        outcome.again(world(program, args, seed, false), "in its second run");
        outcome.repeats += 1;
        if seed.is_multiple_of(LOGGED_EVERY) {
            outcome.again(world(program, args, seed, true), "with logging on");
            outcome.logged = true;
        }
    }
    outcome
}

fn world(program: &Path, args: &Args, seed: u64, log: bool) -> Result<Verdict, String> {
    let mut command = Command::new(program);
    command.arg("--world").arg(seed.to_string());
    if let Some(directory) = &args.traces {
        command.arg("--traces").arg(directory);
    }
    if log {
        command.arg("--log");
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("its process cannot be started: {error}"))?;
    // Both pipes are read at once, so that a world with much output is not held up.
    let (out, err) = (read(child.stdout.take()), read(child.stderr.take()));
    let ended = wait(&mut child)?;
    let (out, err) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
    if !ended {
        return Err(format!("it did not end within {} s", PATIENCE.as_secs()));
    }
    serde_json::from_str(out.trim()).map_err(|_| {
        let last: Vec<&str> = err.lines().rev().take(6).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        format!("it ended without a verdict: {}", last.join(" | "))
    })
}

fn read<R: Read + Send + 'static>(source: Option<R>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut source) = source {
            // After a read error, the bytes read before are enough.
            let _ = source.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Whether the child ended by itself.
fn wait(child: &mut Child) -> Result<bool, String> {
    let begun = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(_)) => return Ok(true),
            Ok(None) if begun.elapsed() > PATIENCE => {
                let _ = child.kill();
                let _ = child.wait();
                return Ok(false);
            }
            Ok(None) => std::thread::sleep(Duration::from_millis(5)),
            Err(error) => return Err(format!("its process cannot be waited for: {error}")),
        }
    }
}

/// Prints a line and flushes the output.
pub(crate) fn line(to: &mut impl Write, text: &str) -> io::Result<()> {
    writeln!(to, "{text}")?;
    to.flush()
}
