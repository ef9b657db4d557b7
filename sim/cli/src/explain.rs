//! `leasehold replay --explain SHARD`: every decision about one shard, its grounds, and the choices that lost.
//!
//! Routine (renewals, reads, successful hand-overs) is counted. The count is told before the next line.

mod wording;

use crate::text::{Text, put_line};
use leasehold_engine::config::Config;
use leasehold_engine::ids::{LeaseKey, OpId, WorkerId};
use leasehold_engine::input::{Body, Call, Input, Outcome, Reply};
use leasehold_engine::notice::Notice;
use leasehold_engine::output::{Command, ConsumerOp, Effect, Output, StreamOp, TableOp};
use leasehold_engine::row::{Change, RowRead};
use leasehold_engine::time::Mono;
use leasehold_sim::timeline::words::{self, shorten};
use std::collections::BTreeMap;

/// The story of one shard, seen by one worker.
#[derive(Debug, Default)]
pub(super) struct Explanation {
    shard: String,
    config: Option<Config>,
    text: Text,
    /// The number and time of the input under way.
    now: (u64, Mono),
    requests: BTreeMap<OpId, Request>,
    row: Option<Seen>,
    /// Routine successes since the last line.
    routine: BTreeMap<Kind, u32>,
    held: bool,
}

/// A command under way.
#[derive(Debug)]
struct Request {
    what: String,
    sent: Mono,
    routine: Option<Kind>,
}

/// Routine, in the order of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Renewal,
    Checkpoint,
    Read,
    HandOver,
}

/// The row as last seen.
#[derive(Debug, PartialEq)]
struct Seen {
    owner: Option<WorkerId>,
    ended: bool,
    counter: u64,
    since: Mono,
}

impl Explanation {
    /// The story of a shard, named by its whole id or by the short id of the output.
    pub(super) fn of(shard: &str) -> Self {
        Self { shard: shard.to_owned(), now: (0, Mono(0)), ..Self::default() }
    }

    /// Takes an input and the engine's answer.
    pub(super) fn add(&mut self, n: u64, input: &Input, outputs: &[Output]) {
        self.now = (n, input.at);
        match &input.body {
            Body::Boot(boot) => self.config = Some(boot.config.clone()),
            Body::Tick => {}
            Body::Done { op, outcome } => self.done(*op, outcome),
            Body::Call(Call::Checkpoint { lease, .. }) if self.is_meant(lease.as_str()) => {
                self.say("The application asks for a checkpoint now.");
            }
            Body::Call(Call::Pause { lease }) if self.is_meant(lease.as_str()) => {
                self.say("The application pauses the shard.");
            }
            Body::Call(Call::Resume { lease }) if self.is_meant(lease.as_str()) => {
                self.say("The application lets the shard go on.");
            }
            Body::Call(Call::Shutdown | Call::ShutdownWithin(_)) if self.held => {
                self.say("This worker is told to stop, so it will let go of the shard.");
            }
            Body::Call(_) => {}
        }
        for output in outputs {
            match output {
                Output::Do(command) => self.asked(command),
                Output::Tell(notice) => self.told(notice),
            }
        }
    }

    /// Everything that was told.
    pub(super) fn finish(mut self) -> Text {
        self.tell_routine();
        self.text
    }

    fn is_meant(&self, name: &str) -> bool {
        is_called(name, &self.shard)
    }

    /// The shard's short name for the output.
    fn name(&self) -> String {
        shorten(&self.shard)
    }

    fn say(&mut self, sentence: &str) {
        self.tell_routine();
        let (n, at) = self.now;
        put_line!(self.text, "{n:>7}  {at:>12}  {sentence}");
    }

    fn tell_routine(&mut self) {
        let said = std::mem::take(&mut self.routine).into_iter().map(|(kind, count)| {
            let (one, many) = match kind {
                Kind::Renewal => ("renewal", "renewals"),
                Kind::Checkpoint => ("checkpoint", "checkpoints"),
                Kind::Read => ("read of the stream", "reads of the stream"),
                Kind::HandOver => ("batch handed over", "batches handed over"),
            };
            format!("{count} {}", if count == 1 { one } else { many })
        });
        let said: Vec<String> = said.collect();
        if !said.is_empty() {
            put_line!(self.text, "{:>23}Meanwhile, without trouble: {}.", "", said.join(", "));
        }
    }

