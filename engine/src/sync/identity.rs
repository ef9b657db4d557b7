//! Whether the leases of a table are of the stream whose shards were listed.
//!
//! All streams name their shards alike, so a table filled from another stream, or from an earlier stream of the same
//! name, looks familiar. Reading on at its checkpoints would skip records, and shards finished in this table would
//! never be read. But the nature of a shard does not change: hash keys, parents, begin and end stay the same for ever.
//! A row that contradicts these traits belongs to another shard, or a person or a program has spoiled the row. One
//! spoiled row does not prove another stream's table, if more rows prove a table of this stream.

use crate::ids::{LeaseKey, ShardId};
use crate::position::Checkpoint;
use crate::row::LeaseRow;
use crate::shard::{Shard, of_another_shard};
use crate::stream_identity::StreamIdentity;
use std::collections::{BTreeMap, BTreeSet};

/// A row that does not fit the shard of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// The lease's key.
    pub lease: LeaseKey,
    /// The contradiction: the words after "of (the lease)" in a sentence.
    pub detail: String,
    /// Whether this misfit alone is proof. If not, the listing may lag, and a later listing decides.
    pub certain: bool,
    /// The checkpoint, if the checkpoint is no place in its shard; absent: a different trait does not fit.
    pub checkpoint: Option<Checkpoint>,
}

/// How the rows of a table compare with the shards of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// The rows that do not fit.
    pub misfits: Vec<Misfit>,
    /// The number of misfits without the stream's name in the row.
    unnamed: usize,
    /// The number of unnamed misfits with a proof of another stream.
    certain: usize,
    /// The number of rows without proof for or against the stream: a place to begin at fits every shard.
    neutral: usize,
    /// The number of rows certainly of this stream: they name the stream, or they name no stream and their checkpoints
    /// are places in their shards.
    proved: usize,
    /// The number of rows with a place that exists in their shards.
    fitting: usize,
}

impl Comparison {
    /// Whether the table belongs to another stream: more rows contradict this stream than belong to it.
    ///
    /// A person or a program may write an end into a row of an open shard, also in a new table without a place anywhere. Ends alone
    /// prove another stream if most rows are such ends. To begin in shards of another stream loses no record.
    pub(crate) fn is_of_another(&self) -> bool {
        let against = if self.certain > 0 { self.proved } else { self.proved + self.neutral };
        self.unnamed > against
    }

    /// Whether more rows contradict the shards than fit the shards. If these rows name the stream, an operator may have
    /// made the stream anew under its name since the service described the stream to this worker.
    pub(crate) fn may_be_made_anew(&self) -> bool {
        self.misfits.len() > self.fitting
    }

    /// A row that certainly does not fit; failing that, a row that perhaps does not fit.
    pub(crate) fn worst(&self) -> Option<&Misfit> {
        let certain = self.misfits.iter().find(|misfit| misfit.certain);
        certain.or(self.misfits.first())
    }

    /// The rows whose checkpoints are no places in their shards.
    pub(crate) fn misplaced(&self) -> impl Iterator<Item = (&Misfit, Checkpoint)> {
        let misfits = self.misfits.iter();
        misfits.filter_map(|misfit| Some((misfit, misfit.checkpoint?)))
    }
}

/// The traits of a row that prove another stream if the traits of the shard differ. In a row that names the stream,
/// hash keys and parents prove nothing: a single wrong answer may have put them into the row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judged {
    pub range: bool,
    pub parents: bool,
    /// The row names the stream.
    pub named: bool,
}

impl Judged {
    /// All traits.
    pub(crate) const ALL: Judged = Judged { range: true, parents: true, named: false };

    /// The traits of a row that names the stream.
    pub(crate) const NAMED: Judged = Judged { range: false, parents: false, named: true };
}

