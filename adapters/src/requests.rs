//! Requests of the services as metrics: their number, their results, and their durations.

use crate::metrics::{self, Meter};
use crate::ports::Consumed;
use leasehold_engine::fleet::{FleetTableOp, FleetWrite};
use leasehold_engine::ids::OpId;
use leasehold_engine::input::{Cause, Outcome, Why};
use leasehold_engine::members::{MembersChange, MembersOp};
use leasehold_engine::output::{Effect, StreamOp, TableOp};
use leasehold_engine::row::Change;
use leasehold_engine::time::{Mono, Span};
use std::collections::BTreeMap;

/// The age of a request without an answer that leads to a log line. The worker looks once a second: a line comes
/// within 5 s in all. A request to the table ends sooner by default (`table_timeout`), and a line tells its end.
const PATIENCE: Span = Span::from_millis(3_500);
/// The least time between two lines about that.
const PAUSE: Span = Span::from_secs(60);

/// The requests that are not answered. A command to a service is one request: the SDK's retries are off.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// What was asked, and when.
    asked: BTreeMap<OpId, (&'static str, Mono)>,
    /// The last that ended.
    last: Option<(OpId, &'static str)>,
    /// The time of the last line about waiting requests.
    told: Option<Mono>,
}

impl Requests {
    /// A command begins.
    pub(crate) fn begin(&mut self, now: Mono, op: OpId, effect: &Effect) {
        if let Some(name) = operation(effect) {
            let before = self.asked.insert(op, (name, now));
            debug_assert!(before.is_none(), "{op} begins once");
        }
    }

    /// A command has ended.
    pub(crate) fn end(&mut self, meter: &Meter, now: Mono, op: OpId, outcome: &Outcome) {
        let Some((name, asked)) = self.asked.remove(&op) else {
            return;
        };
        self.last = Some((op, name));
        meter.count(&metrics::REQUESTS, [name.into(), end(outcome).into()], 1);
        meter.observe(&metrics::REQUEST, [name.into()], now.since(asked));
    }

    /// A line, at most once a minute, if a request has waited for its answer for long: its time may be up much later.
    pub(crate) fn waits(&mut self, now: Mono) -> Option<String> {
        if self.told.is_some_and(|told| now.since(told) < PAUSE) {
            return None;
        }
        // The map holds requests in the order of their start.
        let (_, (name, asked)) = self.asked.first_key_value()?;
        let waited = now.since(*asked);
        if waited < PATIENCE {
            return None;
        }
        self.told = Some(now);
        Some(format!(
            "{name} has not been answered for {waited}; waiting; see whether the endpoint of the client is that of the service"
        ))
    }

    /// The engine makes a request again.
    pub(crate) fn again(&self, meter: &Meter, op: OpId) {
        if let Some((_, name)) = self.last.filter(|(last, _)| *last == op) {
            meter.count(&metrics::RETRIES, [name.into()], 1);
        }
    }
}

/// Shows the request units of the lease table. Counters are whole numbers.
pub(crate) fn show_consumed(meter: &Meter, consumed: Consumed) {
    meter.count_to(&metrics::READ_UNITS, [], consumed.read as u64);
    meter.count_to(&metrics::WRITE_UNITS, [], consumed.write as u64);
}

/// The AWS operation of a command, if the command is a request.
fn operation(effect: &Effect) -> Option<&'static str> {
    Some(match effect {
        Effect::Table(op) => table(op),
        Effect::Stream(op) | Effect::StreamOf(_, op) => match op {
            StreamOp::Describe => "DescribeStreamSummary",
            StreamOp::ListShards { .. } => "ListShards",
            StreamOp::GetIterator { .. } => "GetShardIterator",
            StreamOp::GetRecords { .. } => "GetRecords",
            StreamOp::DescribeConsumer { .. } => "DescribeStreamConsumer",
            StreamOp::RegisterConsumer { .. } => "RegisterStreamConsumer",
            StreamOp::Subscribe { .. } => "SubscribeToShard",
            // The wait for what a subscription brings is no request.
            StreamOp::NextEvent { .. } => return None,
        },
        Effect::Consumer(_) => return None,
    })
}

fn table(op: &TableOp) -> &'static str {
    match op {
        TableOp::Describe
        | TableOp::OwnerIndex
        | TableOp::Members(MembersOp::Describe(_))
        | TableOp::FleetTable(_, FleetTableOp::Describe) => "DescribeTable",
        TableOp::Create | TableOp::Members(MembersOp::Create(_)) => "CreateTable",
        TableOp::Scan { .. }
        | TableOp::Members(MembersOp::List { .. })
        | TableOp::FleetTable(_, FleetTableOp::Scan { .. }) => "Scan",
        TableOp::Owned { .. } => "Query",
        TableOp::Read { .. } | TableOp::Members(MembersOp::ReadLeader | MembersOp::ReadShards) => "GetItem",
        // Every format writes these so.
        TableOp::Write(Change::Create(_)) => "PutItem",
        TableOp::Write(Change::Delete { .. } | Change::Forget { .. }) => "DeleteItem",
        TableOp::Write(_) => "UpdateItem",
        TableOp::Fleet(write) | TableOp::FleetTable(_, FleetTableOp::Write(write)) => match write {
            FleetWrite::Report { .. } | FleetWrite::Beat { .. } | FleetWrite::Migrate { .. } => "UpdateItem",
            FleetWrite::Lead { .. } => "PutItem",
            FleetWrite::Leave { .. } | FleetWrite::Forget { .. } | FleetWrite::StepDown { .. } => {
                "DeleteItem"
            }
        },
        TableOp::Members(MembersOp::Write(change)) => match change {
            MembersChange::Leave(_) | MembersChange::Reap(_) => "DeleteItem",
            MembersChange::StepDown(_) => "UpdateItem",
            MembersChange::Register(_) | MembersChange::Lead { .. } | MembersChange::Share { .. } => {
                "PutItem"
            }
        },
    }
}

/// How a request ended, in the words of the label `outcome`.
fn end(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Applied(_) => "ok",
        Outcome::Refused(refusal) => match refusal.why {
            Why::ConditionFailed => "condition-failed",
            Why::Denied | Why::WrongClock => "denied",
            _ => "refused",
        },
        Outcome::NotSent(cause) | Outcome::Unknown(cause) => match cause {
            Cause::Throttled => "throttled",
            Cause::Timeout => "timeout",
            Cause::Credentials => "denied",
            _ => "error",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{op, read};

    #[test]
    fn a_request_that_waits_for_long_is_told_once_a_minute() {
        let mut requests = Requests::default();
        let at = |second| Mono(0) + Span::from_secs(second);
        requests.begin(at(1), op(1), &read("shard-1"));
        requests.begin(at(2), op(2), &Effect::Stream(StreamOp::Describe));
        let told = |requests: &mut Requests, seconds: std::ops::Range<u64>| {
            let told = seconds.filter(|second| requests.waits(at(*second)).is_some());
            told.collect::<Vec<u64>>()
        };
        assert_eq!(told(&mut requests, 0..70), [5, 65]);
        let timeout = Outcome::Unknown(Cause::Timeout);
        requests.end(&Meter::default(), at(70), op(1), &timeout);
        let line = requests.waits(at(130)).unwrap();
        assert!(line.starts_with("DescribeStreamSummary has not been answered for 128.000s"), "{line}");
        requests.end(&Meter::default(), at(130), op(2), &timeout);
        assert_eq!(told(&mut requests, 200..300), Vec::<u64>::new());
    }
}
