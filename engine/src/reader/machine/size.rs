//! How many records a read asks for, and how many bytes that may be.
//!
//! * **The first read is small**: as many records as fit into one answer at the largest size. A full answer lets the
//!   next answer be longer, up to `max_records`.
//! * **An event of a subscription is expected to be as long as the last events**, and the first event as long as an event can be. At the
//!   tip of the shard an event reserves no memory: the wait may last for ever. A sudden burst then brings one event of a shard.
//! * **A slow answer makes no longer request.** Requests of other shards, and renewals, share the connection. An answer
//!   may take two seconds, or a quarter of `stream_timeout`. A short answer tells nothing of the speed.
//! * **No read asks for more than a second of `bytes_per_second`**, as far as the size of a record is known. Kinesis refuses the reads of every
//!   application until the bytes of an answer are paid for: other applications would wait. Where `max_records` does not fill a second, several reads
//!   of one size do.
//! * **A read that failed on its way is not repeated unchanged**: the next read asks for half as many records, down to
//!   one. A read that took the full timeout is halved, too. From the failed length on, answers grow slowly, until an
//!   answer of this length comes.

use super::{Flight, Kind, Reader};
use crate::config::ReaderConfig;
use crate::input::{Cause, Fetched, Outcome, Reply};
use crate::reader::Ctx;
use crate::time::{Mono, Span};

/// The bytes of a record beside its payload: its names and numbers, in the answer and in memory.
const BESIDE: u64 = 256;
/// A record has at most this many bytes, unless its stream allows more.
const LARGEST_RECORD: u64 = 1 << 20;
/// Kinesis puts no more bytes of records into an answer.
const LARGEST_ANSWER: u64 = 10 << 20;
/// An event has no more bytes of records, as far as is known.
const LARGEST_EVENT: u64 = 1 << 20;
/// No process has more memory.
const MEMORY: u64 = 1 << 40;
/// The first read asks for as many.
const FIRST: u32 = (LARGEST_ANSWER / LARGEST_RECORD) as u32;
/// A slower answer leads to no longer request.
const BRISK: Span = Span::from_secs(2);
/// A shorter answer does not tell how fast bytes come.
const SHORT: u64 = 64 << 10;

/// The size of the next read of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Size {
    limit: u32,
    /// A read of this many records failed on its way, and no answer of this length has come since.
    failed: u32,
    /// The last read failed on its way.
    failing: bool,
    /// The bytes of a record, by the last answers; 0: not known.
    each: u64,
    /// The bytes of an event in transit, by the last events.
    event: u64,
}

impl Size {
    pub(super) const NEW: Size =
        Size { limit: FIRST, failed: u32::MAX, failing: false, each: 0, event: as_text(LARGEST_EVENT) };

    pub(super) fn limit(&self, cfg: &ReaderConfig) -> u32 {
        let records = self.in_a_second(cfg);
        let reads = records.div_ceil(cfg.max_records.max(1)).max(1);
        self.limit.clamp(1, records.div_ceil(reads).max(1))
    }

    /// The number of records allowed in a second by `bytes_per_second`, as far as the size of a record is known.
    /// Slightly larger records than before fit, too.
    fn in_a_second(&self, cfg: &ReaderConfig) -> u32 {
        let each = self.each.saturating_sub(BESIDE);
        let bytes = cfg.bytes_per_second - cfg.bytes_per_second / 20;
        let records = bytes.checked_div(each).unwrap_or(u64::MAX);
        u32::try_from(records).unwrap_or(u32::MAX)
    }

    /// The bytes that a record may take in transit.
    fn one(&self) -> u64 {
        let each = match self.each {
            0 => LARGEST_RECORD,
            each => each.min(LARGEST_ANSWER + BESIDE),
        };
        as_text(each)
    }

    /// The bytes that an answer of up to `limit` records may take in transit.
    fn all(&self, limit: u32) -> u64 {
        let records = u64::from(limit);
        let most = LARGEST_ANSWER + BESIDE * records;
        self.one().saturating_mul(records).min(as_text(most))
    }

    /// The bytes that an event may take in transit.
    pub(super) fn event(&self) -> u64 {
        self.event
    }

    /// An event came.
    fn pushed(&mut self, answer: &Fetched) {
        let bytes = as_text(answer.bytes.saturating_add(BESIDE * u64::from(answer.count)));
        self.event = match answer.behind_ms {
            // The wait at the tip may last for ever, and must not hold memory from other shards.
            0 => 0,
            _ => bytes.max(self.event - self.event / 8),
        };
    }

    /// A read of so many records was answered.
    fn answered(&mut self, asked: u32, took: Span, answer: &Fetched, ctx: &Ctx<'_>) {
        let count = u64::from(answer.count);
        let bytes = answer.bytes.saturating_add(BESIDE * count);
        if count > 0 {
            self.each = bytes.div_ceil(count).max(self.each - self.each / 8);
        }
        if took >= ctx.stream_timeout {
            return self.was_too_long(asked);
        }
        self.failing = false;
        if answer.count >= self.failed {
            self.failed = u32::MAX;
        }
        let brisk = ctx.stream_timeout.per(4).min(BRISK);
        let factor = match took {
            _ if bytes < SHORT || took <= brisk.per(4) => 4,
            _ if took <= brisk => 2,
            _ => 1,
        };
        if answer.count < asked || asked < self.limit || factor == 1 {
            return;
        }
        let grown = self.limit.saturating_mul(factor);
        self.limit = match grown < self.failed {
            true => grown,
            false => self.limit.saturating_add((self.limit / 8).max(1)),
        };
        self.limit = self.limit.min(ctx.cfg.max_records);
    }

    /// A read of this many records failed on its way, or nearly.
    fn was_too_long(&mut self, asked: u32) {
        // A read right after a failed read may fail for a different reason than its length.
        if !std::mem::replace(&mut self.failing, true) {
            self.failed = asked.max(2);
        }
        self.limit = (asked / 2).clamp(1, self.limit);
    }
}

/// As JSON has bytes: three in four characters.
const fn as_text(bytes: u64) -> u64 {
    bytes.saturating_add(bytes.div_ceil(3))
}

impl Reader {
    /// The bytes that a record may take in transit, and the bytes of an answer with up to `limit` records.
    pub fn expects(&self, limit: u32) -> (u64, u64) {
        (self.size.one(), self.size.all(limit))
    }

    /// The bytes of memory that wait to be processed, or are being processed. What is kept does not count.
    pub fn held_bytes(&self) -> u64 {
        let batches = self.buffer.waiting();
        let sizes = batches.map(|batch| batch.bytes.saturating_add(BESIDE * u64::from(batch.count)));
        // A size beyond any memory is not believed, so sums of sums do not saturate.
        sizes.fold(0, u64::saturating_add).min(MEMORY)
    }

    /// A command ended, and the length of the next read follows from that.
    pub(super) fn learn_size(&mut self, flight: &Flight, now: Mono, outcome: &Outcome, ctx: &Ctx<'_>) {
        if let (Kind::Event, Outcome::Applied(Reply::Records(answer))) = (flight.kind, outcome) {
            self.size.pushed(answer);
        }
        let Kind::Records { limit } = flight.kind else {
            // The request asked for no number of records.
            return;
        };
        match outcome {
            Outcome::Applied(Reply::Records(answer)) => {
                self.size.answered(limit, now.since(flight.sent), answer, ctx);
            }
            Outcome::Unknown(Cause::Timeout | Cause::Network | Cause::Garbled) => {
                self.size.was_too_long(limit);
            }
            _ => {}
        }
    }
}
