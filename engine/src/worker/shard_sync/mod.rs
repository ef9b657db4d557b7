//! Keeping the lease table in step with the shards of the stream.
//!
//! | file | what |
//! |---|---|
//! | `listing` | listing the shards, page by page |
//! | `bootstrap` | filling an empty table |
//! | `audit` | looking for shards without a lease, after a whole scan, so that the shards are listed |
//! | `recognise` | whether the leases are of this stream |
//! | `contradicted` | rows that listings contradict, and their correction |
//! | `create` | the leases to be created by a list of all shards, and when their absence is certain |
//! | `orphans` | children of finished shards without a lease: they are created sooner |
//! | `clean_up` | removing finished leases |

mod audit;
mod bootstrap;
mod clean_up;
mod contradicted;
mod create;
mod listing;
mod orphans;
mod recognise;
#[cfg(test)]
mod tests;

use super::context::Context;
use super::lease_table::LeaseTable;
use super::stream_set::StreamIx;
use crate::ids::OpId;
use crate::input::Outcome;
use crate::notice::ListReason;
use crate::shard::Shard;
use crate::sync;
use crate::time::Mono;
use audit::Audit;
use bootstrap::Bootstrap;
use contradicted::Contradicted;
use create::Planned;
use listing::{Listing, Purpose};
use recognise::Recognition;

/// The room: of one stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ShardSync {
    stream: StreamIx,
    listing: Listing,
    bootstrap: Bootstrap,
    audit: Audit,
    recognition: Recognition,
    contradicted: Contradicted,
    planned: Planned,
}

/// A list of all shards.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    shards: Vec<Shard>,
    /// When it was asked for.
    asked_at: Mono,
    /// When the first of the coherent pages was requested.
    first_page_at: Mono,
    /// Whether all of the list may have been true at the same moment. If not, nothing follows from the list.
    sound: bool,
}

impl Listed {
    pub(super) fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// When it was asked for.
    pub(super) fn asked_at(&self) -> Mono {
        self.asked_at
    }

    /// When the first of the coherent pages was requested.
    pub(super) fn first_page_at(&self) -> Mono {
        self.first_page_at
    }

    /// Whether all of the list may have been true at the same moment.
    pub(super) fn is_sound(&self) -> bool {
        self.sound
    }
}

impl ShardSync {
    pub(super) fn new(stream: StreamIx) -> Self {
        Self {
            stream,
            listing: Listing::new(stream),
            bootstrap: Bootstrap::default(),
            audit: Audit::default(),
            recognition: Recognition::new(stream),
            contradicted: Contradicted::new(stream),
            planned: Planned::default(),
        }
    }

    /// The stream is read again, after it was read no more, and perhaps from elsewhere: nothing that was found out before counts.
    pub(super) fn begin_anew(&mut self) {
        self.listing.give_up();
        let listing = self.listing.clone();
        *self = Self { listing, ..Self::new(self.stream) };
    }

    /// Lists all shards, unless a listing runs. Hash keys from a single answer are requested again only after a while.
    pub(super) fn list(&mut self, cx: &mut Context, why: ListReason) {
        if why == ListReason::RangeUnproven && self.has_just_listed(cx) {
            return;
        }
        self.listing.begin(cx, Purpose::Repair, why);
    }

    /// Whether the last listing ended less than a poll pause ago: a new listing would show the same shards.
    pub(super) fn has_just_listed(&self, cx: &Context) -> bool {
        self.audit.listed_at() > Mono::default() && cx.now() < self.audit.listed_at() + cx.poll_pause()
    }

    /// Whether the shards are being listed.
    pub(super) fn is_listing(&self) -> bool {
        self.listing.purpose().is_some()
    }

    pub(super) fn step(&mut self, cx: &mut Context) {
        if cx.now() >= self.second_look_at() {
            let why = match cx.now() >= self.recognition.look_at() {
                true => None,
                false => self.contradicted.looks_again(),
            };
            self.recognition.looks_again();
            self.list(cx, why.unwrap_or(ListReason::TableWasThere));
        }
        self.listing.step(cx);
    }

    pub(super) fn wake_at(&self) -> Mono {
        self.listing.wake_at().min(self.second_look_at())
    }

    /// When another listing must follow a listing that contradicted the leases.
    fn second_look_at(&self) -> Mono {
        match self.is_listing() {
            true => Mono::NEVER,
            false => self.recognition.look_at().min(self.contradicted.look_at()),
        }
    }

    /// A page of a listing came, or did not. Returns a list of all shards when it is whole.
    pub(super) fn on_page(
        &mut self, cx: &mut Context, leases: &LeaseTable, op: OpId, outcome: Outcome,
    ) -> Option<Listed> {
        let (purpose, listed) = self.listing.on_page(cx, op, outcome)?;
        match purpose {
            Purpose::Repair => Some(self.checked(cx, listed)),
            Purpose::Fill => {
                self.audit.listed(cx.now());
                self.fill(cx, leases, listed);
                None
            }
        }
    }

    /// A list that contradicts itself is begun anew.
    fn checked(&mut self, cx: &mut Context, mut listed: Listed) -> Listed {
        match sync::Lineage::new(&listed.shards).check_all() {
            Ok(()) => self.audit.listed(cx.now()),
            Err(error) => {
                self.listing.is_bad(cx, &error);
                listed.sound = false;
            }
        }
        listed
    }

    /// Takes note, at the first whole scan, of leases with another beginning than the configured position.
    pub(super) fn on_first_scan(&mut self, cx: &Context, leases: &LeaseTable) {
        self.recognition.count_begun_elsewhere(cx, leases);
    }

    /// Whether the leases are of the stream of these shards. If not, the listing ends here.
    pub(super) fn recognises(&mut self, cx: &mut Context, leases: &mut LeaseTable, listed: &Listed) -> bool {
        let recognised = self.recognition.judge(cx, leases, listed);
        if !recognised {
            self.listing.end();
        }
        recognised
    }

    /// Says which rows contradict the shards of their names.
    pub(super) fn tell_spoiled(&mut self, cx: &mut Context, leases: &LeaseTable) {
        self.recognition.tell_spoiled(cx, leases);
    }

    /// Compares all rows with a list of all shards.
    pub(super) fn compare(&mut self, cx: &mut Context, leases: &mut LeaseTable, listed: &Listed) {
        self.contradicted.judge(cx, leases, &listed.shards, listed.first_page_at);
    }
}
