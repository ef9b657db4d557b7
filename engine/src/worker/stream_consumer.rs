//! The consumer under which the shards of a stream are read by subscription (enhanced fan-out): found, registered, awaited.
//!
//! ```mermaid
//! stateDiagram-v2
//!     [*] --> Looked: the stream is identified
//!     Looked --> Active: ACTIVE
//!     Looked --> Looked: CREATING or DELETING, once a second
//!     Looked --> Registered: NotFound
//!     Registered --> Looked: registered | InUse, another worker was first
//!     Looked --> Looked: failed, backoff
//!     Registered --> Looked: failed, backoff
//!     Active --> Looked: doubted by a reader
//! ```
//!
//! * **All workers of an application share one consumer**, by default under the application's name, as workers of KCL do. The first
//!   worker registers it. No worker deregisters it: a consumer costs money by the hour, and an operator ends that.
//! * **An ARN in the configuration is used as it is**, if it is of the stream: nothing is described or registered.
//! * **A doubted consumer stays in use until an answer denies it.** A consumer that was registered anew has another ARN.

use super::backoff::Backoff;
use super::context::{Context, Waiter};
use super::describe;
use super::lease_table::LeaseTable;
use super::stream_set::StreamIx;
use crate::config::{Config, ReadMode};
use crate::ids::OpId;
use crate::input::{ConsumerState, Outcome, Reply, Why};
use crate::notice::{Notice, StreamNews};
use crate::output::StreamOp;
use crate::reader::{SILENCE, SUBSCRIBE_TIMEOUT};
use crate::time::{Mono, Span};
use std::sync::Arc;

/// A doubted consumer is not looked at sooner after the last look.
const DOUBT_PAUSE: Span = Span::from_secs(10);

/// The search for the consumer of one stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct StreamConsumer {
    stream: StreamIx,
    in_flight: Option<Question>,
    /// The last look did not find the consumer.
    is_missing: bool,
    /// The consumer was found, and is used.
    is_found: bool,
    /// The configured ARN is of another stream.
    is_unfit: bool,
    looked_at: Mono,
    backoff: Backoff,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Question {
    Describe,
    Register,
}

impl StreamConsumer {
    pub(super) fn new(stream: StreamIx) -> Self {
        Self { stream, ..Self::default() }
    }

    /// The stream is read again, after it was read no more.
    pub(super) fn begin_anew(&mut self) {
        // An answer still to come counts as much as the answer to a new question.
        *self = Self { in_flight: self.in_flight, ..Self::new(self.stream) };
    }

    /// Whether a consumer is to be looked for: the mode has a use for a consumer, and the ARN of the stream is known.
    fn is_wanted(&self, cx: &Context) -> bool {
        let reads = cx.streams().reads(self.stream) && cx.is_running() && !self.is_unfit;
        reads && !cx.streams().mode(self.stream).is_polling() && cx.streams().arn(self.stream).is_some()
    }

    /// When it wants to be woken.
    pub(super) fn wake_at(&self, cx: &Context) -> Mono {
        match !self.is_found && self.in_flight.is_none() && self.is_wanted(cx) {
            true => self.backoff.until(),
            false => Mono::NEVER,
        }
    }

    /// Asks the next question, if it is time.
    pub(super) fn step(&mut self, cx: &mut Context, leases: &mut LeaseTable) {
        if cx.now() < self.wake_at(cx) {
            return;
        }
        let Some(stream) = cx.streams().arn(self.stream) else {
            // The stream has a wish for a consumer only with an ARN.
            return;
        };
        let name = cx.streams().consumer_name(self.stream);
        if name.starts_with("arn:") {
            return self.use_given(cx, leases, (&stream, name));
        }
        let (question, op) = match self.is_missing {
            false => (Question::Describe, StreamOp::DescribeConsumer { stream, name }),
            true => (Question::Register, StreamOp::RegisterConsumer { stream, name }),
        };
        cx.stream(Waiter::Consumer(self.stream), self.stream, op);
        self.in_flight = Some(question);
        self.looked_at = cx.now();
    }

