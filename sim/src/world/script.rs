//! What operators, producers and fate do at set times.

use super::World;
use super::heap::What;
use super::table::wall_ms;
use crate::faults::{
    InterruptionKind, LossKind, PermanentLoss, Reshard, ReshardKind, RowEdit, RowEditKind, Trim,
};
use crate::names::shard_of;
use crate::oracles::fact::{Owner, Verb};
use crate::oracles::{Fact, ShardNo, Time};
use leasehold_engine::ids::{LeaseKey, WorkerId};
use leasehold_engine::row::Change;
use leasehold_engine::table::{AttributeValue, Item};
use leasehold_local_aws::kinesis::ShardIndex;
use std::sync::Arc;

/// One thing that is done at a set time.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    Interrupt(usize, InterruptionKind),
    StepWall { worker: usize, by_ms: i64, freeze: bool },
    Reshard(Reshard),
    Edit(RowEdit),
    Trim(Trim),
    PermanentLoss(PermanentLoss),
    Heal,
}

const SPLIT: u8 = 0;
const SPLIT_TWICE: u8 = 1;
const MERGE: u8 = 2;
const GROW: u8 = 3;
const SHRINK: u8 = 4;

/// An unknown attribute that must survive.
const ATTRIBUTE: &str = "operatorNote";

/// What guards the rows of the formats there are.
const GUARDS: [&str; 5] = [
    "leaseCounter",
    "LeaseTimeout",
    "lease_timeout",
    "leasehold_deadline",
    "LastUpdate",
];

impl World {
    pub(super) fn plan_script(&mut self) {
        let faults = &self.cx.plan().faults;
        let mut script: Vec<(Time, Entry)> = Vec::new();
        script.extend(
            faults
                .process
                .interruptions
                .iter()
                .map(|i| (i.at, Entry::Interrupt(i.worker as usize, i.kind))),
        );
        let upgrades = faults.upgrade.turns.iter();
        script.extend(upgrades.map(|turn| {
            let kind = InterruptionKind::Replace { gap_us: turn.gap_us };
            (turn.at, Entry::Interrupt(turn.worker as usize, kind))
        }));
        script.extend(faults.clock.steps.iter().map(|step| {
            (
                step.at,
                Entry::StepWall {
                    worker: step.worker as usize,
                    by_ms: step.by_ms,
                    freeze: step.freeze,
                },
            )
        }));
        script.extend(
            faults
                .stream
                .reshards
                .iter()
                .map(|reshard| (reshard.at, Entry::Reshard(reshard.clone()))),
        );
        script.extend(
            faults
                .table
                .edits
                .iter()
                .map(|edit| (edit.at, Entry::Edit(edit.clone()))),
        );
        script.extend(
            faults
                .stream
                .trims
                .iter()
                .map(|trim| (trim.at, Entry::Trim(trim.clone()))),
        );
        let loss = faults.permanent_loss.iter();
        script.extend(
            loss.filter(|loss| loss.kind != LossKind::TableOfAnother)
                .map(|loss| (loss.at, Entry::PermanentLoss(loss.clone()))),
        );
        script.push((self.cx.plan().fault_us, Entry::Heal));
        for (entry, (at, _)) in script.iter().enumerate() {
            self.cx.push(*at, What::Script { entry: entry as u32 });
        }
        self.script = script;
    }

    pub(super) fn perform(&mut self, entry: u32) {
        let Some((_, entry)) = self.script.get(entry as usize) else {
            return;
        };
        match entry.clone() {
            Entry::Interrupt(worker, kind) => match kind {
                InterruptionKind::Crash { down_us, loops } => {
                    self.cx
                        .fault(if loops > 0 { "crash-loop" } else { "crash" }, Some(worker), None);
                    self.crash(worker, down_us, loops);
                }
                InterruptionKind::Pause { us } => {
                    self.cx.fault("pause", Some(worker), None);
                    self.pause(worker, us);
                }
                InterruptionKind::Replace { gap_us } => self.ask_to_stop(worker, gap_us),
            },
            Entry::StepWall {
                worker,
                by_ms,
                freeze,
            } => {
                self.cx.fault(
                    if freeze { "wall-freeze" } else { "wall-step" },
                    Some(worker),
                    None,
                );
                let now = self.cx.now();
                self.workers[worker].clock.step(now, by_ms, freeze);
            }
            Entry::Reshard(reshard) => {
                let kind = match reshard.kind {
                    ReshardKind::Split => SPLIT,
                    ReshardKind::SplitTwice => SPLIT_TWICE,
                    ReshardKind::Merge => MERGE,
                    ReshardKind::Mass { grow: true } => GROW,
                    ReshardKind::Mass { grow: false } => SHRINK,
                };
                self.reshard(kind, u64::from(reshard.pick), 0);
            }
            Entry::Edit(edit) => self.edit(&edit),
            Entry::Trim(trim) => self.trim(&trim),
            Entry::PermanentLoss(loss) => self.lose(loss.kind, loss.pick),
            Entry::Heal => self.heal(),
        }
    }

