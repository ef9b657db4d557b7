//! `leasehold replay`: a trace, fed to the engine again.

use crate::exit::{self, Failure, Verdict};
use crate::explain::Explanation;
use crate::page;
use crate::story;
use crate::text::{Text, put, put_line};
use crate::trace_file::{self, Lines};
use clap::Args;
use leasehold::internals::{ReplayReport, TraceKind, TraceReader, TraceRecord, replay_on};
use leasehold_engine::Engine;
use leasehold_engine::input::{Body, Input, Outcome};
use leasehold_engine::output::Output;
use leasehold_sim::timeline::trace::TraceTimeline;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Feed a recorded trace to the engine again and compare every answer with the recorded one.
///
/// Stops at the first differing answer: exit code 1. A damaged file, a file without its end, or a file of another kind
/// is refused with the number of the line: exit code 2.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  leasehold replay worker-1.jsonl\n  leasehold replay worker-1.jsonl --from 100 --until 120\n  leasehold replay worker-1.jsonl --explain shardId-000000000003\n  leasehold replay worker-1.jsonl --html worker-1.html\n  leasehold replay traces/life-000003 --partial"
)]
pub(super) struct ReplayArgs {
    /// The trace: a file, or a folder of `consume --trace-dir`. Of a folder, the newest life is read unless the path
    /// names another life.
    file: PathBuf,
    /// Show inputs and answers from this input on.
    #[arg(long, value_name = "N")]
    from: Option<u64>,
    /// Show inputs and answers up to this input.
    #[arg(long, value_name = "N")]
    until: Option<u64>,
    /// Tell every act of the worker on one shard, and its reason.
    #[arg(long, value_name = "SHARD", conflicts_with_all = ["from", "until"])]
    explain: Option<String>,
    /// The timeline as a page in one file.
    #[arg(long, value_name = "OUT")]
    html: Option<PathBuf>,
    /// Accept the trace of a killed process, without an end, and replay the recorded part.
    #[arg(long)]
    partial: bool,
    /// Results as one JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &ReplayArgs) -> Result<Verdict, Failure> {
    let mut shown = Shown::new(args);
    let mut timeline = args.html.is_some().then(TraceTimeline::default);
    let replayed = replay_file(&args.file, args.partial, |n, input, outputs| {
        shown.add(n, input, outputs);
        if let Some(timeline) = &mut timeline {
            timeline.add(input, outputs);
        }
    })?;
    let report = &replayed.report;
    if let (Some(timeline), Some(out)) = (timeline, &args.html) {
        page::write_page(out, &page::of_trace(timeline, report, &args.file))?;
    }
    exit::show(args.json, &as_json(report), || {
        let mut text = shown.finish();
        text.add(&describe(&replayed));
        text
    })?;
    Ok(Verdict::of(report.divergence.is_some()))
}

/// The result of a replay, and the trace's kind and completeness.
pub(super) struct Replayed {
    pub(super) report: ReplayReport,
    /// The bytes of a last line without an end, which was left out.
    left_out: usize,
    /// How many lines were read.
    lines: u64,
}

/// Replays a trace up to its end, its first divergence or its first gap. Refuses an incomplete trace unless `partial`
/// is set. `path` is a file, or a folder of segments.
pub(super) fn replay_file(
    path: &Path, partial: bool, each: impl FnMut(u64, &Input, &[Output]),
) -> Result<Replayed, Failure> {
    let name = path.display();
    let refused = |error: leasehold::internals::TraceError| Failure::unusable(format!("{name}: {error}"));
    let kind = match TraceReader::new(trace_file::open(path)?).next().transpose().map_err(refused)? {
        Some(TraceRecord::Header { kind, .. }) => kind,
        // The reader takes nothing but a header for a first line.
        _ => TraceKind::Full,
    };
    let mut lines = Lines::of(trace_file::open(path)?, partial);
    let report = replay_on(&mut Engine::new(), TraceReader::new(&mut lines), each).map_err(refused)?;
    // A file cut at a line break shows no other sign of the cut.
    if is_cut_off(&report) && kind == TraceKind::Full && !partial {
        return Err(Failure::unusable(format!(
            "{name}: line {} of the trace: expected a further record or the end record, found the end of the file \
             after input {}; the trace was cut off here, or its process was killed (--partial replays what there is)",
            lines.lines + 1,
            report.inputs.saturating_sub(1),
        )));
    }
    Ok(Replayed { report, left_out: lines.left_out, lines: lines.lines })
}

