//! Every table format in the same scenes, and one format made up here: a format needs only a codec and a choice of
//! policies.

use crate::rig::*;
use leasehold_engine::format::{Format, LeaseFormat};
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::output::{Effect, TableOp};
use leasehold_engine::policy::{Assign, Finished, Life, Lineage, Policies, Steal};
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::row::{Change, Guard, LeaseRow, RowRead};
use leasehold_engine::table::{Action, AttributeValue, Condition, Item, ItemWrite, Update};
use leasehold_engine::time::Mono;

/// Rows of four attributes: `shard`, `who`, `seen` (the time of the last write) and `done`.
struct Toy;

fn is(name: &'static str, value: AttributeValue) -> Condition {
    Condition::Equals(name.into(), value)
}

fn held(guard: &Guard) -> Condition {
    let seen = is("seen", AttributeValue::n(guard.counter));
    Condition::All(vec![seen, is("who", AttributeValue::s(guard.holder.clone()))])
}

fn text(checkpoint: Checkpoint) -> AttributeValue {
    AttributeValue::s(checkpoint.to_string())
}

fn never() -> Condition {
    Condition::All(vec![Condition::Exists("shard".into()), Condition::NotExists("shard".into())])
}

impl LeaseFormat for Toy {
    fn key_name(&self) -> &'static str {
        "shard"
    }

    fn policies(&self) -> Policies {
        let mut policies = Policies::default();
        policies.life = Life::Stamp;
        policies.lineage = Lineage::Listed;
        policies.steal = Steal::Take;
        policies.finished = Finished::WhenForgotten;
        policies.assign = Assign::Count;
        policies
    }

    fn key(&self, key: &LeaseKey) -> Item {
        Item::from([("shard".into(), AttributeValue::s(key.clone()))])
    }

    fn decode(&self, item: &Item) -> RowRead {
        let text = |name: &str| item.get(name).and_then(AttributeValue::as_s);
        let key = LeaseKey::from(text("shard").unwrap_or_default());
        let checkpoint = match text("done") {
            Some("TRIM_HORIZON") => Some(Checkpoint::TrimHorizon),
            Some("SHARD_END") => Some(Checkpoint::ShardEnd),
            Some(sequence) => sequence.parse().ok().map(|sequence| Checkpoint::At(Position::of(sequence))),
            None => None,
        };
        let seen = item.get("seen").and_then(AttributeValue::as_n);
        match (checkpoint, seen.and_then(|seen| seen.parse().ok())) {
            (Some(checkpoint), Some(counter)) => RowRead::Lease(LeaseRow {
                owner: text("who").map(Into::into),
                counter,
                ..LeaseRow::new(key, checkpoint)
            }),
            _ => RowRead::Unreadable { key, detail: "done, seen: expected a checkpoint and a number".into() },
        }
    }

    fn encode(&self, change: &Change) -> ItemWrite {
        let seen = |number: u64| Update::default().set("seen", AttributeValue::n(number));
        let (condition, action) = match change {
            Change::Create(row) => {
                let mut item = self.key(&row.key);
                item.insert("seen".into(), AttributeValue::n(row.counter));
                item.insert("done".into(), text(row.checkpoint));
                if let Some(owner) = &row.owner {
                    item.insert("who".into(), AttributeValue::s(owner.clone()));
                }
                (Condition::NotExists("shard".into()), Action::Put(item))
            }
            Change::Take { counter, next, from, to, .. } => {
                let who = match from {
                    Some(from) => is("who", AttributeValue::s(from.clone())),
                    None => Condition::NotExists("who".into()),
                };
                let update = seen(*next).set("who", AttributeValue::s(to.clone()));
                let as_read = is("seen", AttributeValue::n(counter));
                (Condition::All(vec![as_read, who]), Action::Update(update))
            }
            Change::Renew { guard, .. } => (held(guard), Action::Update(seen(guard.next))),
            Change::Checkpoint { guard, position, .. } => {
                let done = text(Checkpoint::At(*position));
                (held(guard), Action::Update(seen(guard.next).set("done", done)))
            }
            Change::End { guard, .. } => {
                let update = seen(guard.next).set("done", text(Checkpoint::ShardEnd));
                (held(guard), Action::Update(update.remove("who")))
            }
            Change::Release { guard, .. } | Change::HandOver { guard, .. } => {
                (held(guard), Action::Update(seen(guard.next).remove("who")))
            }
            Change::Reset { counter, next, checkpoint, to, .. } => {
                let as_read = vec![is("seen", AttributeValue::n(counter)), is("done", text(*checkpoint))];
                let update = seen(*next).set("done", text(*to)).remove("who");
                (Condition::All(as_read), Action::Update(update))
            }
            Change::Delete { counter, .. } => (is("seen", AttributeValue::n(counter)), Action::Delete),
            // No worker is asked for a lease here, rows hold no ranges and name no stream, and the table is of one stream.
            Change::Claim { .. }
            | Change::Assign { .. }
            | Change::Offer { .. }
            | Change::SetRange { .. }
            | Change::Name(_)
            | Change::Weigh { .. }
            | Change::Forget { .. } => (never(), Action::Update(Update::default())),
        };
        ItemWrite { key: self.key(change.key()), condition, action }
    }
}

