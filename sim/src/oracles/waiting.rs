//! `shards-independent`: one shard does not delay another.
//!
//! While a worker believes in an open shard, fetched records are handed over as soon as the shard's own handler is
//! free. The worker reads on while few records wait. The handlers and reads of other shards do not matter. Only the
//! shard's own causes may delay: the pause after failures of its handler or of its reads, in proportion to the failures
//! in a row, and the pace of its reads. Where all shards of a worker share little memory or few reads, the times of
//! reads are not judged.

use super::fact::{Ask, How};
use super::{
    EVENTS, Fact, History, LifeNo, Property, READS, REPORTS, REQUESTS, ROWS, Sees, ShardNo, Terms, Time,
    Verdict,
};
use leasehold_engine::config::ReadMode;
use leasehold_engine::time::Span;
use std::collections::{BTreeMap, VecDeque};

/// One open shard of one life.
#[derive(Clone, Debug, Default)]
struct Shard {
    open: bool,
    /// The worker is releasing the shard, or may be.
    leaving: bool,
    /// The beginning of the worker's pause; the worker's clock may stand, too.
    stands: Option<Time>,
    /// The end of the belief, in true time.
    until: Time,
    /// Batches fetched and not processed: their last record, and their bytes.
    waiting: VecDeque<(u64, u64)>,
    /// Batches that the handler keeps.
    kept: VecDeque<(u64, u64)>,
    /// The records of the read being answered: only then is the read known to have been waited for.
    brought: Option<(u64, u64, u64)>,
    /// The processed records, as reported by this life.
    through: u64,
    /// The last record of the handler's present batch.
    handling: Option<u64>,
    /// The application has paused the shard, and no batch is handed over.
    paused: bool,
    /// Since when a batch could have been handed over, apart from the pause after a failure.
    free_since: Time,
    /// The number of returns in a row before the handler had processed its whole batch.
    returns: u32,
    /// The handler's last return with its whole batch processed.
    done_at: Option<Time>,
    /// The read under way, or a refused read to be examined first.
    reading: Option<u64>,
    /// The read under way is the wait for an event: after a batch was given back, nothing waits for the event.
    is_event: bool,
    /// The answer of the read under way is dropped: a batch was given back meanwhile.
    void: bool,
    /// Since when the shard could have been read, apart from its pace.
    readable_since: Time,
    /// An answer claimed the end without children: no further read is required until then.
    claimed_until: Time,
    /// The last answer claimed the end without children: a listing decides whether the shard is read on.
    claimed: bool,
    /// Failed reads in a row; iterators received between reads do not count.
    failures: u32,
    /// The pause required by the last answer's size, in µs.
    pace_us: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Waiting {
    /// The longest pause between two reads, and the least pause after a failure of a handler, in µs.
    read_pause: u64,
    handler_pause: u64,
    /// The longest pause between two answers with a claimed end and no children, and the longest rest until the listing that
    /// decides, in µs.
    claim_pause: u64,
    /// The last listing of each life: its failure or its last page; the end of time while a page is under way.
    listed: BTreeMap<LifeNo, Time>,
    /// The longest time without a read where only subscriptions read, in µs: the longest pause between two calls, and the registration
    /// of a consumer.
    subscribe_pause: u64,
    /// The longest pauses after each number of failures in a row, less one, in µs.
    pauses: Vec<u64>,
    terms: Terms,
    shards: BTreeMap<(ShardNo, LifeNo), Shard>,
}

const SLACK_US: u64 = 250_000;

impl Waiting {
    pub(super) const SEES: Sees = Sees::all(REPORTS | REQUESTS | READS | ROWS | EVENTS);

    pub(super) fn new(terms: &Terms) -> Self {
        let at_most = |span: Span| terms.at_most(span);
        let pause = |failures: u32| {
            at_most(terms.most(|config| config.retry_min().times(2 << failures).min(config.retry_max())))
        };
        Self {
            read_pause: at_most(
                terms.most(|config| config.reader().idle_interval().max(config.reader().min_interval())),
            ),
            handler_pause: at_most(terms.most(|config| config.handler_backoff())),
            claim_pause: at_most(terms.most(|config| config.stream_lag() + config.scan_interval())),
            listed: BTreeMap::new(),
            subscribe_pause: match terms.most(|config| config.reader().mode() == ReadMode::FanOut) {
                true => at_most(Span::from_secs(100)),
                false => 0,
            },
            pauses: (0..20).map(pause).collect(),
            terms: terms.clone(),
            shards: BTreeMap::new(),
        }
    }

    /// The longest pause after this many failures in a row.
    fn pause(&self, failures: u32) -> u64 {
        let longest = self.pauses.len() - 1;
        match failures {
            0 => 0,
            _ => self.pauses[longest.min(failures as usize - 1)],
        }
    }