/// How a row does not fit a shard of the same name; absent: the row may well belong to the shard.
pub(super) fn misfit(row: &LeaseRow, shard: &Shard, judged: Judged) -> Option<Misfit> {
    let found = |detail: String| Misfit { lease: row.key.clone(), detail, certain: true, checkpoint: None };
    let misplaced = |detail: String| Misfit { checkpoint: Some(row.checkpoint), ..found(detail) };
    if let Some(range) = row.range.filter(|range| judged.range && *range != shard.range) {
        return Some(found(format!(
            "the row says that it takes the hash keys {} to {}, and its shard takes {} to {}",
            range.start, range.end, shard.range.start, shard.range.end
        )));
    }
    let theirs: BTreeSet<_> = shard.parents().collect();
    // A listing need not name trimmed parents. A row that names its own shard is wrong in any table.
    let is_strange = |parent: &ShardId| !theirs.contains(parent) && parent.as_str() != shard.id.as_str();
    if judged.parents && !theirs.is_empty() && row.parents.iter().any(is_strange) {
        let names = |ids: Vec<&str>| ids.join(" and ");
        return Some(found(format!(
            "the row says that it came from {}, and its shard came from {}",
            names(row.parents.iter().map(|id| id.as_str()).collect()),
            names(theirs.iter().map(|id| id.as_str()).collect())
        )));
    }
    if let Checkpoint::At(position) = row.checkpoint
        && let Some((_, of)) = of_another_shard(shard.id.as_str(), [position.sequence])
    {
        return Some(misplaced(format!("the checkpoint {position} is a number of shard {of}")));
    }
    match row.checkpoint {
        Checkpoint::At(position) if position.sequence < shard.starting => Some(misplaced(format!(
            "the checkpoint {position} is before the first number of its shard, {}",
            shard.starting
        ))),
        Checkpoint::At(position) if shard.ending.is_some_and(|ending| position.sequence > ending) => {
            Some(misplaced(format!("the checkpoint {position} is after the last number of its shard")))
        }
        Checkpoint::ShardEnd if shard.is_open() => Some(Misfit {
            certain: false,
            ..misplaced("the row says that it has ended, and its shard is open".to_owned())
        }),
        _ => None,
    }
}

/// Whether a table belongs to another stream than the stream of these shards, by the content of all its rows.
/// `identity`: the stream as described by the service, if known; rows with this stream's name belong to the stream.
pub fn is_of_another<'a>(
    rows: impl Iterator<Item = &'a LeaseRow>, shards: &[Shard], identity: Option<&StreamIdentity>,
) -> bool {
    let by_id = shards.iter().map(|shard| (shard.id.as_str(), shard)).collect();
    let judged = |row: &LeaseRow| match identity.is_some() && row.stream.as_ref() == identity {
        true => Judged::NAMED,
        false => Judged::ALL,
    };
    compare(rows, &by_id, judged).is_of_another()
}

