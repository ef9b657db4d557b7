//! Keeping the lease table in step with the shards of the stream.
//!
//! | file | what |
//! |---|---|
//! | `listing` | listing the shards, page by page |
//! | `bootstrap` | filling an empty table |
//! | `audit` | looking for what has no lease, after a whole scan, so that the shards are listed |
//! | `recognise` | whether the leases are of this stream |
//! | `create` | which leases a list of all shards lets us create, and when that is certain |
//! | `clean_up` | removing finished leases |

mod audit;
mod bootstrap;
mod clean_up;
mod create;
mod listing;
mod recognise;
#[cfg(test)]
mod tests;

use super::context::Context;
use super::lease_table::LeaseTable;
use super::stream_set::StreamIx;
use crate::ids::OpId;
use crate::input::Outcome;
use crate::notice::ListReason;
use crate::row::Change;
use crate::shard::Shard;
use crate::sync;
use crate::time::Mono;
use audit::Audit;
use bootstrap::Bootstrap;
use create::Planned;
use listing::{Listing, Purpose};
use recognise::Recognition;
use std::collections::BTreeMap;

/// The room: of one stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ShardSync {
    stream: StreamIx,
    listing: Listing,
    bootstrap: Bootstrap,
    audit: Audit,
    recognition: Recognition,
    planned: Planned,
}

/// A list of all shards.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    shards: Vec<Shard>,
    /// When it was asked for.
    asked_at: Mono,
    /// When the first page of those that are together was asked for.
    first_page_at: Mono,
    /// It may have been so at one moment. If not, nothing follows from it.
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

    /// When the first page of those that are together was asked for.
    pub(super) fn first_page_at(&self) -> Mono {
        self.first_page_at
    }

    /// Whether all of this may have been so at one moment.
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
            planned: Planned::default(),
        }
    }

    /// The stream is read again, after it was read no more, and perhaps from elsewhere: nothing that was found out before counts.
    pub(super) fn begin_anew(&mut self) {
        self.listing.give_up();
        let listing = self.listing.clone();
        *self = Self {
            listing,
            ..Self::new(self.stream)
        };
    }

    /// Lists all shards, unless they are being listed.
    pub(super) fn list(&mut self, cx: &mut Context, why: ListReason) {
        self.listing.begin(cx, Purpose::Repair, why);
    }

    /// Whether the shards are being listed.
    pub(super) fn is_listing(&self) -> bool {
        self.listing.purpose().is_some()
    }

    pub(super) fn step(&mut self, cx: &mut Context) {
        if cx.now() >= self.second_look_at() {
            self.recognition.looks_again();
            self.listing.begin(cx, Purpose::Repair, ListReason::TableWasThere);
        }
        self.listing.step(cx);
    }

    pub(super) fn wake_at(&self) -> Mono {
        self.listing.wake_at().min(self.second_look_at())
    }

    /// When a listing that contradicted the leases is to be followed by another one.
    fn second_look_at(&self) -> Mono {
        match self.is_listing() {
            true => Mono::NEVER,
            false => self.recognition.look_at(),
        }
    }

    /// A page of a listing came, or did not. Returns a list of all shards when it is whole.
    pub(super) fn on_page(
        &mut self,
        cx: &mut Context,
        leases: &LeaseTable,
        op: OpId,
        outcome: Outcome,
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

    /// What the first whole scan tells of leases that begin elsewhere than the configuration says.
    pub(super) fn on_first_scan(&mut self, cx: &Context, leases: &LeaseTable) {
        self.recognition.count_begun_elsewhere(cx, leases);
    }

    /// Whether the leases are of the stream whose shards these are. If not, nothing more is done with them.
    pub(super) fn recognises(&mut self, cx: &mut Context, leases: &LeaseTable, listed: &Listed) -> bool {
        let recognised = self.recognition.judge(cx, leases, listed);
        if !recognised {
            self.listing.end();
        }
        recognised
    }

    /// Fills in the ranges that rows lack, where rows hold them.
    pub(super) fn fill_ranges(&self, cx: &mut Context, leases: &mut LeaseTable, shards: &[Shard]) {
        if cx.needs_listings() {
            return;
        }
        let by_id: BTreeMap<&str, &Shard> = shards.iter().map(|shard| (shard.id.as_str(), shard)).collect();
        for ix in leases.all() {
            let Some(row) = leases.get(ix).and_then(|lease| lease.row()) else {
                continue;
            };
            let shard = by_id.get(row.key.as_str());
            let Some(shard) = shard.filter(|_| row.range.is_none()) else {
                continue;
            };
            let (key, range) = (row.key.clone(), shard.range);
            leases.set_range(ix, range);
            let expires = cx.now() + cx.config().lease_duration;
            let change = Change::SetRange { key, range };
            cx.write_row(change, "the row lacks its hash range".into(), None, expires);
        }
    }
}
