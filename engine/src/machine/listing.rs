//! Listing the stream's shards, and acting on what the list says.

use super::Core;
use super::ctx::{Request, Waiter};
use crate::config::InitialPosition;
use crate::ids::{LeaseKey, OpId};
use crate::input::{Outcome, Reply, Why};
use crate::mutant::Mutant;
use crate::notice::Notice;
use crate::output::{ShardFilter, StreamOp};
use crate::position::Checkpoint;
use crate::row::Change;
use crate::shard::{ChildShard, Shard};
use crate::sync;
use crate::time::{Mono, Span};
use std::collections::BTreeMap;

/// What a listing is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Purpose {
    /// The table is empty: a lease for each shard at the initial position.
    Fill,
    /// Something is missing, or not understood.
    Repair,
}

/// The listing machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Listing {
    purpose: Option<Purpose>,
    in_flight: bool,
    began: Mono,
    /// When the first page of those that are together was asked for.
    pub(crate) first_page_at: Mono,
    /// To fill a table, and complete, but slow: whether the table is still empty must be seen first.
    stale: bool,
    next_at: Mono,
    after: Option<OpId>,
    shards: Vec<Shard>,
    failures: u32,
    /// How often it was begun anew because its pages were too old.
    restarts: u32,
}

/// Pages are kept for no longer than this: a token for the next one lasts five minutes.
const OLDEST_PAGE: Span = Span::from_secs(240);

impl Listing {
    /// Whether nothing is being listed.
    pub(crate) fn is_idle(&self) -> bool {
        self.purpose.is_none()
    }

    pub(crate) fn wake_at(&self) -> Mono {
        if self.purpose.is_some() && !self.in_flight && !self.stale {
            self.next_at
        } else {
            Mono::NEVER
        }
    }
}

impl Core {
    /// Lists the shards to fill an empty table.
    pub(crate) fn list_to_fill(&mut self) {
        self.list(Purpose::Fill, "the lease table is empty");
    }

    /// Lists all shards, to find what is missing.
    pub(crate) fn list_to_repair(&mut self, why: &str) {
        self.list(Purpose::Repair, why);
    }

    fn list(&mut self, purpose: Purpose, why: &str) {
        if self.listing.purpose.is_some() || !self.is_running() {
            return;
        }
        self.ctx.tell(Notice::Listing { why: why.into() });
        self.listing = Listing {
            purpose: Some(purpose),
            began: self.ctx.now,
            first_page_at: self.ctx.now,
            next_at: self.ctx.now,
            ..Listing::default()
        };
        self.listing_step();
    }

    pub(crate) fn listing_step(&mut self) {
        if self.ctx.now < self.listing.wake_at() {
            return;
        }
        let Some(purpose) = self.listing.purpose else {
            return;
        };
        if !self.is_running() {
            self.listing = Listing::default();
            return;
        }
        let filter = match (purpose, self.ctx.config.initial_position) {
            (Purpose::Repair, _) => ShardFilter::All,
            (Purpose::Fill, InitialPosition::TrimHorizon) => ShardFilter::AtTrimHorizon,
            (Purpose::Fill, InitialPosition::Latest) => ShardFilter::AtLatest,
            (Purpose::Fill, InitialPosition::AtTimestamp(at)) => ShardFilter::AtTimestamp(at),
        };
        self.ctx.stream(
            Waiter::List,
            StreamOp::ListShards {
                filter,
                after: self.listing.after,
            },
        );
        self.listing.in_flight = true;
    }

    pub(crate) fn listing_done(&mut self, op: OpId, outcome: Outcome) {
        self.listing.in_flight = false;
        let page = match outcome {
            Outcome::Applied(Reply::Shards(page)) => page,
            other => return self.list_again(op, &other),
        };
        self.listing.shards.extend(page.shards);
        if page.more && !self.ctx.planted.is(Mutant::FirstListingPageOnly) {
            self.listing.after = Some(op);
            self.listing.next_at = self.ctx.now;
            return self.listing_step();
        }
        let shards = std::mem::take(&mut self.listing.shards);
        self.upkeep.listed_at = self.ctx.now;
        let took = self.ctx.now.since(self.listing.began);
        self.ctx.request(Request::StreamListed(took));
        match self.listing.purpose {
            Some(Purpose::Fill) => self.fill(shards),
            Some(Purpose::Repair) => self.repair(&shards),
            None => {}
        }
    }