    /// Changes the shards, or tries again when the stream is not busy any more.
    pub(super) fn reshard(&mut self, kind: u8, pick: u64, tries: u8) {
        if self.cx.is_healed() || self.cx.is_lost_for_good() {
            return;
        }
        let now_ms = wall_ms(self.cx.now());
        self.source.kinesis.advance(now_ms);
        self.observe_stream();
        let Some(stream) = self.source.truth() else { return };
        let mut open: Vec<(u128, u128, ShardIndex)> = stream
            .shards()
            .filter(|shard| shard.is_open())
            .map(|shard| (shard.hash_range().start, shard.hash_range().end, shard.index()))
            .collect();
        open.sort_unstable();
        let index = (pick % open.len().max(1) as u64) as usize;
        let Some(&(start, end, shard)) = open.get(index) else {
            return;
        };
        let (id, count) = (self.source.id, open.len() as u32);
        let (mark, result) = match kind {
            SPLIT | SPLIT_TWICE if count < 400 => {
                let middle = start + (end - start) / 2 + 1;
                (
                    "split",
                    self.source.kinesis.split_shard(now_ms, id, shard, middle),
                )
            }
            MERGE => {
                let Some(&(_, _, right)) = open.get(index + 1) else {
                    return;
                };
                (
                    "merge",
                    self.source.kinesis.merge_shards(now_ms, id, shard, right),
                )
            }
            GROW if count < 200 => (
                "mass-reshard",
                self.source
                    .kinesis
                    .update_shard_count(now_ms, id, count * 2)
                    .map(|_| ()),
            ),
            SHRINK if count > 1 => (
                "mass-reshard",
                self.source
                    .kinesis
                    .update_shard_count(now_ms, id, count.div_ceil(2))
                    .map(|_| ()),
            ),
            _ => return,
        };
        let wait = self.cx.plan().faults.stream.update_ms as u64 * 1_000 + 10_000;
        match result {
            Ok(()) => {
                self.cx.fault(mark, None, None);
                self.cx
                    .line(|| format!("the operator begins a {mark} at {shard}"));
                if kind == SPLIT_TWICE {
                    // One of the two, as soon as there are two.
                    self.cx.mark("split-at-once");
                    self.cx.push(
                        self.cx.now() + wait,
                        What::Reshard {
                            kind: SPLIT,
                            pick: index as u64,
                            tries: 0,
                        },
                    );
                }
                self.plan_stream_change();
                self.observe_stream();
            }
            Err(error) => {
                self.cx.mark("stream-in-use");
                if error.code != "InvalidArgumentException" && tries < 20 {
                    self.cx.push(
                        self.cx.now() + wait,
                        What::Reshard {
                            kind,
                            pick,
                            tries: tries + 1,
                        },
                    );
                }
            }
        }
    }

    /// Looks again at the moment at which a change of the stream takes effect.
    fn plan_stream_change(&mut self) {
        if let Some(due_ms) = self.source.next_change_ms() {
            let at = ((due_ms - wall_ms(0)).max(0) as u64) * 1_000;
            // An entry beyond the end of the script does nothing; every event that touches the stream looks anyway.
            self.cx
                .push(at.max(self.cx.now()), What::Script { entry: u32::MAX });
        }
    }

