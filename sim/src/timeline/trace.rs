//! The timeline of one worker's inputs and answers.
//!
//! Leases of other workers appear as in the rows seen by this worker: in the answers to scans and to refused writes.

use super::builder::Builder;
use super::picture::{BarKind, LaneNo, MarkKind, Timeline};
use super::words;
use super::world::add_notice;
use crate::oracles::{Property, Time, Violation};
use crate::world::net::ask::rows_in;
use leasehold_engine::ids::{OpId, WorkerId};
use leasehold_engine::input::{Body, Call, Input, Outcome};
use leasehold_engine::notice::{LossReason, Notice};
use leasehold_engine::output::Output;
use leasehold_engine::row::RowRead;
use leasehold_engine::time::Mono;
use std::collections::{BTreeMap, BTreeSet};

/// Makes the timeline of a trace. The caller adds the trace's inputs in order, with the engine's answers.
#[derive(Debug)]
pub struct TraceTimeline {
    builder: Builder,
    began: Option<(Mono, i64)>,
    now: Time,
    inputs: u64,
    me: LaneNo,
    name: Option<WorkerId>,
    held: BTreeSet<String>,
    asked: BTreeMap<OpId, (&'static str, Option<String>)>,
}

impl Default for TraceTimeline {
    fn default() -> Self {
        let mut builder = Builder::default();
        let me = builder.worker("this worker");
        Self {
            builder,
            began: None,
            now: 0,
            inputs: 0,
            me,
            name: None,
            held: BTreeSet::new(),
            asked: BTreeMap::new(),
        }
    }
}

impl TraceTimeline {
    /// Adds an input and the engine's answers.
    pub fn add(&mut self, input: &Input, outputs: &[Output]) {
        let (began, _) = *self.began.get_or_insert((input.at, input.wall.0));
        // The engine treats a clock gone back as a stopped clock. So does the timeline.
        self.now = self.now.max(input.at.0.saturating_sub(began.0));
        self.inputs += 1;
        let at = self.now;
        match &input.body {
            Body::Boot(_) | Body::Tick => {}
            Body::Done { op, outcome } => self.done(*op, outcome),
            Body::Call(Call::Shutdown | Call::ShutdownWithin(_)) => {
                let text = "this worker is told to stop".to_owned();
                self.builder.mark(at, MarkKind::Worker, Some(self.me), None, text);
            }
            Body::Call(_) => {}
        }
        for output in outputs {
            match output {
                Output::Do(command) => {
                    let (what, about) = command.effect.described();
                    self.asked.insert(command.op, (what, about.map(str::to_owned)));
                }
                Output::Tell(notice) => self.told(notice),
            }
        }
    }

    /// Reports that the engine's answers differ from the recording from here on.
    pub fn diverged(&mut self, summary: String) {
        let (property, at) = (Property::World, self.now);
        self.builder.violation(Violation { property, at, summary, of_others: false });
    }

    /// The timeline, with a title.
    pub fn finish(self, title: String) -> Timeline {
        let worker = self.name.map_or_else(|| "a worker".to_owned(), |name| name.to_string());
        let verdict = match self.builder.violations() {
            [] => format!("{} inputs over {}", self.inputs, words::seconds(self.now)),
            [first, ..] => first.summary.clone(),
        };
        Timeline {
            title,
            subtitle: format!("{worker}; what other workers hold is shown as this one saw it"),
            verdict,
            epoch_ms: self.began.map(|(_, wall)| wall),
            ..self.builder.finish(self.now)
        }
    }

    fn done(&mut self, op: OpId, outcome: &Outcome) {
        let asked = self.asked.remove(&op);
        rows_in(outcome).0.iter().for_each(|row| self.seen(row));
        let (kind, how) = match outcome {
            Outcome::Applied(_) => return,
            Outcome::Refused(refusal) => {
                (MarkKind::Trouble, format!("refused ({:?}) {}", refusal.why, refusal.detail))
            }
            Outcome::NotSent(cause) => (MarkKind::Fault, format!("not sent ({cause:?})")),
            Outcome::Unknown(cause) => (MarkKind::Fault, format!("of unknown outcome ({cause:?})")),
        };
        let (what, about) = asked.unwrap_or(("an unknown request", None));
        let shard = about.as_ref().map(|name| self.builder.shard(name));
        let name = about.map(|name| format!(" {}", words::shorten(&name))).unwrap_or_default();
        let text = format!("request {op} to {what}{name} was {}", how.trim_end());
        self.builder.mark(self.now, kind, Some(self.me), shard, text);
    }