/// Compares rows with the shards of their names. `judged`: the traits of a row that count.
pub(crate) fn compare<'a>(
    rows: impl Iterator<Item = &'a LeaseRow>, shards: &BTreeMap<&str, &Shard>,
    judged: impl Fn(&LeaseRow) -> Judged,
) -> Comparison {
    let mut comparison = Comparison::default();
    for row in rows {
        let Some(shard) = shards.get(row.key.as_str()) else {
            continue;
        };
        let judged = judged(row);
        let found = misfit(row, shard, judged);
        // A place to begin at fits every shard, and proves nothing.
        let is_place = matches!(row.checkpoint, Checkpoint::At(_) | Checkpoint::ShardEnd);
        let fits = found.is_none() && is_place;
        comparison.fitting += usize::from(fits);
        comparison.proved += usize::from(judged.named || fits);
        let unnamed = found.as_ref().filter(|_| !judged.named);
        comparison.unnamed += usize::from(unnamed.is_some());
        comparison.certain += usize::from(unnamed.is_some_and(|found| found.certain));
        comparison.neutral += usize::from(found.is_none() && !is_place && !judged.named);
        comparison.misfits.extend(found);
    }
    comparison
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::{HashKey, HashRange};
    use crate::testkit::at;
    use crate::time::Wall;

    const NAMED: Judged = Judged::NAMED;

    fn shard(name: &str, last: Option<u64>) -> Shard {
        crate::testkit::shard(name, ["p"], HashRange::ALL, 100, last)
    }

    fn row(checkpoint: Checkpoint) -> LeaseRow {
        LeaseRow {
            range: Some(HashRange::ALL),
            parents: vec!["p".into()],
            ..LeaseRow::new("a".into(), checkpoint)
        }
    }

    #[test]
    fn a_row_of_the_shard_fits_wherever_it_is() {
        for checkpoint in [at(100), at(150), at(200), Checkpoint::TrimHorizon, Checkpoint::ShardEnd] {
            assert_eq!(misfit(&row(checkpoint), &shard("a", Some(200)), Judged::ALL), None);
        }
        for checkpoint in [at(100), at(1_000_000), Checkpoint::Latest, Checkpoint::AtTimestamp] {
            assert_eq!(misfit(&row(checkpoint), &shard("a", None), Judged::ALL), None);
        }
        let bare = LeaseRow::new("a".into(), Checkpoint::Latest);
        assert_eq!(misfit(&bare, &shard("a", None), Judged::ALL), None);
        let orphan = Shard { parent: None, ..shard("a", None) };
        assert_eq!(misfit(&row(at(100)), &orphan, Judged::ALL), None, "parents may have been trimmed");
    }

    #[test]
    fn a_row_of_another_shard_is_told_by_what_never_changes() {
        let half = HashRange { start: HashKey(0), end: HashKey(1 << 127) };
        let others = [
            LeaseRow { range: Some(half), ..row(at(150)) },
            LeaseRow { parents: vec!["q".into()], ..row(at(150)) },
            row(at(99)),
            row(at(201)),
        ];
        for other in others {
            let found = misfit(&other, &shard("a", Some(200)), Judged::ALL);
            assert!(found.is_some_and(|found| found.certain), "{other:?}");
            let numbers_alone = other.checkpoint != at(150);
            let found = misfit(&other, &shard("a", Some(200)), NAMED);
            assert_eq!(found.is_some(), numbers_alone, "the row names the stream: {other:?}");
        }
    }

    #[test]
    fn an_end_that_a_lagging_listing_may_hide_proves_nothing_alone() {
        let found = misfit(&row(Checkpoint::ShardEnd), &shard("a", None), Judged::ALL);
        assert!(found.is_some_and(|found| !found.certain));
    }

    #[test]
    fn proof_comes_before_suspicion() {
        let (a, b) = (shard("a", None), shard("b", None));
        let shards = BTreeMap::from([("a", &a), ("b", &b)]);
        let rows = [row(Checkpoint::ShardEnd), LeaseRow { key: "b".into(), ..row(at(1)) }];
        let worst = |rows: &[LeaseRow]| {
            let compared = compare(rows.iter(), &shards, |_| Judged::ALL);
            compared.worst().map(|found| found.lease.clone())
        };
        assert_eq!(worst(&rows), Some("b".into()));
        assert_eq!(worst(&rows[..1]), Some("a".into()));
        assert_eq!(worst(&[LeaseRow::new("z".into(), at(1))]), None);
    }

    #[test]
    fn rows_that_name_the_stream_are_its_own_whatever_they_say() {
        let arn = "arn:aws:kinesis:us-east-1:1:stream/orders";
        let identity = |created| StreamIdentity::new(arn, Wall(created)).unwrap();
        let (orders, former) = (identity(1_000), identity(9_000));
        let rows: Vec<LeaseRow> = ["a", "b", "c"]
            .map(|key| LeaseRow { key: key.into(), stream: Some(orders.clone()), ..row(at(1)) })
            .into();
        let shards = ["a", "b", "c"].map(|name| shard(name, None));
        let of = |identity| is_of_another(rows.iter(), &shards, identity);
        assert_eq!((of(Some(&orders)), of(Some(&former)), of(None)), (false, true, true));
    }

    /// Most rows decide; rows with only an initial position fit any stream.
    #[test]
    fn a_table_is_another_streams_if_most_of_its_rows_are() {
        let names = ["a", "b", "c", "d"];
        let shards = names.map(|name| shard(name, None));
        let shards: BTreeMap<&str, &Shard> = names.into_iter().zip(&shards).collect();
        let is_of_another = |checkpoints: [Checkpoint; 4], named: usize| {
            let rows: Vec<LeaseRow> = names
                .into_iter()
                .zip(checkpoints)
                .map(|(name, checkpoint)| LeaseRow { key: name.into(), ..row(checkpoint) })
                .collect();
            let judged = |row: &LeaseRow| match names.iter().position(|name| *name == row.key.as_str()) {
                Some(at) if at < named => NAMED,
                _ => Judged::ALL,
            };
            compare(rows.iter(), &shards, judged).is_of_another()
        };
        let (start, end) = (Checkpoint::TrimHorizon, Checkpoint::ShardEnd);
        assert!(!is_of_another([start; 4], 0), "nothing contradicts");
        assert!(is_of_another([at(1), start, start, start], 0), "nothing proves");
        assert!(!is_of_another([at(1), at(150), start, start], 0));
        assert!(is_of_another([at(1), at(2), at(150), start], 0));
        assert!(is_of_another([end, end, end, at(150)], 0));
        assert!(!is_of_another([end, end, at(150), start], 0), "half of the rows are ends of open shards");
        assert!(!is_of_another([end, start, start, start], 0), "one end among places to begin at");
        assert!(is_of_another([end, end, end, start], 0));
        assert!(is_of_another([end, at(1), start, start], 0), "a number of another stream counts more");
        assert!(!is_of_another([end, at(150), at(160), start], 0));
        assert!(!is_of_another([at(1); 4], 4), "all rows name the stream");
        assert!(!is_of_another([start, start, at(1), at(1)], 2));
        assert!(is_of_another([start, at(1), at(1), at(1)], 1));
    }

    #[test]
    fn a_stream_may_be_made_anew_if_most_rows_contradict_its_name() {
        let names = ["a", "b", "c"];
        let shards = names.map(|name| shard(name, None));
        let shards: BTreeMap<&str, &Shard> = names.into_iter().zip(&shards).collect();
        let compared = |checkpoints: [Checkpoint; 3]| {
            let rows = names.into_iter().zip(checkpoints);
            let rows: Vec<LeaseRow> =
                rows.map(|(name, checkpoint)| LeaseRow { key: name.into(), ..row(checkpoint) }).collect();
            let compared = compare(rows.iter(), &shards, |_| NAMED);
            assert!(!compared.is_of_another(), "all rows name the stream");
            compared.may_be_made_anew()
        };
        let start = Checkpoint::TrimHorizon;
        assert!(!compared([start; 3]));
        assert!(!compared([at(1), at(150), at(160)]));
        assert!(!compared([at(1), at(150), start]));
        assert!(compared([at(1), start, start]), "nothing fits");
        assert!(compared([at(1), at(2), at(150)]));
    }

    #[test]
    fn checkpoints_that_are_no_places_are_told_from_other_traits() {
        let half = HashRange { start: HashKey(0), end: HashKey(1) };
        let wrong = LeaseRow { range: Some(half), ..row(at(150)) };
        let s = shard("a", None);
        let shards = BTreeMap::from([("a", &s)]);
        let misplaced = |row: &LeaseRow| {
            let compared = compare([row].into_iter(), &shards, |_| Judged::ALL);
            compared.misplaced().map(|(_, checkpoint)| checkpoint).collect::<Vec<_>>()
        };
        assert_eq!(misplaced(&wrong), []);
        assert_eq!(misplaced(&row(at(1))), [at(1)]);
        assert_eq!(misplaced(&row(Checkpoint::ShardEnd)), [Checkpoint::ShardEnd]);
    }
}