    fn of_life(&mut self, life: LifeNo) -> impl Iterator<Item = &mut Shard> {
        let of = self.shards.iter_mut().filter(move |((_, of), _)| *of == life);
        of.map(|(_, shard)| shard)
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, history: &History, _: &mut Verdict) {
        match *fact {
            Fact::OpenBegun { life, shard, .. } => {
                let promised = history.shard(shard).row.is_some_and(|row| row.next.is_some());
                let leaving = history.stopping.contains(&life) || promised;
                let until = self.shards.get(&(shard, life)).map_or(0, |known| known.until);
                let begun = Shard { leaving, until, ..Shard::default() };
                self.shards.insert((shard, life), begun);
            }
            Fact::Closed { life, shard, .. } => drop(self.shards.remove(&(shard, life))),
            Fact::Died { life } | Fact::Stopped { life, .. } => {
                self.shards.retain(|(_, of), _| *of != life);
            }
            Fact::ShutdownAsked { life } | Fact::GivesUp { life } => {
                self.of_life(life).for_each(|shard| shard.leaving = true);
            }
            // Another oracle judges whether the time for this act has come.
            Fact::LetsGo { life } => self.of_life(life).for_each(|shard| shard.leaving = true),
            Fact::StreamLeft { life, stream, .. } => {
                let of = self.shards.iter_mut();
                let of = of.filter(|((shard, of), _)| *of == life && history.streams.of(*shard) == stream);
                of.for_each(|(_, shard)| shard.leaving = true);
            }
            Fact::Unblocked { life } => {
                self.of_life(life).for_each(|shard| shard.free_since = now);
            }
            // A call that waited too long for the runtime has failed, though no handler began.
            Fact::TimedOut { life, shard, .. } if history.blocked.contains(&life) => {
                let known = self.shards.get_mut(&(shard, life));
                if let Some(known) = known.filter(|known| known.handling.is_none()) {
                    known.returns = known.returns.saturating_add(1);
                }
            }
            Fact::Paused { life } => self.of_life(life).for_each(|shard| shard.stands = Some(now)),
            Fact::Resumed { life, .. } => self.of_life(life).for_each(|shard| {
                shard.resume(now);
                shard.free_since = now;
                shard.readable_since = now;
            }),
            Fact::RowChanged { shard, after, .. } => {
                let of = self.shards.range_mut((shard, 0)..=(shard, LifeNo::MAX));
                for ((_, life), known) in of {
                    known.leaving |= !after.is_some_and(|row| row.is_of(*life) && row.next.is_none());
                }
            }
            Fact::Processed { life, shard, through, .. } => {
                if let Some(known) = self.shards.get_mut(&(shard, life)) {
                    known.through = through.max(known.through);
                    if known.handling.is_some_and(|last| last <= through) {
                        known.done_at = Some(now);
                    }
                    known.let_go(now, &self.terms);
                }
            }
            Fact::Answered {
                life,
                ask: ask @ (Ask::GetRecords | Ask::GetIterator | Ask::Subscribe | Ask::NextEvent),
                about: Some(shard),
                op,
                how,
                ..
            } => {
                if let Some(known) = self.shards.get_mut(&(shard, life)) {
                    if known.reading == Some(op) {
                        known.failures = match how {
                            How::Applied if matches!(ask, Ask::GetIterator | Ask::Subscribe) => {
                                known.failures
                            }
                            How::Applied => 0,
                            _ => known.failures.saturating_add(1),
                        };
                        known.reading = known.reading.filter(|_| how == How::Refused);
                        known.readable_since = now;
                        if std::mem::take(&mut known.void) {
                            known.brought = None;
                        }
                        known.keep(now, &self.terms);
                    }
                    // An answer of a former ownership does not serve the present ownership.
                    known.brought = None;
                }
            }
            // Where shards are read by subscription alone, a shard waits for the consumer of its stream, and the service does
            // not answer.
            Fact::Answered { life, ask: Ask::Consumer(stream), how: How::Unknown | How::NotSent, .. }
                if self.subscribe_pause > 0 =>
            {
                let of = self.shards.iter_mut();
                let of = of.filter(|((shard, of), _)| *of == life && history.streams.of(*shard) == stream);
                of.for_each(|(_, shard)| shard.readable_since = now);
            }
            Fact::Asked { life, ask: Ask::ListShards | Ask::ListMore, .. } => {
                self.listed.insert(life, Time::MAX);
            }
            Fact::Answered { life, ask: Ask::ListShards | Ask::ListMore, .. } => {
                self.listed.insert(life, now);
            }
            Fact::EndClaimed { life, shard } => {
                if let Some(known) = self.shards.get_mut(&(shard, life)) {
                    known.claimed_until = now.saturating_add(self.claim_pause);
                    known.claimed = true;
                }
            }
            Fact::HoldsNoMore { life, shard } | Fact::Yields { life, shard } => {
                if let Some(known) = self.shards.get_mut(&(shard, life)) {
                    known.leaving = true;
                }
            }
            Fact::OpenDone { life, shard, .. }
            | Fact::Holds { life, shard, .. }
            | Fact::Asked {
                life,
                ask: Ask::GetRecords | Ask::GetIterator | Ask::Subscribe | Ask::NextEvent,
                about: Some(shard),
                ..
            }
            | Fact::Fetched { life, shard, .. }
            | Fact::Delivered { life, shard, .. }
            | Fact::PauseAsked { life, shard }
            | Fact::ResumeAsked { life, shard }
            | Fact::Kept { life, shard, .. }
            | Fact::GivenBack { life, shard, .. }
            | Fact::FlushBegun { life, shard, .. }
            | Fact::FlushEnded { life, shard, .. }
            | Fact::SetAsideBegun { life, shard, .. }
            | Fact::SetAside { life, shard, .. }
            | Fact::SetAsideEnded { life, shard, .. }
            | Fact::ShardStopped { life, shard, .. }
            | Fact::HandlerEnded { life, shard, .. } => {
                match self.shards.get_mut(&(shard, life)) {
                    Some(known) => known.observe(now, fact, &self.terms),
                    None => {
                        // The shard may be opened later.
                        if let Fact::Holds { until, .. } = *fact {
                            let known = self.shards.entry((shard, life)).or_default();
                            known.until = until;
                        }
                    }
                }
            }
            _ => {}
        }
    }

