//! Every table format in the same scenes, and one format made up here: a format needs only a codec and a choice of
//! policies.

use crate::rig::{Rig, Trick, refused};
use leasehold_engine::format::{Format, LeaseFormat};
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::input::{Cause, Outcome, Why};
use leasehold_engine::notice::Notice;
use leasehold_engine::output::{Effect, TableOp};
use leasehold_engine::policy::{Assign, Finished, Life, Lineage, Policies, Steal};
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::row::{Change, Guard, LeaseRow, RowRead};
use leasehold_engine::table::{Action, AttributeValue, Condition, Item, ItemWrite, Update};
use leasehold_engine::time::{Mono, Span};
use std::collections::BTreeMap;

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
        let mut rig = Rig::with_format(format, 6, 1);
        for shard in 0..6 {
            rig.put(shard, 50);
        }
        rig.secs(60);
        assert_eq!(rig.owner(5), Some(0), "{}", format.key_name());
        for _ in 0..2 {
            rig.join();
        }
        rig.secs(400);
        let mut counts = [0; 3];
        for shard in 0..6 {
            counts[rig.owner(shard).unwrap()] += 1;
        }
        assert_eq!(counts, [2, 2, 2], "{}", format.key_name());
        rig.assert_all_processed();
    }
}

#[test]
fn children_wait_for_their_parents_and_survive_a_crash() {
    for format in formats() {
        let mut rig = Rig::with_format(format, 2, 2);
        rig.put(0, 30);
        rig.secs(60);
        let (left, right) = rig.split(0);
        let merged = rig.merge(right, 1);
        for shard in [left, merged] {
            rig.put(shard, 20);
        }
        rig.workers[0].alive = false;
        rig.secs(200);
        rig.assert_all_processed();
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
        let mut rig = Rig::with_format(format, 1, 1);
        rig.put(0, 5);
        rig.secs(30);
        let (left, right) = rig.split(0);
        for child in [left, right] {
            rig.put(child, 5);
        }
        rig.secs(60);
        assert!(rig.row(0).checkpoint.is_end());
        if format.policies().finished != Finished::WhenRead {
            rig.secs(1_500);
            assert!(rig.has_row(0), "{}: its shard is still listed", format.key_name());
            rig.stream.shards.remove(&Rig::id(0));
        }
        rig.secs(1_500);
        let stays = format.policies().finished == Finished::Never;
        assert_eq!(rig.has_row(0), stays, "{}", format.key_name());
        assert!(rig.has_row(left), "{}", format.key_name());
    }
}

/// Its owner may renew a lease during every scan; a slowly reading worker would never get its share.
#[test]
fn a_claim_follows_the_row_whether_or_not_the_refusal_shows_it() {
    for shown in [true, false] {
        let mut rig = Rig::with_format(Format::VmwareGoKcl.codec(), 2, 1);
        rig.secs(60);
        assert_eq!(rig.owner(0), rig.owner(1));
        let (rows, mut refusals) = (rig.table.rows.clone().unwrap_or_default(), 2);
        let renewed_meanwhile = move |effect: &Effect| {
            let Effect::Table(TableOp::Write(change @ Change::Claim { .. })) = effect else {
                return None;
            };
            refusals -= 1;
            let row = shown.then(|| rows.get(change.key()).cloned()).flatten();
            (refusals >= 0).then(|| Trick::Instead(refused(Why::ConditionFailed, row)))
        };
        rig.join_trapped(Some(Box::new(renewed_meanwhile)));
        rig.secs(25);
        let claimed = |told: &(Mono, Notice)| matches!(told.1, Notice::Claimed { .. });
        let claims = rig.workers[1].notices.iter().filter(|told| claimed(told));
        assert_eq!(claims.count(), 1, "shown: {shown}");
        rig.secs(60);
        assert_ne!(rig.owner(0), rig.owner(1), "shown: {shown}");
    }
}

/// A lease given up by its owner counts as expired a lease duration later, and a scan may take longer than this.
#[test]
fn a_claimed_lease_is_taken_without_a_scan() {
    for lost_answer in [false, true] {
        let mut rig = Rig::with_format(Format::VmwareGoKcl.codec(), 2, 1);
        rig.secs(60);
        assert_eq!(rig.owner(0), rig.owner(1));
        let mut claimed = false;
        let never_scans_again = move |effect: &Effect| match effect {
            Effect::Table(TableOp::Write(Change::Claim { .. })) if !claimed => {
                claimed = true;
                lost_answer.then_some(Trick::AppliedBut(Outcome::Unknown(Cause::Timeout)))
            }
            Effect::Table(TableOp::Scan { .. }) if claimed => Some(Trick::Hang),
            _ => None,
        };
        rig.join_trapped(Some(Box::new(never_scans_again)));
        let told = |rig: &Rig| {
            let claims = |told: &&(Mono, Notice)| matches!(told.1, Notice::Claimed { .. });
            rig.workers[1].notices.iter().filter(claims).count()
        };
        for _ in 0..60 {
            rig.secs(1);
            if told(&rig) > 0 {
                break;
            }
        }
        // The owner looks at its row at each renewal, and so do we.
        rig.run(rig.config.renew_interval().times(3));
        assert_ne!(rig.owner(0), rig.owner(1), "answer lost: {lost_answer}");
        assert_eq!(told(&rig), 1, "answer lost: {lost_answer}");
        rig.put(0, 5);
        rig.put(1, 5);
        rig.secs(15);
        rig.assert_all_processed();
    }
}