fn is_cut_off(report: &ReplayReport) -> bool {
    !report.complete && report.gap.is_none() && report.divergence.is_none() && report.limit.is_none()
}

fn as_json(report: &ReplayReport) -> Value {
    json!({
        "inputs": report.inputs,
        "divergence": report.divergence.as_ref().map(|divergence| json!({
            "input": divergence.input,
            "expected": divergence.expected,
            "found": divergence.found,
            "outputs": divergence.outputs,
        })),
        "digest": report.digest.to_string(),
        "gap": report.gap,
        "limit": report.limit,
        "complete": report.complete,
    })
}

fn describe(replayed: &Replayed) -> Text {
    let report = &replayed.report;
    let mut text = Text::default();
    match &report.divergence {
        Some(divergence) => {
            put_line!(
                text,
                "DIVERGENCE at input {}: expected {}, found {}",
                divergence.input,
                divergence.expected,
                divergence.found
            );
            for output in &divergence.outputs {
                put_line!(text, "  now: {}", describe_output(output));
            }
            put!(text, "the first {} inputs were answered as recorded", divergence.input);
        }
        None => {
            put!(
                text,
                "no divergence: {} inputs were answered as recorded, digest {}",
                report.inputs,
                report.digest
            );
        }
    }
    if let Some(gap) = report.gap {
        put_line!(text, "");
        put!(text, "from input {gap} on, inputs were not recorded; what follows cannot be replayed");
    } else if let Some(limit) = report.limit {
        put_line!(text, "");
        put!(
            text,
            "the trace ends here, because its folder had reached its limit of {limit} bytes; the worker went on"
        );
    } else if is_cut_off(report) {
        put_line!(text, "");
        put!(text, "the trace has no end: its process was killed, or the file was cut off");
        if replayed.left_out > 0 {
            put!(
                text,
                "; line {} is not whole, and its {} bytes were left out",
                replayed.lines + 1,
                replayed.left_out
            );
        }
    }
    text
}

/// The requested lines.
struct Shown<'a> {
    args: &'a ReplayArgs,
    explanation: Option<Explanation>,
    text: Text,
}

impl<'a> Shown<'a> {
    fn new(args: &'a ReplayArgs) -> Self {
        Self { args, explanation: args.explain.as_deref().map(Explanation::of), text: Text::default() }
    }

    fn finish(self) -> Text {
        let told = self.explanation.map(Explanation::finish);
        told.unwrap_or(self.text)
    }

    fn add(&mut self, n: u64, input: &Input, outputs: &[Output]) {
        if self.args.json {
            return;
        }
        if let Some(explanation) = &mut self.explanation {
            explanation.add(n, input, outputs);
            return;
        }
        let (from, until) = (self.args.from, self.args.until);
        if (from.is_none() && until.is_none())
            || from.is_some_and(|from| n < from)
            || until.is_some_and(|until| n > until)
        {
            return;
        }
        put_line!(self.text, "{n:>7}  {:>12}  {}", input.at, describe_input(&input.body));
        for output in outputs {
            put_line!(self.text, "{:>23}  {}", "", describe_output(output));
        }
    }
}

pub(super) fn describe_input(body: &Body) -> String {
    match body {
        Body::Boot(boot) => format!("boot of {} (incarnation {:x})", boot.worker, boot.incarnation),
        Body::Tick => "tick".to_owned(),
        Body::Done { op, outcome } => {
            let outcome = match outcome {
                Outcome::Applied(reply) => format!("applied: {}", compact(reply)),
                Outcome::Refused(refusal) => format!("refused: {}", compact(refusal)),
                Outcome::NotSent(cause) => format!("not sent: {}", compact(cause)),
                Outcome::Unknown(cause) => format!("outcome unknown: {}", compact(cause)),
            };
            format!("{op} done, {outcome}")
        }
        Body::Call(call) => format!("call {}", compact(call)),
    }
}

pub(super) fn describe_output(output: &Output) -> String {
    match output {
        Output::Do(command) => {
            format!("-> {} until {}: {}", command.op, command.give_up, compact(&command.effect))
        }
        Output::Tell(notice) => format!(" * {}", story::tell(notice)),
    }
}

fn compact(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| format!("(not to be shown: {error})"))
}