    /// Tells the oracles what became of the shards.
    pub(super) fn observe_stream(&mut self) {
        // Another stream of the same name is not the one whose records were to be read.
        if let Some(LossKind::StreamDeleted | LossKind::StreamRemade) = self.lost_for_good {
            return;
        }
        let now_ms = wall_ms(self.cx.now());
        let due = self.source.next_change_ms().is_some_and(|due| due <= now_ms);
        if due {
            self.source.kinesis.advance(now_ms);
            self.plan_stream_change();
        }
        let Some(stream) = self.source.truth() else { return };
        if self.shards.len() == stream.shards().len() {
            return;
        }
        let mut facts = Vec::new();
        for shard in stream.shards().skip(self.shards.len()) {
            let mut parents = shard.parents().map(|parent| parent.0);
            let parents = [parents.next(), parents.next()];
            self.shards.push(super::Family {
                parents,
                closed: false,
            });
            facts.push(Fact::ShardBorn {
                shard: shard.index().0,
                parents,
            });
        }
        for (shard, known) in stream.shards().zip(&mut self.shards) {
            if !shard.is_open() && !known.closed {
                known.closed = true;
                let children = shard.children().iter().map(|child| child.0).collect();
                facts.push(Fact::ShardClosed {
                    shard: shard.index().0,
                    records: shard.next_position() - 1,
                    children,
                });
            }
        }
        for fact in facts {
            self.cx.fact(fact);
        }
    }

    pub(super) fn produce(&mut self) {
        if self.cx.is_healed() {
            return;
        }
        self.observe_stream();
        for _ in 0..self.cx.plan().load.burst {
            self.put_at(wall_ms(self.cx.now()));
        }
        self.cx
            .push(self.cx.now() + self.cx.plan().load.every_us, What::Produce);
    }

    pub(super) fn put_at(&mut self, at_ms: i64) {
        self.puts += 1;
        let mut roll = self.cx.draws().roll("put", self.puts);
        let hash_key = u128::from(roll.bits()) << 64 | u128::from(roll.bits());
        if !self.source.put(at_ms, hash_key) {
            self.cx.mark("put-refused");
        }
    }

    /// The service forgets what is old.
    fn trim(&mut self, trim: &Trim) {
        self.observe_stream();
        if self.cx.is_lost_for_good() {
            return;
        }
        // Whatever listings still show open, or lack, is younger.
        let keep_us = trim.keep.max(self.cx.plan().config.scan_interval().0);
        let before_ms = wall_ms(self.cx.now()) - (keep_us / 1_000) as i64;
        self.source.trim(before_ms);
        self.cx.fault("trim", None, None);
        self.cx
            .line(|| format!("what is older than {} ms is forgotten", keep_us / 1_000));
        for shard in 0..self.shards.len() as ShardNo {
            let before = self.source.first(shard);
            if before > self.cx.oracles().processed(shard) + 1 {
                self.cx.mark("trim-unread");
            }
            if before > 1 {
                self.cx.fact(Fact::Trimmed { shard, before });
            }
            if self.source.is_forgotten(shard) {
                self.cx.fact(Fact::Forgotten { shard });
            }
        }
    }

    fn edit(&mut self, edit: &RowEdit) {
        let now = self.cx.now();
        if self.cx.is_lost_for_good() || !self.table.is_usable(now) {
            return;
        }
        let text = |name: &'static str, value: String| (name.into(), AttributeValue::s(value));
        match edit.kind {
            RowEditKind::Foreign => {
                let key = format!("stranger-{}", edit.pick % 1_000);
                let kind = text("entityType", "WORKER_METRIC_STATS".into());
                self.put_stranger(
                    Item::from([text(self.table.format.key_name(), key.clone()), kind]),
                    key,
                    "foreign-row",
                );
            }
            RowEditKind::Unparsable => {
                // No format can read these as what they ought to be.
                let key = format!("broken-{}", edit.pick % 1_000);
                let broken = ["leaseCounter", "LeaseTimeout"].map(|name| text(name, "many".into()));
                let key_attribute = text(self.table.format.key_name(), key.clone());
                self.put_stranger(
                    broken.into_iter().chain([key_attribute]).collect(),
                    key,
                    "unparsable-row",
                );
            }
            RowEditKind::Attribute => {
                if let Some(key) = self.pick_lease(edit.pick.into())
                    && let Some(item) = self.table.item(&key)
                {
                    let mut item = Item::clone(item);
                    item.insert(ATTRIBUTE.into(), AttributeValue::Bool(true));
                    if self.table.put_by_hand(now, &item) {
                        self.cx.fault("unknown-attribute", None, None);
                        self.attributes.push(key);
                    }
                }
            }
            RowEditKind::Unguarded => {
                if let Some(key) = self.pick_lease(edit.pick.into())
                    && let Some(item) = self.table.item(&key)
                {
                    let mut item = Item::clone(item);
                    item.retain(|name, _| !GUARDS.contains(&&**name));
                    if self.table.put_by_hand(now, &item) {
                        self.cx.fault("guard-removed", None, None);
                        self.row_written(&key, None, None);
                    }
                }
            }
            RowEditKind::HandOver => {
                if let Some(shard) = self.pick_lease(edit.pick.into()).as_ref().and_then(shard_of) {
                    self.begin_hand_over(shard, edit.pick >> 16);
                }
            }
            RowEditKind::Delete => {
                if let Some(key) = self.pick_lease(edit.pick.into())
                    && self.table.delete_by_hand(now, &key)
                {
                    self.cx.fault("delete-row", None, None);
                    self.attributes.retain(|known| known != &key);
                    self.row_written(&key, None, None);
                }
            }
        }
    }