    fn asked(&mut self, command: &Command) {
        let (verb, Some(about)) = command.effect.described() else {
            return;
        };
        if !self.is_meant(about) {
            return;
        }
        let what = format!("{verb} {}", self.name());
        let routine = match &command.effect {
            Effect::Table(TableOp::Write(Change::Renew { .. })) => Some(Kind::Renewal),
            Effect::Table(TableOp::Write(Change::Checkpoint { .. })) => Some(Kind::Checkpoint),
            Effect::Stream(StreamOp::GetRecords { .. } | StreamOp::GetIterator { .. }) => Some(Kind::Read),
            Effect::Consumer(ConsumerOp::Deliver { attempt: 1, .. }) => Some(Kind::HandOver),
            _ => None,
        };
        if routine.is_none() {
            let condition = match &command.effect {
                Effect::Table(TableOp::Write(change)) => wording::condition(change),
                _ => String::new(),
            };
            self.say(&format!("Asks to {what} (request {}){condition}.", command.op));
        }
        let sent = self.now.1;
        self.requests.insert(command.op, Request { what, sent, routine });
    }

    fn done(&mut self, op: OpId, outcome: &Outcome) {
        let scan = match outcome {
            Outcome::Applied(Reply::Page(page)) => page.rows.as_slice(),
            _ => &[],
        };
        for row in scan {
            self.seen(row, "A scan");
        }
        let Some(request) = self.requests.remove(&op) else {
            return;
        };
        let after = self.now.1.since(request.sent);
        let what = &request.what;
        match (outcome, request.routine) {
            (Outcome::Applied(reply), kind) => {
                match kind {
                    Some(kind) => *self.routine.entry(kind).or_default() += 1,
                    None => self.say(&format!("Request {op} to {what} was carried out, after {after}.")),
                }
                if let Reply::Row(Some(row)) = reply {
                    self.seen(row, "That read");
                }
            }
            (Outcome::Refused(refusal), _) => {
                let detail = match refusal.detail.as_str() {
                    "" => String::new(),
                    detail => format!(": {detail}"),
                };
                let why = refusal.why;
                self.say(&format!("Request {op} to {what} was refused after {after} ({why:?}){detail}."));
                if let Some(row) = &refusal.current {
                    self.seen(row, "The refusal");
                }
            }
            (Outcome::NotSent(cause), _) => {
                self.say(&format!("Request {op} to {what} was certainly not carried out ({cause:?}), after {after}."));
            }
            (Outcome::Unknown(cause), _) => self.say(&format!(
                "Nobody knows whether request {op} to {what} was or will be carried out ({cause:?}), after {after}: \
                 the next guarded write or a read decides."
            )),
        }
    }

    /// Takes in a row from an answer.
    fn seen(&mut self, row: &RowRead, how: &str) {
        if !self.is_meant(row.key().as_str()) {
            return;
        }
        let row = match row {
            RowRead::Lease(row) => row,
            _ => return self.say(&format!("{how} showed something under its key that is no lease.")),
        };
        let now = Seen {
            owner: row.actual_owner().cloned(),
            ended: row.checkpoint.is_end(),
            counter: row.counter,
            since: self.now.1,
        };
        let news = match &self.row {
            Some(known) => (&known.owner, known.ended) != (&now.owner, now.ended),
            None => true,
        };
        if news {
            let owner = now.owner.as_ref().map_or("no worker", |owner| words::worker(owner.as_str()));
            let sentence = format!(
                "{how} showed its row: owner {owner}, counter {}, checkpoint {}.{}",
                row.counter,
                row.checkpoint,
                wording::outlook(row, self.held, self.config.as_ref())
            );
            self.say(&sentence);
        }
        match &mut self.row {
            // The row's owner shows no sign of life.
            Some(known) if !news && known.counter == now.counter => {}
            known => *known = Some(now),
        }
    }

