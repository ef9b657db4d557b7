//! Rows that name another stream than the one that is read, and whether the name alone is wrong.

use super::{Deed, Step, View};
use crate::ids::LeaseKey;
use crate::position::Checkpoint;
use crate::row::LeaseRow;
use crate::shard::Shard;
use crate::stream_id::StreamId;
use crate::stream_identity::StreamIdentity;
use std::collections::BTreeMap;

/// The rows of a table that name one and the same other stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misnamed {
    /// The stream that they name.
    pub named: StreamIdentity,
    /// Their leases.
    pub leases: Vec<LeaseKey>,
    /// What is wrong: the name, or the table.
    pub naming: Naming,
}

/// What is wrong with rows that name another stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Naming {
    /// They are of another stream, by its name, its account or its region.
    Other,
    /// They are of an earlier or a later stream of the same name: of this lease, something does not fit the stream's shards.
    MadeAnew {
        /// The lease.
        lease: LeaseKey,
        /// What was expected of it, and what was found.
        why: String,
    },
    /// The stream of the same name was created at another time, and nothing in the rows shows whether they are of this one or of that one.
    Unproven,
    /// They are of the stream: all fits its shards but the time of its creation. The steps correct that name.
    Name(Vec<Step>),
}

/// Rows that name another stream than `now`, which the service describes; a worker refuses a table with such rows. `shards` is the
/// whole list of the stream's shards, and `id` its identifier in an application of several.
pub fn misnamed(view: &View, shards: &[Shard], now: &StreamIdentity, id: Option<&StreamId>) -> Vec<Misnamed> {
    let mut by_name: BTreeMap<&StreamIdentity, Vec<&LeaseRow>> = BTreeMap::new();
    for row in view.leases.values() {
        if let Some(named) = &row.stream {
            let other = named.is_another(now) || id.is_some_and(|id| !named.is_of(id));
            if other {
                by_name.entry(named).or_default().push(row);
            }
        }
    }
    let listed: BTreeMap<&str, &Shard> = shards.iter().map(|shard| (shard.id.as_str(), shard)).collect();
    let of = |(named, rows): (&StreamIdentity, Vec<&LeaseRow>)| Misnamed {
        named: named.clone(),
        leases: rows.iter().map(|row| row.key.clone()).collect(),
        naming: judge(named, &rows, &listed, now, id),
    };
    by_name.into_iter().map(of).collect()
}

fn judge(
    named: &StreamIdentity,
    rows: &[&LeaseRow],
    listed: &BTreeMap<&str, &Shard>,
    now: &StreamIdentity,
    id: Option<&StreamId>,
) -> Naming {
    if !named.differs_in_time_alone(now) {
        return Naming::Other;
    }
    if let (Some(id), Some(row)) = (id.filter(|id| !now.is_of(id)), rows.first()) {
        return Naming::MadeAnew {
            lease: row.key.clone(),
            why: format!("its key names stream {id}"),
        };
    }
    let misfit = rows
        .iter()
        .find_map(|row| Some((row.key.clone(), misfit(row, listed)?)));
    if let Some((lease, why)) = misfit {
        return Naming::MadeAnew { lease, why };
    }
    // A number is proof: an earlier stream of the name had smaller ones. A place without a number is the same in every stream.
    if !rows.iter().any(|row| row.checkpoint.position().is_some()) {
        return Naming::Unproven;
    }
    let step = |row: &&LeaseRow| Step {
        lease: row.key.clone(),
        deed: Deed::Name(now.clone()),
        seen: Some((*row).clone()),
        follows: vec!["its owner and its checkpoint stay as they are".to_owned()],
    };
    Naming::Name(rows.iter().map(step).collect())
}

