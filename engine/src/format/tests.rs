//! What holds for the rows and the changes of every format.

use super::*;
use crate::position::{Checkpoint, Position};
use crate::row::{Guard, LeaseRow};
use crate::shard::HashRange;
use crate::table::AttributeValue;
use crate::testkit::{item_of, renaming_of, reset_of, take_of};
use crate::time::Wall;
use proptest::prelude::*;

/// Changes made only by the leader of a fleet.
fn of_a_leader(counter: u64) -> [Change; 2] {
    let key = || LeaseKey::from("shardId-000000000000");
    let assign = Change::Assign {
        key: key(),
        counter,
        next: counter + 5,
        from: None,
        handing_over: None,
        to: "w2".into(),
    };
    let offer = Change::Offer { key: key(), from: "w1".into(), to: "w2".into() };
    [assign, offer]
}

/// A condition of absent attributes holds for a missing item, too: the write would make a removed row anew.
#[test]
fn only_a_creation_makes_a_row() {
    let key = || LeaseKey::from("shardId-000000000000");
    let guard = |counter| Guard { counter, holder: "w1".into(), next: counter + 5, next_owner: None };
    for (format, counter) in Format::ALL.into_iter().flat_map(|kind| [(kind, 0), (kind, 7)]) {
        let mut changes = vec![
            Change::Claim {
                key: key(),
                counter,
                from: "w1".into(),
                checkpoint: Checkpoint::TrimHorizon,
                by: "w2".into(),
            },
            Change::Renew { key: key(), guard: guard(counter), began: None },
            Change::Checkpoint { key: key(), guard: guard(counter), position: Position::of(1.into()) },
            Change::SetRange { key: key(), was: None, range: HashRange::ALL },
            Change::Delete { key: key(), counter },
        ];
        changes.extend(of_a_leader(counter));
        for checkpoint in [Checkpoint::TrimHorizon, Checkpoint::Latest, Checkpoint::ShardEnd] {
            let free = LeaseRow { counter, ..LeaseRow::new(key(), checkpoint) };
            let owned = LeaseRow { owner: Some("w1".into()), ..free.clone() };
            changes.extend([renaming_of(&free), reset_of(&free, counter + 5, Checkpoint::TrimHorizon)]);
            changes.extend([free, owned].map(|row| take_of(&row, counter + 5, "w2")));
        }
        for change in changes {
            let mut item = None;
            let _ = format.encode(&change).carry_out(&mut item);
            assert_eq!(item, None, "{format}: {change:?}");
        }
        let mut item = None;
        let row = LeaseRow::new(key(), Checkpoint::TrimHorizon);
        let created = format.encode(&Change::Create(Box::new(row))).carry_out(&mut item);
        assert!(created.is_ok() && item.is_some(), "{format}");
    }
}

/// The complete item of a row, less the attributes that guard a write.
fn unguarded(format: Format, row: &LeaseRow, guards: &[&str], told: &str) -> Option<Item> {
    let mut item = item_of(&format, row);
    assert_eq!(format.lacks(&item), Vec::<&str>::new(), "{told}");
    item.retain(|name, _| !guards.contains(&&**name));
    Some(item)
}

