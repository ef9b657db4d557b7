//! Few lines of the log about a table or a stream that exists but is not usable yet: the engine asks again silently.

use crate::metrics::Meter;
use leasehold_engine::input::{Outcome, Reply, TableState};
use leasehold_engine::time::{Mono, Span};

/// The least time between two lines.
const PAUSE: Span = Span::from_secs(60);
/// The usual time for creating a new table. A shorter wait is not worth a line.
const USUAL: Span = Span::from_secs(3);

/// What is waited for.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    table: Wait,
    stream: Wait,
}

#[derive(Debug, Default)]
struct Wait {
    since: Option<Mono>,
    told: Option<Mono>,
}

impl Waits {
    /// A request of a service has ended. A line, if one is due.
    pub(crate) fn outcome(&mut self, now: Mono, outcome: &Outcome, meter: &Meter) -> Option<String> {
        let [application, stream, _] = meter.names();
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
                let so_far = self.stream.lasts(now, Span::ZERO)?;
                Some(format!(
                    "expected stream {stream:?} to be ACTIVE, found that it is being created or deleted (for {so_far} so far); \
                     waiting; if it is not to be created, correct the name or the region"
                ))
            }
            Outcome::Applied(Reply::Stream(_)) => {
                self.stream = Wait::default();
                None
            }
            _ => None,
        }
    }
}

impl Wait {
    /// The worker still waits. Gives the waiting time by now, if a line is due: after `least`, and then once in a
    /// while.
    fn lasts(&mut self, now: Mono, least: Span) -> Option<Span> {
        let so_far = now.since(*self.since.get_or_insert(now));
        let again = self.told.is_none_or(|told| now.since(told) >= PAUSE);
        (so_far >= least && again).then(|| {
            self.told = Some(now);
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
    use leasehold_engine::input::StreamState;
    use leasehold_engine::time::Wall;

    #[test]
    fn a_line_comes_soon_then_once_a_minute_and_begins_anew_after_the_end() {
        let meter = Meter::new("billing", "orders", "w:1");
        let stream = |readable| {
            Outcome::Applied(Reply::Stream(StreamState { readable, created: Wall(0), arn: "".into() }))
        };
        let creating = Outcome::Applied(Reply::Table(TableState::Creating));
        let mut waits = Waits::default();
        let mut told = |second, outcome: &Outcome| {
            let now = Mono(0) + Span::from_secs(second);
            waits.outcome(now, outcome, &meter)
        };
        let seconds: Vec<u64> = (10..140).filter(|s| told(*s, &stream(false)).is_some()).collect();
        assert_eq!(seconds, [10, 70, 130]);
        assert_eq!(told(140, &stream(true)), None);
        let line = told(141, &stream(false)).unwrap();
        assert!(line.starts_with("expected stream \"orders\" to be ACTIVE"), "{line}");
        let seconds: Vec<u64> = (150..220).filter(|s| told(*s, &creating).is_some()).collect();
        assert_eq!(seconds, [153, 213]);
    }
}
