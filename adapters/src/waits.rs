//! Few lines of the log about a table or a stream that exists but is not usable yet: the engine asks again silently.

use crate::metrics::Meter;
use leasehold_engine::ids::OpId;
use leasehold_engine::input::{Outcome, Reply, TableState};
use leasehold_engine::output::{Effect, StreamOp};
use leasehold_engine::stream_id::StreamId;
use leasehold_engine::time::{Mono, Span};
use std::collections::BTreeMap;

/// The time from the first line to the second. From each line to the next, the time doubles, up to `LONGEST`.
const PAUSE: Span = Span::from_secs(15);
const LONGEST: Span = Span::from_secs(60);
/// The usual time for creating a new table. A shorter wait is not worth a line.
const USUAL: Span = Span::from_secs(3);

/// What is waited for.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    table: Wait,
    /// By the stream of a worker of several; absent: the worker's only stream.
    streams: BTreeMap<Option<StreamId>, Wait>,
    /// The descriptions of streams of a worker of several that are not answered.
    asked: BTreeMap<OpId, StreamId>,
}

#[derive(Debug, Default)]
struct Wait {
    since: Option<Mono>,
    /// When the last line came, and the pause after the line.
    told: Option<(Mono, Span)>,
}

impl Waits {
    /// A command begins.
    pub(crate) fn command(&mut self, op: OpId, effect: &Effect) {
        if let Effect::StreamOf(stream, StreamOp::Describe) = effect {
            let before = self.asked.insert(op, stream.clone());
            debug_assert!(before.is_none(), "{op} begins once");
        }
    }

    /// A request of a service has ended. A line, if one is due.
    pub(crate) fn outcome(
        &mut self, now: Mono, op: OpId, outcome: &Outcome, meter: &Meter,
    ) -> Option<String> {
        let [application, only, _] = meter.names();
        let of = self.asked.remove(&op);
        match outcome {
            Outcome::Applied(Reply::Table(TableState::Creating)) => {
                let so_far = self.table.lasts(now, USUAL)?;
                Some(table(application, "created", so_far))
            }
            Outcome::Applied(Reply::Table(TableState::Deleting)) => {
                let so_far = self.table.lasts(now, Span::ZERO)?;
                Some(table(application, "deleted", so_far))
            }
            Outcome::Applied(Reply::Table(_)) => {
                self.table = Wait::default();
                None
            }
            Outcome::Applied(Reply::Stream(state)) if !state.readable => {
                let stream = of.as_ref().map_or(only, StreamId::as_str).to_owned();
                let so_far = self.streams.entry(of).or_default().lasts(now, Span::ZERO)?;
                Some(format!(
                    "expected stream {stream:?} to be ACTIVE, found that it is being created or deleted (for {so_far} so far); \
                     waiting; if it is not to be created, correct the name or the region"
                ))
            }
            Outcome::Applied(Reply::Stream(_)) => {
                self.streams.remove(&of);
                None
            }
            _ => None,
        }
    }
}

impl Wait {
    /// The worker still waits. Gives the waiting time by now, if a line is due: after `least`, and then ever more
    /// seldom.
    fn lasts(&mut self, now: Mono, least: Span) -> Option<Span> {
        let so_far = now.since(*self.since.get_or_insert(now));
        let again = self.told.is_none_or(|(told, pause)| now.since(told) >= pause);
        (so_far >= least && again).then(|| {
            let pause = self.told.map_or(PAUSE, |(_, pause)| pause.times(2).min(LONGEST));
            self.told = Some((now, pause));
            so_far
        })
    }
}

fn table(name: &str, what: &str, so_far: Span) -> String {
    format!(
        "expected table {name:?} to be ACTIVE, found that it is being {what} (for {so_far} so far); waiting, and no lease is held \
         before"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::op;
    use leasehold_engine::input::StreamState;
    use leasehold_engine::time::Wall;

    #[test]
    fn a_line_comes_soon_then_more_seldom_and_anew_after_the_end() {
        let meter = Meter::new("billing", "orders", "w:1");
        let stream = |readable| {
            Outcome::Applied(Reply::Stream(StreamState { readable, created: Wall(0), arn: "".into() }))
        };
        let creating = Outcome::Applied(Reply::Table(TableState::Creating));
        let mut waits = Waits::default();
        let mut told = |second, outcome: &Outcome| {
            let now = Mono(0) + Span::from_secs(second);
            waits.outcome(now, op(second), outcome, &meter)
        };
        let seconds: Vec<u64> = (10..190).filter(|s| told(*s, &stream(false)).is_some()).collect();
        assert_eq!(seconds, [10, 25, 55, 115, 175]);
        assert_eq!(told(190, &stream(true)), None);
        let line = told(191, &stream(false)).unwrap();
        assert!(line.starts_with("expected stream \"orders\" to be ACTIVE"), "{line}");
        let seconds: Vec<u64> = (200..250).filter(|s| told(*s, &creating).is_some()).collect();
        assert_eq!(seconds, [203, 218, 248]);
    }

    #[test]
    fn a_line_names_the_stream_of_several_and_waits_for_its_own_end() {
        let meter = Meter::new("billing", "several", "w:1");
        let ids: Vec<StreamId> =
            ["orders", "returns"].map(|name| StreamId::new("123456789012", name, 7).unwrap()).into();
        let mut waits = Waits::default();
        let mut lines = Vec::new();
        for second in 0..60 {
            for (n, id) in (0..).zip(&ids) {
                let asked = op(second * 2 + n);
                waits.command(asked, &Effect::StreamOf(id.clone(), StreamOp::Describe));
                let state = StreamState { readable: n == 0, created: Wall(0), arn: "".into() };
                let answer = Outcome::Applied(Reply::Stream(state));
                lines.extend(waits.outcome(Mono(0) + Span::from_secs(second), asked, &answer, &meter));
            }
        }
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines[2].contains("stream \"123456789012:returns:7\""), "{lines:?}");
        assert!(lines[2].contains("(for 45.000s so far)"), "{lines:?}");
    }
}
