//! `leasehold determinism`: the same worlds in two processes, compared all along.
//!
//! Each process prints the digest of every world after every so many inputs. Where two digests differ, both processes
//! run the world again and print every input of the stretch before the differing digest. The command shows the first
//! differing input.

use crate::exit::{self, Failure, Verdict};
use crate::sim::parse_range;
use clap::Args;
use leasehold_sim::run::{Options, run_seed};
use serde_json::json;
use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Run the same worlds in two processes and compare them all along.
///
/// With another build of this program (debug and release, say), the command finds differences between the builds.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  leasehold determinism --seeds 0..200\n  leasehold determinism --seeds 0..200 --with target/debug/leasehold"
)]
pub(super) struct DeterminismArgs {
    /// The worlds: from A up to but not including B.
    #[arg(long, value_name = "A..B", default_value = "0..200", value_parser = parse_range)]
    seeds: Range<u64>,
    /// The program of the second process; by default this one.
    #[arg(long, value_name = "PROGRAM")]
    with: Option<PathBuf>,
    /// Compare after every so many inputs.
    #[arg(long, value_name = "K", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// Results as one JSON object.
    #[arg(long)]
    json: bool,
}

/// The work of each of the two processes.
#[derive(Debug, Args)]
pub(super) struct DigestsArgs {
    #[arg(long, value_parser = parse_range)]
    seeds: Range<u64>,
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// Print these inputs instead, by their numbers from 0.
    #[arg(long, value_parser = parse_range)]
    inputs: Option<Range<u64>>,
}

/// Tells digests, a line for every world, or inputs, a line each.
pub(super) fn digests(args: &DigestsArgs) -> Result<Verdict, Failure> {
    for seed in args.seeds.clone() {
        let options = Options { check_every: args.every, trace: args.inputs.is_some(), ..Options::default() };
        let found = run_seed(seed, &options).found;
        let mut text = String::new();
        match &args.inputs {
            None => {
                let _ = write!(text, "{seed} {:016x}", found.digest);
                for check in &found.checks {
                    let _ = write!(text, " {check:016x}");
                }
            }
            Some(range) => {
                let told = found.trace.iter().zip(&found.checks).enumerate();
                let skip = usize::try_from(range.start).unwrap_or(usize::MAX);
                let take = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
                for (n, ((life, input), check)) in told.skip(skip).take(take) {
                    let input = serde_json::to_string(input).unwrap_or_default();
                    let _ = writeln!(text, "{check:016x} input {n}, of life {life}: {input}");
                }
                text.truncate(text.trim_end().len());
            }
        }
        exit::print(&text)?;
    }
    Ok(Verdict::Fine)
}

pub(super) fn run(args: &DeterminismArgs) -> Result<Verdict, Failure> {
    let own = std::env::current_exe()
        .map_err(|error| Failure::under_way(format!("this program cannot be found again: {error}")))?;
    let other = args.with.clone().unwrap_or_else(|| own.clone());
    let seeds = format!("{}..{}", args.seeds.start, args.seeds.end);
    let every = args.every.to_string();
    let asked = ["digests", "--seeds", &seeds, "--every", &every];
    let (one, two) = both(&own, &other, &asked)?;
    let difference = one.lines().zip(two.lines()).find(|(one, two)| one != two);
    let worlds = args.seeds.end - args.seeds.start;
    let told = [&one, &two].map(|text| text.lines().count() as u64);
    let Some((first, second)) = difference else {
        if told != [worlds, worlds] {
            return Err(Failure::under_way(format!(
                "expected {worlds} worlds of both processes, found {} and {}",
                told[0], told[1]
            )));
        }
        exit::show(args.json, &json!({ "worlds": worlds, "difference": null }), || {
            format!("no difference: {worlds} worlds went the same way in both processes")
        })?;
        return Ok(Verdict::Fine);
    };
    let (seed, stretch) = place(first, second);
    let range = format!("{}..{}", stretch * args.every, (stretch + 1) * args.every + 1);
    let world = format!("{seed}..{}", seed + 1);
    let asked = ["digests", "--seeds", &world, "--every", "1", "--inputs", &range];
    let (one, two) = both(&own, &other, &asked)?;
    let inputs = one.lines().zip(two.lines()).find(|(one, two)| one != two);
    let (one, two) = inputs.unwrap_or(("nothing that differs", "nothing that differs"));
    let difference = json!({ "seed": seed, "first": one, "second": two });
    exit::show(args.json, &json!({ "worlds": worlds, "difference": difference }), || {
        format!(
            "DIFFERENCE in the world of seed {seed}: up to here both went the same way, with this input or its answer they \
             part (digest, then the input)\n  first process:  {one}\n  second process: {two}"
        )
    })?;
    Ok(Verdict::Found)
}

/// The world and the stretch of two lines that differ.
fn place(one: &str, two: &str) -> (u64, u64) {
    let seed = one.split(' ').next().and_then(|seed| seed.parse().ok());
    // After the seed comes the digest of the end, then those under way.
    let same = one.split(' ').zip(two.split(' ')).skip(2);
    let stretch = same.take_while(|(one, two)| one == two).count() as u64;
    (seed.unwrap_or(0), stretch)
}

/// The output of two processes run at the same time.
fn both(own: &Path, other: &Path, arguments: &[&str]) -> Result<(String, String), Failure> {
    let one = start(own, arguments)?;
    let two = start(other, arguments)?;
    Ok((told(own, one)?, told(other, two)?))
}

fn start(program: &Path, arguments: &[&str]) -> Result<Child, Failure> {
    Command::new(program).args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(
        |error| {
            Failure::unusable(format!(
                "expected a build of this program at {}, which cannot be started: {error}",
                program.display()
            ))
        },
    )
}

fn told(program: &Path, child: Child) -> Result<String, Failure> {
    let name = program.display();
    let output = child
        .wait_with_output()
        .map_err(|error| Failure::under_way(format!("{name} cannot be listened to: {error}")))?;
    if !output.status.success() {
        return Err(Failure::under_way(format!("expected {name} to end well, found {}", output.status)));
    }
    String::from_utf8(output.stdout)
        .map_err(|_| Failure::under_way(format!("expected text of {name}, found other bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_stretch_that_differs_is_found() {
        assert_eq!(place("7 ff aa bb cc", "7 ee aa bb dd"), (7, 2));
        assert_eq!(place("7 ff aa", "7 ee ab"), (7, 0));
        assert_eq!(place("7 ff aa", "7 ee aa"), (7, 1));
    }
}
