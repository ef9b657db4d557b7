//! People's edits of rows by hand, in scenes: unreadable rows, and rows without their guards.

use crate::rig::*;
use leasehold_engine::format::Format;
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::notice::{Fatal, Notice, Stall};
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::time::Span;

const WRONG: &str = "checkpoint: expected a sequence number, found the string \"ten\"";

/// Breaks the row of a shard; a worker then tells the error in the row.
fn breaks(rig: &mut Rig, shard: u32) -> LeaseKey {
    let key = shard_id(shard).to_lease();
    rig.table.unreadable.insert(key.clone(), WRONG.to_owned());
    key
}

/// The times at which the first worker reported a row as unreadable, in whole seconds since the first report; and the
/// last sentence.
fn reports(rig: &Rig, wanted: &LeaseKey) -> (Vec<u64>, String) {
    let notices = || {
        rig[0].notices.iter().filter_map(|(at, notice)| match notice {
            Notice::Unreadable { key, lasting, .. } if key == wanted => Some((*at, *lasting, notice)),
            _ => None,
        })
    };
    let first = notices().next().map(|(at, ..)| at).unwrap_or_default();
    for (at, lasting, _) in notices() {
        assert_eq!(at.since(first), lasting);
    }
    let ages = notices().map(|(_, lasting, _)| lasting.0 / 1_000_000).collect();
    let last = notices().next_back();
    (ages, last.map(|(.., notice)| notice.to_string()).unwrap_or_default())
}

#[test]
fn a_row_that_cannot_be_read_is_told_for_as_long_as_it_is_so() {
    let mut rig = Rig::new(2, 1).after(60);
    rig[0].die();
    let key = breaks(&mut rig, 0);
    rig.workers.clear();
    rig.join();
    rig.put(0, 5);
    rig.put(1, 5);
    rig.secs(20_000);
    let (ages, sentence) = reports(&rig, &key);
    assert_eq!(ages[0], 0);
    let gaps: Vec<u64> = ages.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // Each report comes with the first scan that is late enough.
    let scan = rig.config.scan_interval().0 / 1_000_000;
    let mut due = scan;
    for gap in &gaps {
        assert!((due..=due + scan + 2).contains(gap), "{gaps:?}: {due} s are due");
        due = (due * 2).min(3_600);
    }
    assert!(gaps.len() >= 10, "{gaps:?}");
    for part in [key.as_str(), WRONG, "no worker reads its shard until", "for 1", "corrected in the table"] {
        assert!(sentence.contains(part), "{part:?} is not in {sentence:?}");
    }
    assert!(rig.row(1).checkpoint.position().is_some(), "the other one is read");

    rig.table.unreadable.clear();
    rig.assert_all_processed_in(60);
    let before = reports(&rig, &key).0.len();
    rig.secs(4_000);
    assert_eq!(reports(&rig, &key).0.len(), before, "it is mended");
}

#[test]
fn a_child_says_that_the_row_of_its_parent_cannot_be_read() {
    let mut rig = Rig::new(1, 1).with_records([0], 5).after(60);
    rig.split(0);
    rig.secs(3);
    // The shard's end is written and its children wait for their turn; then a person breaks the row.
    rig[0].die();
    breaks(&mut rig, 0);
    rig.workers.clear();
    rig.join_then(200);
    let parent = vec![shard_id(0)];
    let stalls = rig[0].news(|notice| match notice {
        Notice::Stalled { why, .. } => Some(why),
        _ => None,
    });
    assert!(!stalls.is_empty());
    assert!(stalls.iter().all(|why| **why == Stall::UnreadableParents(parent.clone())), "{stalls:?}");
    assert!(stalls[0].to_string().contains("correct that row in the table"));
}

/// Its owner lives, or is long dead.
#[test]
fn a_lease_with_a_removed_guard_is_read_on_in_every_format() {
    for (format, dies) in Format::ALL.into_iter().flat_map(|format| [(format, false), (format, true)]) {
        let mut rig =
            Rig::with_format(format.codec(), 2, 2).with_records([0], 10).with_records([1], 10).after(120);
        let owner = rig.owner(0).unwrap_or_else(|| panic!("{format}: nobody has the lease"));
        if dies {
            rig[owner].die();
        }
        let before = std::mem::take(&mut rig.row_mut(0).counter);
        rig.put(0, 10);
        rig.run(rig.config.lease_duration().times(6) + Span::from_secs(60));
        rig.assert_all_processed();
        let row = rig.row(0);
        assert!(row.counter > before, "{format}, dies: {dies}");
        let told = (rig.all_told(MENDING), rig.all_told(LOST));
        assert_eq!(told, (usize::from(!dies), 0), "{format}, dies: {dies}");
        assert!(rig.owner(0).is_some_and(|owner| rig[owner].alive), "{format}, dies: {dies}");
    }
}

/// The fleet is started anew beside a row that is put at no place in its shard, and shards get records.
fn begins_anew_beside(spoiled: Checkpoint) -> Rig {
    let mut rig = Rig::new(4, 2).with_records(0..4, 5).after(60);
    (0..2).for_each(|worker| rig[worker].die());
    put_at(&mut rig, spoiled);
    rig.put_all(0..4, 5);
    rig.join_all(2);
    rig
}

/// A person puts the row of the first shard at a checkpoint, and removes its owner.
fn put_at(rig: &mut Rig, checkpoint: Checkpoint) {
    let row = rig.row_mut(0);
    (row.checkpoint, row.owner) = (checkpoint, None);
    row.counter += 1;
}

#[test]
fn one_row_at_no_place_is_told_and_the_rest_is_read() {
    for spoiled in [Checkpoint::ShardEnd, Checkpoint::At(Position::of(0.into()))] {
        let mut rig = begins_anew_beside(spoiled).after(300);
        let fatal = |notice: &Notice| matches!(notice, Notice::Fatal(Fatal::OtherStream { .. }));
        assert_eq!(rig.all_told(fatal), 0, "{spoiled:?}");
        assert_eq!((rig.row(0).checkpoint, rig.owner(0)), (spoiled, None));
        for shard in 1..4 {
            assert!(rig.owner(shard).is_some(), "{spoiled:?}: {shard}");
        }
        for worker in rig.workers.iter().filter(|worker| worker.alive) {
            let key = shard_id(0).to_lease();
            let spoiled = |notice: &Notice| matches!(notice, Notice::Spoiled { lease, .. } if *lease == key);
            assert!(worker.notices.iter().any(|(_, notice)| spoiled(notice)));
        }
        // An operator puts it at the oldest record.
        put_at(&mut rig, Checkpoint::TrimHorizon);
        rig.assert_all_processed_in(120);
    }
}

/// A person names an open shard as the parent of a shard, or the shard as its own parent.
#[test]
fn a_parent_that_only_a_row_names_is_not_waited_for() {
    for parent in [0, 1] {
        let mut rig = Rig::new(3, 1).after(60);
        rig[0].die();
        rig.row_mut(0).parents = vec![shard_id(parent)];
        rig.put_all(0..3, 5);
        let next = rig.join();
        rig.assert_all_processed_in(200);
        let names = |notice: &Notice| matches!(notice, Notice::NotParents { parents, .. } if *parents == [shard_id(parent)]);
        assert_eq!(rig[next].told(names), 1, "{parent}");
    }
}