/// A person's edit may remove the guard of a row. A missing guard is read as zero. The next worker that takes the lease
/// writes the guard again; only one worker succeeds.
#[test]
fn a_row_without_its_guard_is_taken_once_and_complete_again() {
    let guards: [&[&str]; Format::ALL.len()] = [
        &["leaseCounter", "ownerSwitchesSinceCheckpoint"],
        &["LeaseTimeout"],
        &["lease_timeout", "leasehold_deadline"],
        &["LastUpdate"],
    ];
    let at = Checkpoint::At(Position::of(5.into()));
    let owners = [None, Some("w1")];
    for (format, guards) in Format::ALL.into_iter().zip(guards) {
        for (checkpoint, owner) in [at, Checkpoint::TrimHorizon]
            .into_iter()
            .flat_map(|checkpoint| owners.map(|owner| (checkpoint, owner)))
        {
            let told = format!("{format}: {checkpoint:?} of {owner:?}");
            let mut row = LeaseRow::new("shardId-000000000000".into(), checkpoint);
            (row.owner, row.counter) = (owner.map(Into::into), 7_000_000_007);
            let mut item = unguarded(format, &row, guards, &told);

            let lacks = format.lacks(item.as_ref().unwrap());
            // A row without an owner needs no deadline.
            assert_eq!(
                lacks.is_empty(),
                owner.is_none() && guards[0].to_lowercase().contains("timeout"),
                "{told}"
            );
            assert!(lacks.iter().all(|name| guards.contains(name)), "{told}: {lacks:?}");
            row.counter = 0;
            assert_eq!(format.decode(item.as_ref().unwrap()), RowRead::Lease(row.clone()), "{told}");

            let take = |to: &str| format.encode(&take_of(&row, 5, to));
            take("w2").carry_out(&mut item).unwrap();
            assert!(take("w3").carry_out(&mut item).is_err(), "{told}: taken twice");
            let taken = item.unwrap();
            assert_eq!(format.lacks(&taken), Vec::<&str>::new(), "{told}");
            let read = format.decode(&taken);
            let read = read.lease().unwrap();
            assert_eq!((read.counter, read.owner.as_ref().unwrap().as_str()), (5, "w2"), "{told}");
            assert_eq!(read.checkpoint, checkpoint, "{told}");
        }
    }
}

/// Takes a lease by its row as read, and renews the lease as the row's owner, if the owner is `w1`.
fn is_taken_and_renewed(format: Format, item: &Item, row: &LeaseRow, told: &str) {
    let take = format.encode(&take_of(row, row.counter + 5, "w2"));
    let mut taken = Some(item.clone());
    assert_eq!(take.carry_out(&mut taken), Ok(()), "{told}");
    let read = format.decode(taken.as_ref().unwrap());
    let owner = read.lease().and_then(|row| row.owner.clone());
    assert_eq!(owner, Some("w2".into()), "{told}");
    let renew = format.encode(&Change::Renew {
        key: row.key.clone(),
        guard: Guard { counter: row.counter, next: row.counter + 5, holder: "w1".into(), next_owner: None },
        began: None,
    });
    let owned = row.owner == Some("w1".into()) && row.handing_over.is_none();
    assert_eq!(renew.carry_out(&mut Some(item.clone())).is_ok(), owned, "{told}");
}

/// What boto3 writes for None, and an empty string, in place of each attribute.
#[test]
fn a_row_with_null_or_nothing_can_be_taken_and_renewed() {
    for (format, odd) in Format::ALL
        .into_iter()
        .flat_map(|format| [AttributeValue::Null, AttributeValue::s("")].map(|odd| (format, odd)))
    {
        let mut row = LeaseRow::new("shardId-000000000000".into(), Checkpoint::At(Position::of(5.into())));
        (row.owner, row.counter) = (Some("w1".into()), 7_000_000_007);
        (row.range, row.parents) = (Some(HashRange::ALL), vec!["shardId-000000000009".into()]);
        let whole = item_of(&format, &row);
        let names = whole.keys().filter(|name| **name != format.key_name());
        // Attributes present at times.
        let others = ["checkpointOwner", "ClaimRequest", "Finished", "childShardIds", "LeaseholdSubSequence"];
        let mut read = 0;
        for name in names.cloned().chain(others.map(Into::into)) {
            let mut item = whole.clone();
            item.insert(name.clone(), odd.clone());
            if let RowRead::Lease(row) = format.decode(&item) {
                read += 1;
                is_taken_and_renewed(format, &item, &row, &format!("{format}: {name} is {odd:?}"));
            }
        }
        assert!(read > 5, "{format}: {read} with {odd:?}");
    }
}

/// All checkpoints, with numbers and places below these bounds.
pub(super) fn checkpoints(sequences: u64, subs: u64) -> impl Strategy<Value = Checkpoint> {
    prop_oneof![
        (0..sequences, 0..subs).prop_map(|(sequence, sub)| {
            let sequence = sequence.into();
            Checkpoint::At(Position { sequence, sub })
        }),
        Just(Checkpoint::TrimHorizon),
        Just(Checkpoint::Latest),
        Just(Checkpoint::AtTimestamp),
        Just(Checkpoint::ShardEnd),
    ]
}

