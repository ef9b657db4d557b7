//! The reader of a shard, behind one door: stage logic knows no kind of reader.
//!
//! Every kind of reader fills a [`Buffer`] with batches. Hand-overs and acknowledgements are of the buffer alone.

use super::polling;
use crate::ids::OpId;
use crate::input::Outcome;
use crate::notice::Stall;
use crate::reader::{Buffer, Event, Reader, Start};
use crate::shard::ChildShard;
use crate::time::{Mono, Wall};
use crate::worker::context::Context;
use crate::worker::lease::lane::Lane;
use crate::worker::lease::ownership::Ownership;
use crate::worker::lease::processing::share::Share;

/// The reader of a shard, by its kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum ShardReader {
    /// Asks for iterators and records.
    Polling(Reader),
}

impl ShardReader {
    /// Begins to read at this place.
    pub(super) fn begin(start: Start, now: Mono) -> Self {
        Self::Polling(Reader::new(start, now))
    }

    /// Requests what is due, within what the reads of all shards share.
    pub(super) fn request(&mut self, share: &mut Share, own: &Ownership, lane: &Lane, cx: &mut Context) {
        let Self::Polling(reader) = self;
        polling::request(reader, share, own, lane, cx);
    }

    /// A request has this outcome.
    pub(super) fn on_answer(
        &mut self, own: &Ownership, cx: &Context, op: OpId, outcome: &Outcome,
    ) -> Option<Event> {
        let Self::Polling(reader) = self;
        reader.fetched(op, cx.now(), outcome, &polling::context(own, cx))
    }

    /// When the next request is due, if nothing else happens.
    pub(super) fn wake_at(&self, cx: &Context) -> Mono {
        let Self::Polling(reader) = self;
        reader.wake_at(&cx.config().reader)
    }

    /// The moment at which reading begins, if the service has refused later ones.
    pub(super) fn begins(&self) -> Option<Wall> {
        let Self::Polling(reader) = self;
        reader.began_earlier()
    }

    /// All unprocessed records are read again.
    pub(super) fn rewind(&mut self) {
        let Self::Polling(reader) = self;
        reader.rewind();
    }

    /// Goes on after the shard was not found.
    pub(super) fn resume(&mut self, at: Mono) {
        let Self::Polling(reader) = self;
        reader.resume(at);
    }

    /// Goes on after an end that named no children, when a listing shows the shard open.
    pub(super) fn read_on(&mut self, now: Mono) {
        let Self::Polling(reader) = self;
        reader.read_on(now);
    }

    /// Asks once more for the end, when a listing shows the shard closed.
    pub(super) fn confirm_end(&mut self, now: Mono) {
        let Self::Polling(reader) = self;
        reader.confirm_end(now);
    }

    /// The shard has ended with these children, by listings: after the shard was not found, or after an end that named
    /// no children.
    pub(super) fn end_with(&mut self, children: Vec<ChildShard>) {
        let Self::Polling(reader) = self;
        reader.trimmed(children);
    }

    /// The children of the shard, once its end was read and every batch processed. The answer may have named none.
    pub(super) fn finished(&self) -> Option<&[ChildShard]> {
        let Self::Polling(reader) = self;
        reader.finished()
    }

    /// Whether the end of the shard was read, and every batch before it handed over and answered.
    pub(super) fn has_handed_all_over(&self) -> bool {
        let Self::Polling(reader) = self;
        reader.handed_all_over()
    }

    /// The bytes of memory that wait to be processed, or are being processed. What is kept does not count.
    pub(super) fn held_bytes(&self) -> u64 {
        let Self::Polling(reader) = self;
        reader.held_bytes()
    }

    /// Whether no batch is there, and the next event of a subscription is awaited.
    pub(super) fn awaits_event(&self) -> bool {
        let Self::Polling(reader) = self;
        reader.awaits_event()
    }

    /// Why no batch is there.
    pub(super) fn why_empty(&self) -> Stall {
        let Self::Polling(reader) = self;
        polling::why_empty(reader)
    }

    pub(super) fn batches(&self) -> &Buffer {
        let Self::Polling(reader) = self;
        reader.batches()
    }

    pub(super) fn batches_mut(&mut self) -> &mut Buffer {
        let Self::Polling(reader) = self;
        reader.batches_mut()
    }
}