    pub(super) fn look(&mut self, now: Time, history: &History, verdict: &mut Verdict) {
        let keys: Vec<_> = self.shards.keys().copied().collect();
        for (shard, life) in keys {
            let Some(known) = self.shards.get(&(shard, life)) else {
                continue;
            };
            if !known.open || known.leaving || known.stands.is_some() || known.until <= now {
                continue;
            }
            // Records fetched again may be dropped at once.
            let done = history.shard(shard).done;
            let pause = match known.returns {
                0 => 0,
                returns => self.handler_pause.max(self.pause(returns)),
            };
            let idle = now.saturating_sub(known.free_since);
            let due = known.handling.is_none()
                && !known.paused
                && !history.blocked.contains(&life)
                && !known.keeps_enough(&self.terms)
                && known.waiting.iter().any(|(last, _)| *last > done);
            let late = due && idle > pause + SLACK_US;
            // A read refused for the rate is tried again within a second.
            let turn = match known.failures {
                0 => 0,
                _ => self.terms.at_most(Span::from_secs(1)),
            };
            let pause_read = self.read_pause.max(self.pause(known.failures)).max(turn)
                + known.pace_us
                + self.subscribe_pause
                + SLACK_US;
            let listed = self.listed.get(&life).filter(|_| known.claimed);
            // No decision follows from a listing that contradicts the table: another listing follows.
            let decided = listed.map_or(0, |listed| listed.saturating_add(self.claim_pause));
            let unread = now.saturating_sub(known.readable_since.max(known.claimed_until).max(decided));
            // The listing that decides on a claimed end comes after the shard's last batch.
            let undecided = known.claimed && !(known.waiting.is_empty() && known.kept.is_empty());
            let neglected = !self.terms.tight
                && !undecided
                && known.reading.is_none()
                && history.shard(shard).records.is_none()
                && !known.is_full(&self.terms)
                && unread > pause_read;
            if late {
                verdict.report(Property::ShardsIndependent, now, || {
                    format!(
                        "life {life} has records of shard {shard} and its handler has been free for {} ms, {} ms are allowed",
                        idle / 1_000,
                        (pause + SLACK_US) / 1_000
                    )
                });
            }
            if neglected {
                verdict.report(Property::ShardsIndependent, now, || {
                    format!(
                        "life {life} has not read shard {shard} for {} ms though little of it waits, {} ms are allowed",
                        unread / 1_000,
                        pause_read / 1_000
                    )
                });
            }
            if let Some(known) = self.shards.get_mut(&(shard, life)) {
                known.free_since = if late { now } else { known.free_since };
                known.readable_since = if neglected { now } else { known.readable_since };
            }
        }
    }
}

impl Shard {
    /// Ends the pause of the worker. The pause after a claimed end is longer by the length of the worker's pause.
    fn resume(&mut self, now: Time) {
        if let Some(since) = self.stands.take()
            && self.claimed_until > since
        {
            self.claimed_until = self.claimed_until.saturating_add(now - since);
        }
    }