/// An owner that is dead answers no claim: the row is looked at for two lease durations, and then left to the scans.
#[test]
fn a_claim_that_nobody_answers_is_not_looked_at_for_ever() {
    let mut rig = Rig::with_format(Format::VmwareGoKcl.codec(), 2, 0);
    let theirs = |rig: &mut Rig| {
        for n in 0..2 {
            let key = LeaseKey::from(Rig::id(n).as_str());
            let table = rig.table.rows.get_or_insert_default();
            let row = table.entry(key.clone()).or_insert_with(|| LeaseRow::new(key, Checkpoint::TrimHorizon));
            if row.handing_over.is_none() {
                row.owner = Some("theirs".into());
            }
            row.counter += 1;
        }
    };
    theirs(&mut rig);
    rig.join();
    for _ in 0..300 {
        rig.secs(1);
        theirs(&mut rig);
    }
    let sent = |wanted: fn(&TableOp) -> bool| {
        let of_table = |(_, effect): &&(Mono, Effect)| matches!(effect, Effect::Table(op) if wanted(op));
        rig.workers[0].sent.iter().filter(of_table).count() as u64
    };
    assert_eq!(sent(|op| matches!(op, TableOp::Write(Change::Claim { .. }))), 1);
    let looks = sent(|op| matches!(op, TableOp::Read { .. }));
    let config = &rig.config;
    let most = config.lease_duration().times(4).0 / config.renew_interval().0 + 1;
    assert!((1..=most).contains(&looks), "{looks} of {most}");
}

/// Other programs may write a row back from an earlier read, and so wipe a claim.
#[test]
fn a_claim_that_does_not_last_is_repeated_ever_more_seldom() {
    let mut rig = Rig::with_format(Format::VmwareGoKcl.codec(), 4, 0);
    let theirs = |rig: &mut Rig| {
        for n in 0..4 {
            let key = LeaseKey::from(Rig::id(n).as_str());
            let table = rig.table.rows.get_or_insert_default();
            let row = table.entry(key.clone()).or_insert_with(|| LeaseRow::new(key, Checkpoint::TrimHorizon));
            (row.owner, row.handing_over) = (Some("theirs".into()), None);
            row.counter += 1;
        }
    };
    theirs(&mut rig);
    rig.join();
    let claims = |rig: &Rig, since: usize| {
        let sent = rig.workers[0].sent[since..].iter();
        sent.filter(|(_, effect)| matches!(effect, Effect::Table(TableOp::Write(Change::Claim { .. }))))
            .count()
    };
    let mut counts = Vec::new();
    for _ in 0..4 {
        let since = rig.workers[0].sent.len();
        for _ in 0..1_000 {
            rig.secs(1);
            theirs(&mut rig);
        }
        counts.push(claims(&rig, since));
    }
    // Four leases, each asked for once in 32 scans of 20 s at the end.
    assert!(counts[0] >= 12, "{counts:?}");
    assert!((4..=8).contains(&counts[3]), "{counts:?}");
    // Whatever the lease: the pause is a scan interval, and then doubles each time, up to 32 scan intervals.
    let scan = rig.config.scan_interval();
    let (mut asked, mut soonest) = (BTreeMap::new(), Span::from_secs(3_600));
    for (at, effect) in &rig.workers[0].sent {
        if let Effect::Table(TableOp::Write(change @ Change::Claim { .. })) = effect {
            asked.entry(change.key().clone()).or_insert_with(Vec::new).push(*at);
        }
    }
    for (key, times) in asked {
        let pauses: Vec<Span> = times.windows(2).map(|two| two[1].since(two[0])).collect();
        assert!(pauses.len() > 6, "{key}: {pauses:?}");
        for (nth, pause) in pauses.iter().enumerate() {
            let least = scan.times(1 << nth.min(5));
            assert!(*pause >= least, "{key}: {nth}: {pauses:?}");
        }
        soonest = soonest.min(pauses[0]);
    }
    assert!(soonest < scan.times(2), "{soonest:?}");
}