    /// Adds a row seen in an answer.
    fn seen(&mut self, row: &RowRead) {
        let RowRead::Lease(row) = row else { return };
        let owner = row.actual_owner().filter(|owner| Some(*owner) != self.name.as_ref());
        // For its own leases, the worker knows more than a scan.
        if self.held.contains(row.key.as_str()) || (owner.is_none() && row.actual_owner().is_some()) {
            return;
        }
        let owner = owner.cloned();
        self.owned_by(row.key.as_str(), owner.as_ref());
    }

    fn owned_by(&mut self, lease: &str, owner: Option<&WorkerId>) {
        let shard = self.builder.shard(lease);
        let owner =
            owner.map(|owner| self.builder.worker(&format!("{} (seen)", words::worker(owner.as_str()))));
        if owner != self.builder.owner_of(shard) {
            let name = words::shorten(lease);
            let text = owner.map(|owner| format!("{name} with {}", self.builder.name(owner)));
            self.builder.owner(self.now, shard, owner.zip(text));
        }
    }

    fn told(&mut self, notice: &Notice) {
        let (at, me) = (self.now, self.me);
        if let Notice::Booted { worker, .. } = notice {
            self.name = Some(worker.clone());
            self.builder.rename(me, words::worker(worker.as_str()));
            self.builder.up(at, me, format!("{worker} lives"));
            let text = format!("{worker} begins");
            self.builder.mark(at, MarkKind::Worker, Some(me), None, text);
        }
        if let Some(lease) = notice.lease() {
            let shard = self.builder.shard(lease.as_str());
            let text = words::shorten(&notice.to_string());
            match notice {
                Notice::Took { .. } => {
                    self.held.insert(lease.to_string());
                    self.builder.owner(at, shard, Some((me, text)));
                }
                Notice::Released { .. } | Notice::Ended { .. } | Notice::Lost { .. } => {
                    if self.held.remove(lease.as_str()) {
                        self.builder.owner(at, shard, None);
                    }
                    if let Notice::Lost { why: LossReason::Taken { by: Some(by), .. }, .. } = notice {
                        self.owned_by(lease.as_str(), Some(by));
                    }
                }
                Notice::Opened { .. } => self.builder.begin(at, me, shard, BarKind::Processing, text),
                Notice::Closed { .. } => self.builder.end(at, me, shard, BarKind::Processing, None),
                _ => {}
            }
        }
        add_notice(&mut self.builder, at, me, notice, false);
        if matches!(notice, Notice::Stopped(_)) {
            let text = "has stopped".to_owned();
            self.builder.mark(at, MarkKind::Worker, Some(me), None, text);
            self.builder.down(at, me);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Options, run_seed};
    use leasehold_engine::Engine;

    /// The timeline of one life of a world.
    fn of_life(seed: u64, life: u32) -> Timeline {
        let options = Options { trace: true, ..Options::default() };
        let (mut engine, mut timeline) = (Engine::new(), TraceTimeline::default());
        for (_, input) in run_seed(seed, &options).found.trace.into_iter().filter(|(of, _)| *of == life) {
            let outputs: Vec<Output> = engine.handle(input.clone()).collect();
            timeline.add(&input, &outputs);
        }
        timeline.finish("a trace".to_owned())
    }

    #[test]
    fn a_life_is_shown_with_what_it_held_and_what_it_saw_of_others() {
        let owns = |timeline: &Timeline| {
            let mut bars = timeline.bars.iter();
            bars.any(|bar| bar.worker == 0 && bar.kind == BarKind::Owned)
        };
        // In some worlds, the first life ends before its worker owns a lease.
        let timeline = (1..20).map(|seed| of_life(seed, 0)).find(owns);
        let Some(timeline) = timeline else {
            panic!("no first life owned anything");
        };
        assert_ne!(timeline.workers[0].name, "this worker", "its name is in the trace");
        assert!(timeline.bars.iter().any(|bar| bar.worker == 0 && bar.kind == BarKind::Processing));
        assert_eq!(timeline.stream_rows, 0, "a trace does not show the stream itself");
        assert!(timeline.epoch_ms.is_some());
    }

    #[test]
    fn a_trace_of_nothing_is_a_timeline_of_nothing() {
        let timeline = TraceTimeline::default().finish("nothing".to_owned());
        assert_eq!((timeline.end, timeline.marks.len(), timeline.bars.len()), (0, 0, 0));
    }
}
