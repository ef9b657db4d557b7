//! When a shard is read next, after an answer and after a refusal.
//!
//! Kinesis gives 2 MB a second of a shard, in five reads, to all applications together. It refuses reads until the bytes of an answer are paid
//! for, and counts whole seconds: "if a call returns 10 MB, subsequent calls made within the next five seconds throw an exception".
//!
//! * **Alone, an application is not refused.** The next read waits until the answer is paid for at `bytes_per_second`. A large answer is paid
//!   for with whole seconds, or with an even part of a second.
//! * **A refusal for the rate means that another application reads the shard**, and counts for ten seconds. Meanwhile
//!   applications take turns. A refused read is repeated after a quarter of a second to a second, whatever the number
//!   of refusals. After an answer the reader waits for a quarter longer than the answer costs, up to twice as long. The
//!   next turn is then mostly another application's.

use super::feed::FeedKind;
use super::{Flight, Kind, Reader};
use crate::config::ReaderConfig;
use crate::draw::draw_below;
use crate::input::{Cause, Fetched, Outcome};
use crate::reader::Ctx;
use crate::time::{Mono, Span};

/// The bytes of a shard that Kinesis gives in a second.
const SERVICE: u64 = 2_000_000;
/// The reads of a shard that Kinesis answers in a second.
const READS: u64 = 5;
/// A request may be this much longer on its way than the request before.
const JITTER: Span = Span::from_millis(50);
/// How long a shard counts as crowded after a refusal.
const CROWDED: Span = Span::from_secs(10);
/// The least and the greatest pause before a refused read is repeated.
const TURN: (Span, Span) = (Span::from_millis(250), Span::from_secs(1));

/// The bytes read by one application from a shard in a second, as Kinesis counts: a second begins with the first read
/// after the previous second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Second {
    began: Mono,
    bytes: u64,
}

impl Second {
    pub(super) fn new(now: Mono) -> Self {
        Self { began: now, bytes: 0 }
    }

    /// A read brought so many bytes. When the next one is not refused.
    fn read(&mut self, sent: Mono, bytes: u64, allowed: u64) -> Mono {
        if sent.since(self.began) >= Span::from_secs(1) {
            *self = Self::new(sent);
        }
        self.bytes = self.bytes.saturating_add(bytes);
        match self.bytes / allowed {
            0 => Mono(0),
            _ => self.began + Span::from_secs(1).times(self.bytes.div_ceil(allowed)) + JITTER,
        }
    }
}

/// The cost of one answer, at the pace of the configuration. Large answers fill whole seconds, alone or several of one
/// size. The cost is rounded up slightly, as Kinesis refuses reads above the limit.
fn cost(bytes: u64, cfg: &ReaderConfig) -> Span {
    let (second, rate) = (Span::from_secs(1), cfg.bytes_per_second.max(1));
    let cost = match rate / bytes.max(1) {
        _ if bytes <= rate.max(SERVICE) / READS => second.scaled(bytes, rate),
        0 => second.times(bytes.div_ceil(rate)) + JITTER,
        several => second.per(several) + JITTER.per(several),
    };
    cost + Span(1)
}

impl Reader {
    /// A read was refused for the rate: a second application reads the shard.
    pub(super) fn see_crowd(&mut self, flight: &Flight, now: Mono, outcome: &Outcome) {
        let is_read = matches!(flight.kind, Kind::Records { .. });
        if is_read && *outcome == Outcome::NotSent(Cause::Throttled) {
            self.crowded_until = now + CROWDED;
        }
    }

    /// Holds the next `GetRecords` back as this answer demands.
    pub(super) fn pace(&mut self, flight: &Flight, now: Mono, answer: &Fetched, ctx: &Ctx<'_>) {
        if flight.kind.feed() == FeedKind::Subscription {
            // The service pushes at its own pace, beside the reads of all applications.
            return;
        }
        if answer.behind_ms == 0 && answer.end.is_none() {
            self.records_at = self.records_at.max(flight.sent + ctx.cfg.idle_interval);
        }
        if answer.bytes > 0 {
            let cost = cost(answer.bytes, ctx.cfg);
            let longer = match now < self.crowded_until {
                true => drawn(ctx, "reader-turn", flight.op.n, (cost.per(4), cost)),
                false => Span::ZERO,
            };
            let allowed = ctx.cfg.bytes_per_second.max(SERVICE);
            let allowed_at = self.second.read(flight.sent, answer.bytes, allowed);
            self.records_at = self.records_at.max(allowed_at).max(flight.sent + cost + longer);
        }
    }

    /// The pause after a read that was refused for the rate.
    pub(super) fn await_turn(&mut self, n: u64, now: Mono, ctx: &Ctx<'_>) -> Span {
        self.failures = self.failures.saturating_add(1);
        let most = TURN.1.max(ctx.retry_min).min(ctx.retry_max);
        let least = TURN.0.max(ctx.retry_min).min(most);
        let pause = drawn(ctx, "reader-retry", n, (least, most));
        self.retry_at = now + pause;
        pause
    }
}

/// A random span between the least and the greatest span.
fn drawn(ctx: &Ctx<'_>, purpose: &str, n: u64, (least, most): (Span, Span)) -> Span {
    debug_assert!(least <= most, "a span is drawn from a range");
    let width = (most.0 - least.0).saturating_add(1);
    least + Span(draw_below(ctx.seed, purpose, ctx.subject, n, width))
}
