//! The moment from which a shard is read that has no checkpoint yet.
//!
//! `LATEST` means "from now on", and each reader that asks the service for it gets another place. So it is asked for once: the row
//! of a lease at `LATEST` holds a moment, and every owner begins at the first record that arrived at this moment or later. A worker of ours
//! writes the moment when it creates the row, or, if the row has none, with its take: the same write. A row at `AT_TIMESTAMP` holds the time
//! itself, so that workers that were told another time begin at the same place.
//!
//! # Clocks
//!
//! The moment is the writer's wall clock, less [`MARGIN`]. The margin stands for what the service does not promise: that the arrival times of
//! a shard's records grow. The first owner was handed nothing before, and begins at the moment itself, without the margin.
//!
//! A service refuses a time in its future. Then the clock of the writer was ahead. The first owner tries earlier moments, twice as far back
//! each time, until the service takes one. It writes this moment to the row before it fetches anything, so no later owner begins after it.
//! So the error of a clock costs old records, which are handed over although they arrived before the start: those that arrived in as long
//! a time as the error, and a second. A clock that is behind by an hour makes the application begin an hour early. A clock that is ahead and is
//! not refused, since the first request comes later than the clock is ahead, begins late by its error at most.
//! A time that an operator configured is not moved: the shard waits until the service has come to it.

use crate::config::InitialPosition;
use crate::position::Checkpoint;
use crate::row::LeaseRow;
use crate::time::Wall;

/// How much earlier the moment in a row at `LATEST` is than the writer's wall clock, in ms.
pub(crate) const MARGIN_MS: i64 = 1_000;

/// The moment that a row at this checkpoint is given: by its creation, or by a take if it has none. Absent: the checkpoint names its place,
/// or it is `AT_TIMESTAMP` and the configuration names no time.
pub(crate) fn given(checkpoint: Checkpoint, initial: InitialPosition, now: Wall) -> Option<Wall> {
    match (checkpoint, initial) {
        (Checkpoint::Latest, _) => Some(Wall(now.0.saturating_sub(MARGIN_MS).max(0))),
        (Checkpoint::AtTimestamp, InitialPosition::AtTimestamp(time)) => Some(Wall(time.0.max(0))),
        _ => None,
    }
}

/// Whether a row at this checkpoint is read from a moment. To any other, a moment that was left in the row means nothing.
pub(crate) fn is_of(checkpoint: Checkpoint) -> bool {
    matches!(checkpoint, Checkpoint::Latest | Checkpoint::AtTimestamp)
}

/// What a row comes with into another table. An owner may have begun at the very moment, and the first owner in the new table, whose row
/// looks as if no worker had it, begins a margin later.
pub(crate) fn carried(row: &LeaseRow, now: Wall) -> Option<Wall> {
    match (row.checkpoint, row.began) {
        (Checkpoint::Latest, Some(began)) if !row.never_owned() => {
            Some(Wall(began.0.saturating_sub(MARGIN_MS).max(0)))
        }
        (Checkpoint::Latest, None) => given(row.checkpoint, InitialPosition::Latest, now),
        (Checkpoint::Latest | Checkpoint::AtTimestamp, began) => began,
        _ => None,
    }
}

/// Where an owner begins that takes a row with this moment. The first owner of a row at `LATEST` begins without the margin.
pub(crate) fn begins(checkpoint: Checkpoint, began: Option<Wall>, first: bool) -> Option<Wall> {
    match checkpoint {
        Checkpoint::Latest if first => began.map(|began| Wall(began.0.saturating_add(MARGIN_MS))),
        Checkpoint::Latest | Checkpoint::AtTimestamp => began,
        _ => None,
    }
}

/// An earlier moment, for one that the service refused as one of its future, and that is the `tries`th to be refused in a row (from 1).
/// Each step is twice as long as the one before; the first is the margin.
pub(crate) fn earlier(refused: Wall, tries: u32) -> Wall {
    let step = MARGIN_MS << (tries.clamp(1, 40) - 1);
    Wall(refused.0.saturating_sub(step).max(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::Position;

    const NOW: Wall = Wall(1_700_000_000_000);

    #[test]
    fn a_row_gets_a_moment_where_its_checkpoint_names_no_place() {
        let at = |checkpoint, initial| given(checkpoint, initial, NOW);
        let time = Wall(5);
        let moment = Some(Wall(NOW.0 - MARGIN_MS));
        assert_eq!(at(Checkpoint::Latest, InitialPosition::Latest), moment);
        assert_eq!(at(Checkpoint::Latest, InitialPosition::TrimHorizon), moment, "of another configuration");
        assert_eq!(at(Checkpoint::AtTimestamp, InitialPosition::AtTimestamp(time)), Some(time));
        assert_eq!(at(Checkpoint::AtTimestamp, InitialPosition::Latest), None);
        assert_eq!(at(Checkpoint::TrimHorizon, InitialPosition::AtTimestamp(time)), None);
        assert_eq!(at(Checkpoint::At(Position::of(1.into())), InitialPosition::Latest), None);
    }

    #[test]
    fn only_the_first_owner_begins_without_the_margin() {
        let began = given(Checkpoint::Latest, InitialPosition::Latest, NOW);
        assert_eq!(begins(Checkpoint::Latest, began, true), Some(NOW));
        assert_eq!(begins(Checkpoint::Latest, began, false), began);
        assert_eq!(begins(Checkpoint::AtTimestamp, Some(NOW), true), Some(NOW));
        assert_eq!(begins(Checkpoint::ShardEnd, Some(NOW), true), None);
    }

    #[test]
    fn a_migrated_row_begins_no_later_than_its_owner_did() {
        let mut row = LeaseRow::new("a".into(), Checkpoint::Latest);
        row.began = Some(NOW);
        assert_eq!(carried(&row, NOW), Some(NOW), "nobody has begun");
        row.counter = 1;
        let carried = carried(&row, NOW);
        assert_eq!(begins(Checkpoint::Latest, carried, true), Some(NOW));
    }

    /// However far ahead a clock is, it takes few tries, and no more than twice the error is gone back.
    #[test]
    fn a_moment_of_the_future_is_left_soon() {
        for ahead in [1, 999, 1_000, 1_001, 60_000, 86_400_000, 31_536_000_000] {
            let (mut at, mut tries) = (Wall(NOW.0 + ahead), 0);
            while at > NOW {
                tries += 1;
                at = earlier(at, tries);
            }
            assert!(NOW.0 - at.0 <= ahead + MARGIN_MS, "{ahead} ms ahead: {at}");
            assert!(tries <= 26, "{ahead} ms ahead: {tries} tries");
        }
        assert_eq!(earlier(Wall(500), 40), Wall(0), "times begin with 1970");
    }
}