    /// The same page after a pause, or, if it was refused or the others are old, all from the beginning.
    fn list_again(&mut self, op: OpId, outcome: &Outcome) {
        if matches!(outcome, Outcome::Refused(refusal) if refusal.why == Why::NotFound) {
            self.listing = Listing::default();
            return self.ctx.request(Request::DoubtStream);
        }
        let now = self.ctx.now;
        let refused = matches!(outcome, Outcome::Refused(_) | Outcome::Applied(_));
        // Pages of one moment are best. But if many workers list a stream of many pages, none may ever get them so fast.
        let patience = self
            .ctx
            .config
            .scan_interval
            .times(1 << self.listing.restarts.min(16));
        let young = now.since(self.listing.first_page_at) < patience.min(OLDEST_PAGE);
        let pause = if !refused && young {
            self.page_pause()
        } else {
            self.listing.restarts += u32::from(!young);
            self.list_pause()
        };
        if self.ctx.planted.is(Mutant::ListingGivesUp) {
            self.listing.next_at = Mono::NEVER;
        }
        let how = super::describe(outcome);
        self.ctx.tell(Notice::Trouble {
            op,
            lease: None,
            what: "list shards".into(),
            how,
            again_in: pause,
        });
    }

    fn page_pause(&mut self) -> Span {
        self.listing.failures += 1;
        let pause = self.ctx.backoff("list", "", self.listing.failures);
        self.listing.next_at = self.ctx.now + pause;
        pause
    }

    fn list_pause(&mut self) -> Span {
        let pause = self.page_pause();
        self.listing.first_page_at = self.ctx.now + pause;
        self.listing.after = None;
        self.listing.shards.clear();
        pause
    }

    fn fill(&mut self, shards: Vec<Shard>) {
        if self.view.iter().any(|(_, lease)| lease.row.is_some()) {
            return self.no_fill();
        }
        // Another worker may have filled the table meanwhile, from a list of other shards.
        if self.ctx.now.since(self.listing.began) > self.ctx.config.table_timeout.per(4) {
            self.listing.shards = shards;
            self.listing.stale = true;
            return self.ctx.request(Request::Rescan(self.ctx.now));
        }
        self.create_planned(&shards, true);
    }

    /// A scan that came after a slow listing shows the table still empty. Whether there was such a listing.
    pub(crate) fn fill_still(&mut self) -> bool {
        let stale = self.listing.stale;
        if stale {
            self.listing.stale = false;
            let shards = std::mem::take(&mut self.listing.shards);
            self.create_planned(&shards, true);
        }
        stale
    }

    /// Somebody was faster; the next scan shows what is still missing.
    pub(crate) fn no_fill(&mut self) {
        if self.listing.purpose == Some(Purpose::Fill) && !self.listing.in_flight {
            self.listing = Listing::default();
        }
    }

    fn repair(&mut self, shards: &[Shard]) {
        let by_id: BTreeMap<&str, &Shard> = shards.iter().map(|shard| (shard.id.as_str(), shard)).collect();
        let known = self.upkeep.recognised;
        if !self.recognise(&by_id) {
            self.listing = Listing::default();
            return;
        }
        self.learn_lineage(shards, self.listing.began);
        let fills = self.needs_listings();
        for ix in self.view.all() {
            let Some(lease) = self.view.get_mut(ix) else {
                continue;
            };
            let shard = by_id.get(lease.key.as_str());
            if let (Some(row), Some(shard)) = (&mut lease.row, shard)
                && row.range.is_none()
                && !fills
            {
                row.range = Some(shard.range);
                let change = Change::SetRange {
                    key: lease.key.clone(),
                    range: shard.range,
                };
                let expires = self.ctx.now + self.ctx.config.lease_duration;
                self.ctx
                    .write_row(change, "the row lacks its hash range".into(), None, expires);
            }
            let missing = self
                .view
                .get(ix)
                .and_then(|lease| lease.tenure.as_ref())
                .is_some_and(|held| held.missing);
            if missing {
                self.resolve_missing(ix, shard.copied(), shards);
            }
        }
        self.create_planned(shards, false);
        self.compare_shared(shards);
        if fills || !known {
            // What could not be taken before, for want of its parents or of knowing the stream, can be now.
            let balance = self.balance();
            self.take_share(&balance);
        }
    }