/// Where a row begins at a moment, a take adds a missing moment, a renewal sets an earlier moment, and a checkpoint
/// removes the moment.
#[test]
fn every_format_keeps_the_moment_from_which_a_shard_is_read() {
    let key = || LeaseKey::from("shardId-000000000000");
    for format in Format::ALL {
        for checkpoint in [Checkpoint::Latest, Checkpoint::AtTimestamp] {
            let mut item = None;
            let row = LeaseRow::new(key(), checkpoint);
            let mut carry_out = |change: Change| {
                format.encode(&change).carry_out(&mut item).unwrap();
                let RowRead::Lease(row) = format.decode(item.as_ref().unwrap()) else { panic!("{item:?}") };
                (row.checkpoint, row.began)
            };
            let guard = |counter, next| Guard { counter, next, holder: "w".into(), next_owner: None };
            assert_eq!(carry_out(Change::Create(Box::new(row))), (checkpoint, None), "{format:?}");
            let take = Change::Take {
                key: key(),
                counter: 0,
                next: 5,
                from: None,
                checkpoint,
                to: "w".into(),
                began: Some(Wall(70)),
                named: None,
                stream: None,
            };
            assert_eq!(carry_out(take), (checkpoint, Some(Wall(70))), "{format:?}");
            let plain = Change::Renew { key: key(), guard: guard(5, 6), began: None };
            assert_eq!(carry_out(plain), (checkpoint, Some(Wall(70))), "{format:?}");
            let earlier = Change::Renew { key: key(), guard: guard(6, 7), began: Some(Wall(60)) };
            assert_eq!(carry_out(earlier), (checkpoint, Some(Wall(60))), "{format:?}");
            let position = Position::of(9.into());
            let saved = Change::Checkpoint { key: key(), guard: guard(7, 8), position };
            assert_eq!(carry_out(saved), (Checkpoint::At(position), None), "{format:?}");
        }
    }
}

proptest! {
    /// A reset leaves a free lease at its checkpoint, whatever the row says. The reset applies only to the row as read.
    #[test]
    fn a_reset_frees_the_row_that_was_read(
        format in prop::sample::select(Format::ALL.to_vec()),
        (from, to) in (checkpoints(9, 3), checkpoints(9, 3)),
        owner in prop::option::of("[a-z]{1,3}"),
        handing_over in prop::option::of("[A-Z]{1,3}"),
        counter in 0u64..3,
    ) {
        prop_assume!(from.is_end() || !to.is_end());
        let mut row = LeaseRow::new("shardId-000000000001".into(), from);
        row.owner = owner.map(|owner| owner.as_str().into());
        if row.owner.is_some() && format != Format::Kinsumer {
            row.handing_over = handing_over.map(|owner| owner.as_str().into());
        }
        row.counter = counter;
        row.began = Some(Wall(5));
        let mut item = Some(item_of(&format, &row));
        let RowRead::Lease(row) = format.decode(item.as_ref().unwrap()) else { panic!("{item:?}") };
        let reset = |row: &LeaseRow| format.encode(&reset_of(row, row.counter + 7, to));
        let others = [
            LeaseRow { counter: row.counter + 1, ..row.clone() },
            LeaseRow { owner: Some("another".into()), ..row.clone() },
            LeaseRow { checkpoint: Checkpoint::At(Position::of(77.into())), ..row.clone() },
        ];
        for other in others {
            let before = item.clone();
            prop_assert!(reset(&other).carry_out(&mut item).is_err(), "{:?}", other);
            prop_assert_eq!(&item, &before);
        }
        reset(&row).carry_out(&mut item).unwrap();
        let read = format.decode(item.as_ref().unwrap());
        let expected = LeaseRow {
            owner: None,
            handing_over: None,
            counter: row.counter + 7,
            switches: 0,
            checkpoint: to,
            began: None,
            ..row.clone()
        };
        prop_assert_eq!(read, RowRead::Lease(expected));
        prop_assert!(reset(&row).carry_out(&mut item).is_err(), "made twice");
    }
}