fn formats() -> Vec<&'static dyn LeaseFormat> {
    let known = Format::ALL.iter().map(|kind| kind.codec() as &'static dyn LeaseFormat);
    known.chain([&Toy as &'static dyn LeaseFormat]).collect()
}

#[test]
fn shares_become_even_and_everything_is_read() {
    for format in formats() {
        let mut rig = Rig::with_format(format, 6, 1).with_records(0..6, 50).after(60);
        assert_eq!(rig.owner(5), Some(0), "{}", format.key_name());
        rig.join_all(2);
        rig.secs(400);
        let counts = [0, 1, 2].map(|worker| rig.owned(worker, 6));
        assert_eq!(counts, [2, 2, 2], "{}", format.key_name());
        rig.assert_all_processed();
    }
}

#[test]
fn children_wait_for_their_parents_and_survive_a_crash() {
    for format in formats() {
        let mut rig = Rig::with_format(format, 2, 2).with_records([0], 30).after(60);
        let (left, right) = rig.split(0);
        let merged = rig.merge(right, 1);
        rig.put_all([left, merged], 20);
        rig[0].die();
        rig.assert_all_processed_in(200);
        for shard in [0, 1, right] {
            assert!(rig.row(shard).checkpoint.is_end(), "{} {shard}", format.key_name());
        }
        for shard in [left, merged] {
            assert_eq!(rig.owner(shard), Some(1), "{}", format.key_name());
        }
    }
}

#[test]
fn the_rows_of_forgotten_shards_go_and_no_others() {
    for format in formats() {
        let mut rig = Rig::with_format(format, 1, 1).with_records([0], 5).after(30);
        let (left, right) = rig.split(0);
        rig.put_all([left, right], 5);
        rig.secs(60);
        assert!(rig.row(0).checkpoint.is_end());
        if format.policies().finished != Finished::WhenRead {
            rig.secs(1_500);
            assert!(rig.has_row(0), "{}: its shard is still listed", format.key_name());
            rig.stream.shards.remove(&shard_id(0));
        }
        rig.secs(1_500);
        let stays = format.policies().finished == Finished::Never;
        assert_eq!(rig.has_row(0), stays, "{}", format.key_name());
        assert!(rig.has_row(left), "{}", format.key_name());
    }
}

/// A lease given up by its owner counts as expired a lease duration later, and a scan may take longer than this.
#[test]
fn a_claimed_lease_is_taken_without_a_scan() {
    for lost_answer in [false, true] {
        let mut rig = Rig::with_format(Format::VmwareGoKcl.codec(), 2, 1).after(60);
        assert_eq!(rig.owner(0), rig.owner(1));
        let mut claimed = false;
        let never_scans_again = move |effect: &Effect| match effect {
            Effect::Table(TableOp::Write(Change::Claim { .. })) if !claimed => {
                claimed = true;
                lost_answer.then_some(Trick::ANSWER_LOST)
            }
            Effect::Table(TableOp::Scan { .. }) if claimed => Some(Trick::Hang),
            _ => None,
        };
        rig.join_trapped(never_scans_again);
        while rig[1].told(CLAIMED) == 0 {
            rig.secs(1);
            assert!(rig.now < Mono(600_000_000), "no lease is claimed");
        }
        // The owner looks at its row at each renewal, and so do we.
        rig.run(rig.config.renew_interval().times(3));
        assert_ne!(rig.owner(0), rig.owner(1), "answer lost: {lost_answer}");
        assert_eq!(rig[1].told(CLAIMED), 1, "answer lost: {lost_answer}");
        rig.put(0, 5);
        rig.put(1, 5);
        rig.assert_all_processed_in(15);
    }
}

/// An owner that is dead answers no claim: the row is looked at for two lease durations, and then left to the scans.
#[test]
fn a_claim_that_nobody_answers_is_not_looked_at_for_ever() {
    let mut rig = Rig::with_format(Format::VmwareGoKcl.codec(), 2, 0);
    let theirs = |rig: &mut Rig| {
        for row in rig.rows_mut().values_mut() {
            if row.handing_over.is_none() {
                row.owner = Some("theirs".into());
            }
            row.counter += 1;
        }
    };
    [0, 1].into_iter().for_each(|n| rig.insert(bare(n)));
    theirs(&mut rig);
    rig.join();
    for _ in 0..300 {
        rig.secs(1);
        theirs(&mut rig);
    }
    assert_eq!(rig[0].sent(CLAIM), 1);
    let looks = rig[0].sent(READ) as u64;
    let config = &rig.config;
    let most = config.lease_duration().times(4).0 / config.renew_interval().0 + 1;
    assert!((1..=most).contains(&looks), "{looks} of {most}");
}