    /// A consumer of another stream would bring the records of the other stream.
    fn use_given(&mut self, cx: &mut Context, leases: &mut LeaseTable, (stream, consumer): (&str, Arc<str>)) {
        let rest = consumer.strip_prefix(stream);
        self.is_unfit = !rest.is_some_and(|rest| rest.starts_with("/consumer/"));
        if !self.is_unfit {
            return self.use_consumer(cx, leases, Some(consumer));
        }
        let stream = cx.stream_name(self.stream);
        cx.notify(Notice::Stream(StreamNews::ConsumerUnfit { stream, arn: consumer.to_string() }));
    }

    /// A reader was refused in a way that a consumer deregistered, or registered anew, explains.
    pub(super) fn doubt(&mut self, cx: &Context) {
        let is_given = cx.streams().consumer_name(self.stream).starts_with("arn:");
        if self.is_found && !is_given {
            self.is_found = false;
            self.backoff.wait_until(cx.now().max(self.looked_at + DOUBT_PAUSE));
        }
    }

    /// A question was answered, or was not.
    pub(super) fn on_answer(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, op: OpId, outcome: &Outcome,
    ) {
        let question = self.in_flight.take();
        debug_assert!(question.is_some(), "an answer comes after the question");
        let why = match outcome {
            Outcome::Applied(Reply::Consumer(state)) => return self.on_state(cx, leases, state),
            Outcome::Refused(refusal) => Some(refusal.why),
            _ => None,
        };
        match (question, why) {
            (Some(Question::Describe), Some(Why::NotFound)) => {
                self.is_missing = true;
                self.use_consumer(cx, leases, None);
                self.backoff.wait_until(cx.now());
            }
            // Another worker was first.
            (Some(Question::Register), Some(Why::InUse)) => self.look_in(cx, cx.poll_pause()),
            _ => {
                self.is_missing = false;
                let what = format!("find the consumer {}", cx.streams().consumer_name(self.stream));
                let again_in = self.backoff.failed(cx, "consumer", &what);
                if self.backoff.failures().is_power_of_two() {
                    let how = format!("{}; {}", describe(outcome), self.meanwhile(cx));
                    cx.notify(Notice::Trouble { op, lease: None, what, how, again_in });
                }
            }
        }
    }

    fn on_state(&mut self, cx: &mut Context, leases: &mut LeaseTable, state: &ConsumerState) {
        self.is_missing = false;
        self.backoff.answered();
        match state.active {
            true => self.use_consumer(cx, leases, Some(state.arn.clone())),
            false => self.look_in(cx, cx.poll_pause()),
        }
    }

    /// How shards are read without a consumer.
    fn meanwhile(&self, cx: &Context) -> &'static str {
        match cx.streams().mode(self.stream) {
            ReadMode::FanOut => "no shard is read meanwhile, as `reader.mode` is `fan-out`",
            _ => "shards are read by polling meanwhile",
        }
    }

    fn look_in(&mut self, cx: &Context, pause: Span) {
        self.is_missing = false;
        self.backoff.wait_until(cx.now() + pause);
    }

    /// Reads the shards of the stream under this consumer from now on; without one, as the mode says.
    fn use_consumer(&mut self, cx: &mut Context, leases: &mut LeaseTable, arn: Option<Arc<str>>) {
        self.is_found = arn.is_some();
        if cx.streams().consumer(self.stream) == arn.as_ref() {
            return;
        }
        let stream = cx.stream_name(self.stream);
        cx.notify(Notice::Stream(match &arn {
            Some(arn) => StreamNews::Consumer { stream, arn: arn.to_string() },
            None => StreamNews::ConsumerLost { stream },
        }));
        cx.set_consumer(self.stream, arn);
        leases.wake_busy(cx.now());
    }
}