    /// A shard was not found when it was read. Only the list of the living stream says what that meant: KCL takes it
    /// for the end of the shard, and loses what follows if it was not.
    fn resolve_missing(&mut self, ix: u32, own: Option<&Shard>, shards: &[Shard]) {
        let now = self.ctx.now;
        let held = self.view.get(ix).and_then(|lease| lease.tenure.as_ref());
        if held.is_some_and(|held| !held.heirs.is_empty()) {
            return self.judge_co_parents(ix, own.is_some_and(Shard::is_open), shards);
        }
        let Some(lease) = self.view.get_mut(ix) else {
            return;
        };
        let key = lease.key.clone();
        let Some(tenure) = lease.tenure.as_deref_mut() else {
            return;
        };
        tenure.missing = false;
        let Some(reader) = &mut tenure.reader else { return };
        let children: Vec<ChildShard> = shards
            .iter()
            .filter(|shard| shard.parents().any(|parent| parent.as_str() == key.as_str()))
            .map(|shard| ChildShard {
                id: shard.id.clone(),
                parents: shard.parents().cloned().collect(),
                range: shard.range,
            })
            .collect();
        // A listing that lags may show one of two children, or be older than a shard that was read to its end already. Another
        // one is asked for, a scan interval later, unless several have shown no more: the rest may be forgotten.
        let ended = reader.finished().is_some();
        let doubtful = match children.is_empty() {
            true => ended && own.is_none(),
            false => (ended || own.is_none()) && !sync::shows_all_children(shards, &key.to_shard()),
        };
        if doubtful {
            tenure.verdicts += 1;
            if tenure.verdicts < self.ctx.config.audit_confidence.max(2) {
                tenure.look_at = now + self.ctx.config.scan_interval;
                if reader.finished().is_none() {
                    reader.resume(tenure.look_at);
                }
                return self.view.arm(ix, now);
            }
        }
        tenure.verdicts = 0;
        if reader.finished().is_some() {
            // Its end was read, and only its children were not named. A listed shard may get some yet.
            tenure.childless = own.is_none();
            reader.trimmed(children);
        } else if own.is_some() {
            reader.resume(now);
        } else {
            tenure.childless = true;
            let detail = format!(
                "the shard is not listed any more; {} children follow",
                children.len()
            );
            reader.trimmed(children);
            self.ctx.tell(Notice::Trimmed { lease: key, detail });
        }
        self.view.arm(ix, now);
    }

    /// The leases there are, for planning.
    pub(crate) fn known_leases(&self) -> BTreeMap<LeaseKey, Checkpoint> {
        let mut leases: BTreeMap<_, _> = self
            .view
            .iter()
            .filter_map(|(_, lease)| Some((lease.key.clone(), lease.row.as_ref()?.checkpoint)))
            .collect();
        // An item that cannot be read as a lease holds its key all the same, and may stand for an unfinished one.
        for key in &self.scan.occupied {
            leases.entry(key.clone()).or_insert(Checkpoint::TrimHorizon);
        }
        leases
    }

    fn create_planned(&mut self, shards: &[Shard], empty: bool) {
        let leases = self.known_leases();
        let unreadable = &self.scan.occupied;
        match sync::plan(
            &leases,
            unreadable,
            shards,
            self.ctx.config.initial_position,
            empty,
        ) {
            Ok(mut plan) => {
                self.listing = Listing::default();
                if !empty && self.absence_is_unread() {
                    let initial = self.ctx.config.initial_position;
                    let unread = sync::unread(&leases, unreadable, shards, initial, &plan.create);
                    plan.create.extend(unread);
                }
                // What fills an empty table is of this stream.
                self.upkeep.recognised |= empty;
                let create = plan.create.len() as u32;
                self.ctx.tell(Notice::Planned {
                    create,
                    shards: shards.len() as u32,
                });
                // What fills an empty table is right for one moment only: a worker that lists a little later may see
                // children where we saw their parents. What does not succeed at once is decided anew.
                let patience = if empty {
                    self.ctx.config.table_timeout
                } else {
                    self.ctx.config.lease_duration.times(2)
                };
                let expires = self.ctx.now + patience;
                // A single listing may lag, and show a child without its parent. What is created beside existing leases
                // must have been missing for a scan interval; scans that still show the hole bring further listings.
                // And the view that it is missing from must be of about now: others may have created it, or what is above.
                let now = self.ctx.now;
                let interval = self.ctx.config.scan_interval;
                // A scan under way has passed some keys already.
                let begun = self.scan.number;
                let fresh = self.scan.is_fresh(now, interval);
                let before = std::mem::take(&mut self.upkeep.planned);
                let mut blind = false;
                for planned in plan.create {
                    let start = planned.row.checkpoint;
                    // Planned from elsewhere before, for another reason: that was of another shape of the table.
                    let known = before.get(&planned.row.key).filter(|(.., from)| *from == start);
                    let (first, then) = known.map_or((now, begun), |(first, then, _)| (*first, *then));
                    let seen = fresh && self.scan.complete > then;
                    let old = now.since(first) >= interval;
                    let believed = self.ctx.planted.is(Mutant::BelieveOneListing);
                    let certain = empty || believed || (old && seen);
                    if !certain {
                        blind |= !fresh;
                        self.upkeep
                            .planned
                            .insert(planned.row.key.clone(), (first, then, start));
                        continue;
                    }
                    self.ctx.write_row(
                        Change::Create(Box::new(planned.row)),
                        planned.reason,
                        None,
                        expires,
                    );
                }
                if blind {
                    self.ctx.request(Request::Rescan(now));
                }
            }
            Err(error) => {
                let pause = self.list_pause();
                self.ctx.tell(Notice::BadListing {
                    detail: format!("{error}; trying again in {pause}"),
                });
            }
        }
    }
}