    /// Whether enough records wait to excuse further reads.
    fn is_full(&self, terms: &Terms) -> bool {
        let bytes: u64 = self.waiting.iter().map(|(_, bytes)| bytes).sum();
        self.waiting.len() >= terms.least(|config| config.reader().buffer_batches()) as usize
            || bytes >= terms.least(|config| config.reader().buffer_bytes())
    }

    /// Whether the handler keeps enough batches to excuse further hand-overs.
    fn keeps_enough(&self, terms: &Terms) -> bool {
        let bytes: u64 = self.kept.iter().map(|(_, bytes)| bytes).sum();
        let batches = terms.least(|config| config.reader().kept_batches()) as usize;
        !self.kept.is_empty()
            && (self.kept.len() >= batches || bytes >= terms.least(|config| config.reader().kept_bytes()))
    }

    /// Keeps the records of a read.
    fn keep(&mut self, now: Time, terms: &Terms) {
        let Some((first, last, bytes)) = self.brought.take() else {
            return;
        };
        if self.waiting.is_empty() && self.handling.is_none() {
            self.free_since = now;
        }
        // Records fetched before and fetched again were given up.
        if self.waiting.back().is_some_and(|(before, _)| *before >= first) {
            self.waiting.clear();
        }
        self.waiting.push_back((last, bytes));
        let rate = terms.least(|config| config.reader().bytes_per_second()).max(1);
        // A shard that counts as crowded is read half as fast. Large answers are paid for with whole seconds.
        let whole = u64::from(bytes > 400_000) * 3_000_000;
        self.pace_us = terms.at_most(Span(bytes.saturating_mul(2_000_000) / rate + whole));
    }

    /// Forgets processed batches, but for the handler's present batch.
    fn let_go(&mut self, now: Time, terms: &Terms) {
        let full = self.is_full(terms);
        let enough = self.keeps_enough(terms);
        while self.kept.front().is_some_and(|(last, _)| *last <= self.through) {
            self.kept.pop_front();
        }
        if enough {
            self.free_since = now;
        }
        let over = |last: u64| last <= self.through && self.handling != Some(last);
        while self.waiting.front().is_some_and(|(last, _)| over(*last)) {
            self.waiting.pop_front();
        }
        if full {
            self.readable_since = now;
        }
    }

    fn observe(&mut self, now: Time, fact: &Fact, terms: &Terms) {
        match *fact {
            Fact::OpenDone { .. } => {
                self.open = true;
                self.free_since = now;
                self.readable_since = now;
            }
            Fact::Holds { until, .. } => {
                if self.until <= now {
                    self.free_since = now;
                    self.readable_since = now;
                }
                self.until = until;
            }
            Fact::Asked { op, ask, .. } => {
                self.claimed = false;
                self.reading = Some(op);
                self.is_event = ask == Ask::NextEvent;
                // The next read waits for the pace of the last read, whatever iterator the next read needs.
                if ask == Ask::GetRecords {
                    self.pace_us = 0;
                }
                (self.brought, self.void) = (None, false);
            }
            Fact::Fetched { first, last, bytes, .. } => self.brought = Some((first, last, bytes)),
            Fact::Delivered { last, .. } => self.handling = Some(last),
            Fact::PauseAsked { .. } | Fact::ShardStopped { .. } => self.paused = true,
            Fact::ResumeAsked { .. } if self.paused => {
                self.paused = false;
                self.free_since = now;
            }
            Fact::Kept { last, .. } => {
                let full = self.is_full(terms);
                while let Some(batch) = self.waiting.pop_front_if(|(of, _)| *of <= last) {
                    self.kept.push_back(batch);
                }
                if full {
                    self.readable_since = now;
                }
                self.done_at = Some(now);
            }
            // All kept and waiting records are read again.
            Fact::GivenBack { .. } => {
                (self.waiting, self.kept) = (VecDeque::new(), VecDeque::new());
                self.returns = self.returns.saturating_add(1);
                self.reading = self.reading.filter(|_| !self.is_event);
                self.void = self.reading.is_some();
                (self.free_since, self.readable_since) = (now, now);
                self.claimed_until = now;
            }
            Fact::FlushBegun { .. } | Fact::SetAsideBegun { .. } => self.handling = Some(u64::MAX),
            Fact::SetAside { .. } => self.done_at = Some(now),
            Fact::HandlerEnded { .. } | Fact::FlushEnded { .. } | Fact::SetAsideEnded { .. } => {
                self.handling = None;
                self.free_since = now;
                self.returns = match self.done_at {
                    Some(at) if at == now => 0,
                    _ => self.returns.saturating_add(1),
                };
                self.let_go(now, terms);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