/// What of a row does not fit the shards of the stream.
fn misfit(row: &LeaseRow, listed: &BTreeMap<&str, &Shard>) -> Option<String> {
    let Some(shard) = listed.get(row.key.as_str()) else {
        // The stream may have forgotten what was read to its end.
        return (!row.checkpoint.is_end()).then(|| "its shard is not listed".to_owned());
    };
    if let Some(range) = row.range.filter(|range| *range != shard.range) {
        return Some(format!(
            "expected the hash keys {} to {}, as its shard has them, found {} to {}",
            shard.range.start, shard.range.end, range.start, range.end
        ));
    }
    let found = row.checkpoint;
    match found {
        Checkpoint::At(position) if position.sequence < shard.starting => Some(format!(
            "expected a number of its shard, which begins at {}, found {found}",
            shard.starting
        )),
        Checkpoint::At(position) => {
            let ending = shard.ending.filter(|ending| position.sequence > *ending)?;
            Some(format!(
                "expected a number of its shard, which ends at {ending}, found {found}"
            ))
        }
        Checkpoint::ShardEnd if shard.is_open() => {
            Some("it was read to its end, and its shard is open".to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Format, LeaseFormat};
    use crate::position::Position;
    use crate::row::{Change, RowRead};
    use crate::shard::HashRange;
    use crate::table::Item;
    use crate::time::Wall;

    const ARN: &str = "arn:aws:kinesis:eu-central-1:123456789012:stream/orders";

    fn of(arn: &str, seconds: i64) -> StreamIdentity {
        StreamIdentity::new(arn, Wall(seconds * 1_000)).unwrap()
    }

    fn at(number: u64) -> Checkpoint {
        Checkpoint::At(Position::of(number.into()))
    }

    /// Shard `b` is closed, `a` is open.
    fn shards() -> Vec<Shard> {
        let shard = |id: &str, ending: Option<u64>| Shard {
            id: id.into(),
            parent: None,
            adjacent_parent: None,
            range: HashRange::ALL,
            starting: 100.into(),
            ending: ending.map(Into::into),
        };
        vec![
            shard("shardId-000000000000", None),
            shard("shardId-000000000001", Some(199)),
        ]
    }

    fn row(n: u64, checkpoint: Checkpoint, named: Option<StreamIdentity>) -> LeaseRow {
        LeaseRow {
            counter: 7,
            range: Some(HashRange::ALL),
            stream: named,
            ..LeaseRow::new(format!("shardId-{n:012}").into(), checkpoint)
        }
    }

    fn naming(rows: &[LeaseRow]) -> Naming {
        let view: View = rows.iter().cloned().map(RowRead::Lease).collect();
        let mut found = misnamed(&view, &shards(), &of(ARN, 8), None);
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0).naming
    }

    #[test]
    fn rows_that_name_the_stream_or_none_are_well() {
        let rows = [
            row(0, at(150), Some(of(ARN, 8))),
            row(1, at(150), Some(of("orders", 8))),
            row(2, at(1), None),
        ];
        let view: View = rows.into_iter().map(RowRead::Lease).collect();
        assert_eq!(misnamed(&view, &shards(), &of(ARN, 8), None), []);
    }

    #[test]
    fn a_wrong_time_alone_is_corrected_where_numbers_fit() {
        let rows = [
            row(0, at(150), Some(of(ARN, 7))),
            row(1, Checkpoint::ShardEnd, Some(of(ARN, 7))),
            row(2, Checkpoint::ShardEnd, Some(of(ARN, 7))),
        ];
        let Naming::Name(steps) = naming(&rows) else {
            panic!("{:?}", naming(&rows))
        };
        assert_eq!(steps.len(), 3);
        assert!(
            steps[0].to_string().contains("created 1970-01-01T00:00:08Z"),
            "{}",
            steps[0]
        );
    }

    #[test]
    fn what_does_not_fit_is_of_another_stream() {
        let named = || Some(of(ARN, 7));
        let fits = row(0, at(150), named());
        let other_range = LeaseRow {
            range: Some(HashRange {
                start: HashRange::ALL.start,
                end: HashRange::ALL.start,
            }),
            ..row(1, at(150), named())
        };
        for (bad, part) in [
            (row(1, at(99), named()), "begins at 100, found 99"),
            (row(1, at(200), named()), "ends at 199, found 200"),
            (row(9, at(150), named()), "not listed"),
            (other_range, "hash keys"),
        ] {
            let found = naming(&[fits.clone(), bad]);
            assert!(
                matches!(&found, Naming::MadeAnew { why, .. } if why.contains(part)),
                "{found:?}"
            );
        }
        let found = naming(&[row(0, Checkpoint::ShardEnd, named()), row(1, at(150), named())]);
        assert!(
            matches!(&found, Naming::MadeAnew { why, .. } if why.contains("open")),
            "{found:?}"
        );
    }

    #[test]
    fn another_name_is_told_and_places_without_numbers_prove_nothing() {
        let other = "arn:aws:kinesis:eu-central-1:123456789012:stream/returns";
        assert_eq!(naming(&[row(0, at(150), Some(of(other, 8)))]), Naming::Other);
        for checkpoint in [Checkpoint::TrimHorizon, Checkpoint::Latest] {
            assert_eq!(naming(&[row(0, checkpoint, Some(of(ARN, 7)))]), Naming::Unproven);
        }
    }

    #[test]
    fn a_row_of_several_streams_agrees_with_its_key() {
        let now = of(ARN, 8);
        let id: StreamId = "123456789012:orders:8".parse().unwrap();
        let earlier: StreamId = "123456789012:orders:7".parse().unwrap();
        let found = |id: &StreamId, named: StreamIdentity| {
            let listed: Vec<Shard> = shards()
                .into_iter()
                .map(|shard| id.qualify_shard(shard))
                .collect();
            let row = LeaseRow {
                stream: Some(named),
                ..LeaseRow::new(id.lease("shardId-000000000000"), at(150))
            };
            let view: View = [RowRead::Lease(row)].into_iter().collect();
            let mut found = misnamed(&view, &listed, &now, Some(id));
            found.pop().map(|found| found.naming)
        };
        assert_eq!(found(&id, of(ARN, 8)), None);
        assert!(matches!(found(&id, of(ARN, 7)), Some(Naming::Name(_))));
        assert!(matches!(
            found(&earlier, of(ARN, 7)),
            Some(Naming::MadeAnew { .. })
        ));
    }

    /// In every format: the name alone changes, and neither a row that moved nor one of another name is touched.
    #[test]
    fn a_correction_is_guarded_by_what_was_read() {
        let places = [
            at(150),
            Checkpoint::TrimHorizon,
            Checkpoint::Latest,
            Checkpoint::ShardEnd,
        ];
        for kind in Format::ALL {
            for checkpoint in places {
                let named = row(1, checkpoint, Some(of(ARN, 7)));
                let change = corrected(kind, &named);
                let moved = LeaseRow {
                    counter: 8,
                    ..named.clone()
                };
                let other = LeaseRow {
                    stream: Some(of(ARN, 6)),
                    ..named.clone()
                };
                let ahead = LeaseRow {
                    checkpoint: at(151),
                    ..named
                };
                for other in [moved, other, ahead] {
                    let refused = kind.encode(&change).carry_out(&mut created(kind, other));
                    assert!(refused.is_err(), "{kind} {checkpoint}");
                }
                let refused = kind.encode(&change).carry_out(&mut None);
                assert!(refused.is_err(), "{kind}: no row");
            }
        }
    }

    fn created(kind: Format, row: LeaseRow) -> Option<Item> {
        let mut item: Option<Item> = None;
        let change = Change::Create(Box::new(row));
        kind.encode(&change).carry_out(&mut item).unwrap();
        item
    }

    /// Corrects the name of a row, once. Gives the change.
    fn corrected(kind: Format, named: &LeaseRow) -> Change {
        let read = |item: &Option<Item>| match kind.decode(item.as_ref().unwrap()) {
            RowRead::Lease(row) => row,
            other => panic!("{other:?}"),
        };
        let mut item = created(kind, named.clone());
        let seen = read(&item);
        let step = Step {
            lease: seen.key.clone(),
            deed: Deed::Name(of(ARN, 8)),
            seen: Some(seen.clone()),
            follows: Vec::new(),
        };
        let change = step.change(Some(&seen), kind.policies().life, Wall(9)).unwrap();
        kind.encode(&change).carry_out(&mut item).unwrap();
        let (stream, after) = (Some(of(ARN, 8)), read(&item));
        assert_eq!(after, LeaseRow { stream, ..seen }, "{kind}");
        assert!(step.is_done(&change, Some(&after)));
        let twice = kind.encode(&change).carry_out(&mut item);
        assert!(twice.is_err(), "{kind}: made twice");
        let late = step.change(Some(&after), kind.policies().life, Wall(9));
        assert!(late.unwrap_err().contains("expected stream"));
        change
    }
}
