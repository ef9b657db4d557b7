//! The moment from which an owner reads a shard without a checkpoint.
//!
//! `LATEST` means "from now on", and each reader that asks the service for `LATEST` gets a different place. So `LATEST`
//! is asked for once: the row of a lease at `LATEST` holds a moment, and every owner begins at the first record that
//! arrived at this moment or later. A worker of ours writes the moment when it creates the row, or, if the row has
//! none, with its take of the lease: the same write. A row at `AT_TIMESTAMP` holds the configured time itself, so
//! workers with different configured times begin at the same place.
//!
//! # Clocks
//!
//! The moment is the writer's wall clock, less [`MARGIN`]. The service does not promise that the arrival times of a
//! shard's records grow; the margin covers this. The first owner was handed no earlier records, and begins at the
//! moment itself, without the margin.
//!
//! A service refuses a time in its future. Then the clock of the writer was ahead. The first owner tries earlier
//! moments, twice as far back each time, until the service takes one. The owner writes this moment to the row before
//! the first fetch, so no later owner begins after this moment. So the error of a clock costs old records, handed over
//! although they arrived before the start: the records of a time as long as the error, and of a second. A clock that is
//! behind by an hour makes the application begin an hour early. A clock may be ahead and yet not refused, because the
//! first request comes late enough. Such an application begins late by the clock's error at most. A time configured by
//! an operator is not moved: the shard waits until the service's clock reaches this time.

use crate::config::InitialPosition;
use crate::position::Checkpoint;
use crate::row::LeaseRow;
use crate::time::Wall;

/// How much earlier the moment in a row at `LATEST` is than the writer's wall clock, in ms.
pub(crate) const MARGIN_MS: i64 = 1_000;

/// The moment given to a row at this checkpoint: by its creation, or by a take if the row has no moment. Absent: the
/// checkpoint names its place, or the checkpoint is `AT_TIMESTAMP` and the configuration names no time.
pub(crate) fn given(checkpoint: Checkpoint, initial: InitialPosition, now: Wall) -> Option<Wall> {
    match (checkpoint, initial) {
        (Checkpoint::Latest, _) => Some(Wall(now.0.saturating_sub(MARGIN_MS).max(0))),
        (Checkpoint::AtTimestamp, InitialPosition::AtTimestamp(time)) => Some(Wall(time.0.max(0))),
        _ => None,
    }
}

/// Whether a row at this checkpoint is read from a moment. At any other checkpoint, a moment left in the row means
/// nothing.
pub(crate) fn is_of(checkpoint: Checkpoint) -> bool {
    matches!(checkpoint, Checkpoint::Latest | Checkpoint::AtTimestamp)
}

/// The moment that a row brings into another table. An owner may have begun at the very moment, and the first owner in
/// the new table, whose row looks as if no worker had it, begins a margin later.
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

/// Where an owner begins after the take of a row with this moment. The first owner of a row at `LATEST` begins without
/// the margin.
pub(crate) fn begins(checkpoint: Checkpoint, began: Option<Wall>, first: bool) -> Option<Wall> {
    match checkpoint {
        Checkpoint::Latest if first => began.map(|began| Wall(began.0.saturating_add(MARGIN_MS))),
        Checkpoint::Latest | Checkpoint::AtTimestamp => began,
        _ => None,
    }
}

/// An earlier moment, in place of the moment `refused` as a future time. `tries` counts the refusals in a row, from 1.
/// Each step is twice as long as the step before; the first is the margin.
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