    /// A leader as KCL 3 has them names the next owner of a lease; the present one is to see to the rest.
    pub(super) fn begin_hand_over(&mut self, shard: ShardNo, to: u32) {
        let row = self.rows.get(shard as usize).and_then(|lease| lease.row.as_ref());
        let row = row.filter(|row| row.handing_over.is_none() && !row.checkpoint.is_end());
        let Some((key, old, counter, checkpoint)) =
            row.and_then(|row| Some((row.key.clone(), row.owner.clone()?, row.counter, row.checkpoint)))
        else {
            return;
        };
        if self.cx.is_healed() {
            return;
        }
        let others: Vec<WorkerId> = self
            .workers
            .iter()
            .filter_map(|worker| worker.engine.as_ref()?.worker().cloned())
            .filter(|name| *name != old)
            .collect();
        // One of so many is somebody who died just then.
        let place = to as usize % (others.len() + 1);
        let next = others.get(place).cloned().unwrap_or_else(|| "late-worker".into());
        let change = Change::Claim {
            key: key.clone(),
            counter,
            from: old,
            checkpoint,
            by: next,
        };
        if self.table.change_by_hand(self.cx.now(), &change) {
            self.cx.fault("hand-over-begun", None, None);
            self.row_written(&key, Some(Verb::BeginHandOver), None);
        }
    }

    /// The worker whose present life owns a lease, by its row.
    pub(super) fn owner_of(&self, shard: Option<ShardNo>) -> Option<usize> {
        let row = self.rows.get(shard? as usize)?.row.as_ref()?;
        let owner = self.cx.names().owner(row.actual_owner()?);
        self.workers
            .iter()
            .position(|worker| worker.lives() && owner == Owner::Life(worker.life))
    }

    fn put_stranger(&mut self, item: Item, key: String, mark: &'static str) {
        if self.table.put_by_hand(self.cx.now(), &item) {
            self.cx.fault(mark, None, None);
            let key = LeaseKey::from(key);
            self.strangers.retain(|(known, _)| known != &key);
            self.strangers.push((key, Arc::new(item)));
        }
    }

    fn pick_lease(&mut self, pick: u64) -> Option<LeaseKey> {
        let rows: Vec<ShardNo> = (0..self.rows.len())
            .filter(|&shard| self.rows[shard].row.is_some())
            .map(|shard| shard as ShardNo)
            .collect();
        let shard = *rows.get((pick % rows.len().max(1) as u64) as usize)?;
        Some(self.cx.names_mut().shard(shard).to_lease())
    }

    /// The first item of other people that is not as they left it.
    pub(super) fn harmed(&self) -> Option<&LeaseKey> {
        let strangers = self
            .strangers
            .iter()
            .filter(|(key, item)| self.table.item(key) != Some(item))
            .map(|(key, _)| key);
        let bare = self.attributes.iter().filter(|key| {
            // A row that was removed after its end took its attributes with it.
            self.table
                .item(key)
                .is_some_and(|item| !item.contains_key(ATTRIBUTE))
        });
        strangers.chain(bare).next()
    }
}
