//! `leasehold diff`: the first input at which two traces differ.

use crate::exit::{self, Failure, Verdict};
use crate::replay::describe_input;
use crate::text::{Text, put, put_line};
use crate::trace_file;
use clap::Args;
use leasehold::internals::{OutputDigest, TraceReader, TraceRecord};
use leasehold_engine::input::Input;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// Find the first input with a difference between two traces, in the input or its answer, and show it with the inputs
/// before.
///
/// Exit code 1 if the traces differ, 2 if a file is damaged or no trace: the message names the line.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  leasehold diff debug.jsonl release.jsonl")]
pub(super) struct DiffArgs {
    /// A trace.
    a: PathBuf,
    /// The other trace.
    b: PathBuf,
    /// Results as one JSON object.
    #[arg(long)]
    json: bool,
}

/// The number of inputs shown before the first difference.
const BEFORE: usize = 5;

pub(super) fn run(args: &DiffArgs) -> Result<Verdict, Failure> {
    let comparison = compare(steps(&args.a)?, steps(&args.b)?)?;
    exit::show(args.json, &as_json(&comparison), || describe(&comparison, args))?;
    Ok(Verdict::of(comparison.difference.is_some()))
}

/// One recorded input.
#[derive(Clone, Debug, PartialEq)]
struct Step {
    n: u64,
    input: Box<Input>,
    out: Option<OutputDigest>,
}

/// Where two traces part.
#[derive(Debug, PartialEq)]
enum Difference {
    /// The inputs are not the same. Absent: that trace has ended.
    Input(Option<Step>, Option<Step>),
    /// The same input has two answers.
    Answer(Step, Step),
}

#[derive(Debug, PartialEq)]
struct Comparison {
    /// How many inputs agree.
    same: u64,
    /// The last of them.
    before: VecDeque<Step>,
    difference: Option<Difference>,
}

/// The inputs of a trace file.
fn steps(path: &Path) -> Result<impl Iterator<Item = Result<Step, Failure>>, Failure> {
    let name = path.display();
    Ok(TraceReader::new(trace_file::open(path)?).filter_map(move |record| match record {
        Ok(TraceRecord::Input { n, input, out }) => Some(Ok(Step { n, input, out })),
        Ok(_) => None,
        Err(error) => Some(Err(Failure::unusable(format!("{name}: {error}")))),
    }))
}

fn compare(
    mut a: impl Iterator<Item = Result<Step, Failure>>, mut b: impl Iterator<Item = Result<Step, Failure>>,
) -> Result<Comparison, Failure> {
    let mut comparison = Comparison { same: 0, before: VecDeque::new(), difference: None };
    loop {
        let difference = match (a.next().transpose()?, b.next().transpose()?) {
            (None, None) => return Ok(comparison),
            (Some(one), Some(other)) if (one.n, &one.input) == (other.n, &other.input) => {
                // A flight recorder's last input may have no answer yet.
                let differ = one.out.zip(other.out).is_some_and(|(one, other)| one != other);
                if !differ {
                    comparison.same += 1;
                    comparison.before.push_back(one);
                    if comparison.before.len() > BEFORE {
                        comparison.before.pop_front();
                    }
                    continue;
                }
                Difference::Answer(one, other)
            }
            (one, other) => Difference::Input(one, other),
        };
        comparison.difference = Some(difference);
        return Ok(comparison);
    }
}

fn line(step: &Step) -> String {
    format!("{:>7}  {:>12}  {}", step.n, step.input.at, describe_input(&step.input.body))
}

fn digest(step: &Step) -> String {
    step.out.map_or_else(|| "not recorded".to_owned(), |out| out.to_string())
}

fn describe(comparison: &Comparison, args: &DiffArgs) -> Text {
    let mut text = Text::default();
    let Some(difference) = &comparison.difference else {
        put!(text, "no difference: {} inputs and their answers agree", comparison.same);
        return text;
    };
    for step in &comparison.before {
        put_line!(text, "  both {}", line(step));
    }
    let (a, b) = (args.a.display(), args.b.display());
    match difference {
        Difference::Input(one, other) => {
            for (name, step) in [("A", one), ("B", other)] {
                let shown = step.as_ref().map_or_else(|| " has ended".to_owned(), line);
                put_line!(text, "     {name} {shown}");
            }
        }
        Difference::Answer(one, other) => {
            put_line!(text, "  both {}", line(one));
            put_line!(text, "     A answered with digest {}", digest(one));
            put_line!(text, "     B answered with digest {}", digest(other));
            put_line!(
                text,
                "`leasehold replay FILE --from {0} --until {0}` shows what the engine answers",
                one.n
            );
        }
    }
    put!(text, "DIFFERENCE after {} inputs that agree (A: {a}, B: {b})", comparison.same);
    text
}

fn as_json(comparison: &Comparison) -> Value {
    let step = |step: &Step| json!({"input": step.n, "at": step.input.at, "body": step.input.body, "out": step.out.map(|out| out.to_string())});
    let before: Vec<Value> = comparison.before.iter().map(step).collect();
    let difference = comparison.difference.as_ref().map(|difference| match difference {
        Difference::Input(one, other) => {
            json!({"what": "input", "a": one.as_ref().map(step), "b": other.as_ref().map(step)})
        }
        Difference::Answer(one, other) => json!({"what": "answer", "a": step(one), "b": step(other)}),
    });
    json!({"same": comparison.same, "before": before, "difference": difference})
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_engine::input::Body;
    use leasehold_engine::time::{Mono, Wall};

    fn step(n: u64, at: u64, out: Option<u64>) -> Step {
        let input = Input { at: Mono(at), wall: Wall(0), body: Body::Tick };
        let out = out.map(|out| OutputDigest::of(&[], Mono(out)));
        Step { n, input: Box::new(input), out }
    }

    fn compared(a: &[Step], b: &[Step]) -> Comparison {
        compare(a.iter().cloned().map(Ok), b.iter().cloned().map(Ok)).expect("nothing fails")
    }

    fn eight() -> Vec<Step> {
        (0..8).map(|n| step(n, n * 10, Some(n))).collect()
    }

    #[test]
    fn a_trace_does_not_differ_from_itself() {
        let comparison = compared(&eight(), &eight());
        assert_eq!((comparison.same, comparison.difference), (8, None));
    }

    #[test]
    fn the_first_difference_is_found_with_five_inputs_before_it() {
        let mut other = eight();
        other[6] = step(6, 61, Some(6));
        other[7] = step(7, 71, Some(7));
        let comparison = compared(&eight(), &other);
        let before: Vec<u64> = comparison.before.iter().map(|step| step.n).collect();
        assert_eq!((comparison.same, before), (6, vec![1, 2, 3, 4, 5]));
        assert_eq!(
            comparison.difference,
            Some(Difference::Input(Some(step(6, 60, Some(6))), Some(other[6].clone())))
        );
    }

    #[test]
    fn the_same_input_with_another_answer_differs() {
        let mut other = eight();
        other[2].out = None;
        other[3] = step(3, 30, Some(99));
        let comparison = compared(&eight(), &other);
        assert_eq!(comparison.same, 3);
        assert!(matches!(comparison.difference, Some(Difference::Answer(..))));
    }

    #[test]
    fn a_trace_that_ends_early_differs_there() {
        let comparison = compared(&eight(), &eight()[..5]);
        assert_eq!(comparison.same, 5);
        assert!(matches!(comparison.difference, Some(Difference::Input(Some(_), None))));
    }
}