/// How long the answer to an operation on a stream is waited for.
pub(super) fn patience(op: &StreamOp, config: &Config) -> Span {
    match op {
        StreamOp::NextEvent { .. } => SILENCE,
        // No records are read meanwhile, and a proxy may hold the answer back until its end.
        StreamOp::Subscribe { .. } => config.stream_timeout.min(SUBSCRIBE_TIMEOUT),
        _ => config.stream_timeout,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::StreamSource;
    use crate::format::Format;
    use crate::reader::Feeds;
    use crate::stream_id::StreamId;
    use crate::stream_identity::StreamIdentity;
    use crate::time::Wall;
    use crate::worker::testing::{config, running, table};

    /// The only stream, or the first of several.
    const FIRST: StreamIx = StreamIx::ONLY;

    fn arn(stream: &str) -> String {
        format!("arn:aws:kinesis:eu-west-1:123456789012:stream/{stream}")
    }

    /// A worker of the stream `orders`, with this mode and consumer in its options. `second`: the mode and consumer of a second
    /// stream, `returns`.
    fn worker(mode: ReadMode, consumer: &str, second: Option<(ReadMode, &str)>) -> Context {
        let mut config = config(Format::Kcl);
        (config.reader.mode, config.reader.consumer) = (mode, consumer.to_owned());
        let id = |name: &str| format!("123456789012:{name}:7").parse::<StreamId>().expect("an identifier");
        if let Some((mode, consumer)) = second {
            config.stream = String::new();
            let (reader_mode, consumer) = (Some(mode), Some(consumer.to_owned()));
            let returns = StreamSource { reader_mode, consumer, ..StreamSource::from(id("returns")) };
            config.streams = vec![StreamSource::from(id("orders")), returns].into();
        }
        assert_eq!(config.check(), Ok(()));
        let mut cx = running(config);
        for (ix, name) in cx.streams().read().into_iter().zip(["orders", "returns"]) {
            cx.set_said(ix, StreamIdentity::new(&arn(name), Wall(7_000)));
            cx.set_identified(ix);
        }
        cx.did();
        cx
    }

    #[test]
    fn a_given_consumer_is_used_if_it_is_of_the_stream() {
        let given = format!("{}/consumer/mine:1", arn("orders"));
        let mut cx = worker(ReadMode::FanOut, &given, None);
        let (mut leases, mut room) = (table(&cx), StreamConsumer::new(FIRST));
        room.step(&mut cx, &mut leases);
        assert_eq!(cx.streams().consumer(FIRST).map(|arn| &**arn), Some(given.as_str()));
        assert_eq!(cx.did().told(), ["consumer-active"]);
        for other in [format!("{}/consumer/mine:1", arn("orders-2")), arn("orders")] {
            let mut cx = worker(ReadMode::FanOut, &other, None);
            let (mut leases, mut room) = (table(&cx), StreamConsumer::new(FIRST));
            room.step(&mut cx, &mut leases);
            assert_eq!(cx.streams().consumer(FIRST), None, "{other}");
            assert_eq!(cx.did().told(), ["consumer-unfit"]);
            assert_eq!(room.wake_at(&cx), Mono::NEVER, "told once");
        }
    }

    #[test]
    fn each_stream_has_its_mode_and_its_consumer() {
        let mut cx = worker(ReadMode::Polling, "", Some((ReadMode::Auto, "own")));
        let streams = cx.streams().read();
        let mut leases = table(&cx);
        let mut rooms: Vec<_> = streams.iter().map(|ix| StreamConsumer::new(*ix)).collect();
        for room in &mut rooms {
            room.step(&mut cx, &mut leases);
        }
        let (_, effect) = cx.did().command();
        assert!(format!("{effect:?}").contains("\"own\""), "{effect:?}");
        cx.set_consumer(streams[1], Some("arn".into()));
        assert_eq!((cx.feeds(streams[0]), cx.feeds(streams[1])), (Feeds::Iterators, Feeds::Both));
    }
}