    fn told(&mut self, notice: &Notice) {
        if let Notice::Chose(choice) = notice {
            let is_me = |lease: &LeaseKey| self.is_meant(lease.as_str());
            if let Some(sentence) = wording::choice(choice, &self.name(), is_me) {
                self.say(&sentence);
            }
            return;
        }
        if !notice.lease().is_some_and(|lease| self.is_meant(lease.as_str())) {
            return;
        }
        match notice {
            Notice::Took { .. } => self.held = true,
            Notice::Lost { .. } | Notice::Released { .. } | Notice::Ended { .. } => self.held = false,
            // Progress without a decision.
            Notice::Checkpointed { .. } => return,
            _ => {}
        }
        let sentence = wording::notice(notice, &self.name(), self.config.as_ref());
        self.say(&sentence);
    }
}

/// Whether `name` is the lease or shard asked for.
fn is_called(name: &str, asked: &str) -> bool {
    name == asked || shorten(name) == asked
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_engine::Engine;
    use leasehold_engine::notice::Choice;
    use leasehold_sim::run::{Options, run_seed};

    #[test]
    fn a_shard_is_named_by_its_id_or_as_shown() {
        assert!(is_called("shardId-000000000012", "shardId-000000000012"));
        assert!(is_called("shardId-000000000012", "shard-12"));
        assert!(!is_called("shardId-000000000012", "shard-1"));
    }

    /// The explanations of a shard by all lives of a world.
    fn told(seed: u64, shard: &str) -> String {
        let options = Options { trace: true, ..Options::default() };
        let mut lives: BTreeMap<u32, (Engine, Explanation, u64)> = BTreeMap::new();
        for (life, input) in run_seed(seed, &options).found.trace {
            let (engine, explanation, n) =
                lives.entry(life).or_insert_with(|| (Engine::new(), Explanation::of(shard), 0));
            let outputs: Vec<Output> = engine.handle(input.clone()).collect();
            explanation.add(*n, &input, &outputs);
            *n += 1;
        }
        lives.into_values().map(|(_, explanation, _)| String::from(&*explanation.finish())).collect()
    }

    #[test]
    fn a_take_is_told_with_what_was_weighed_and_what_was_asked() {
        let text: String = (0..4).map(|seed| told(seed, "shard-0")).collect();
        for part in [
            "Decides to take shard-0",
            "a fair share",
            "Asks to take shard-0",
            "if the row still names",
            "It took shard-0",
            "It started processing shard-0 from",
            "Meanwhile, without trouble",
        ] {
            assert!(text.contains(part), "{part:?} is missing in\n{text}");
        }
    }

    #[test]
    fn a_shard_that_does_not_exist_has_no_story() {
        assert_eq!(told(1, "shard-9999"), "");
        assert_eq!(told(1, "shard-0"), told(1, "shardId-000000000000"));
    }

    #[test]
    fn a_choice_names_everybody_and_those_who_lost() {
        let mut explanation = Explanation::of("shard-3");
        let key = |n: u32| LeaseKey::from(format!("shardId-{n:012}"));
        let choice = serde_json::json!({
            "taken": 1, "chosen": [key(7)], "left": [key(3), key(4)], "candidates": 3,
            "victim": "w1:00c0ffee00c0ffee", "counts": [("w1:00c0ffee00c0ffee", 3), ("w0", 1)],
            "workers": 4, "unfinished": 4, "target": 2, "ours": 1,
        });
        let choice: Choice = serde_json::from_value(choice).unwrap();
        explanation.told(&Notice::Chose(Box::new(choice)));
        assert_eq!(
            explanation.finish().trim_start().split_once("  ").map(|(_, rest)| rest.trim_start()),
            Some(
                "0.000s  Leaves shard-3 to others for now: 4 unfinished leases and 4 live workers make 2 a fair share, and \
                 this worker has 1 (w1: 3, w0: 1, 2 more workers). Nothing is free, so it takes 1 of the 3 leases of w1, who \
                 has the most; drawn instead: shard-7; the draw put shard-4 after them.\n"
            )
        );
    }
}
