//! Rows that name a different stream than the stream being read, and whether the name alone is wrong.

use super::{Deed, Step, View};
use crate::ids::LeaseKey;
use crate::position::Checkpoint;
use crate::row::LeaseRow;
use crate::shard::Shard;
use crate::stream_id::StreamId;
use crate::stream_identity::StreamIdentity;
use crate::sync;
use std::collections::BTreeMap;

/// The rows of a table with one and the same wrong stream name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misnamed {
    /// The stream in the rows.
    pub named: StreamIdentity,
    /// Their leases.
    pub leases: Vec<LeaseKey>,
    /// The fault: the name, or the table.
    pub naming: Naming,
}

/// The fault of rows that name another stream: the name alone, or the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Naming {
    /// The rows name a stream with another name, account or region.
    Other,
    /// The rows are of an earlier or a later stream of the same name: the row of this lease does not fit the stream's shards.
    MadeAnew {
        /// The lease.
        lease: LeaseKey,
        /// How the row does not fit.
        why: String,
    },
    /// The rows fit, but the row of this lease may be of an earlier stream of the same name, and reading on from the row would then skip
    /// records.
    Unproven {
        /// The lease.
        lease: LeaseKey,
    },
    /// The rows are of the stream, and the time of creation in their name is wrong. The steps correct the name.
    Name(Vec<Step>),
}

/// The rows with another name than `now`, the identity described by the service. A worker refuses a table with such
/// rows. `shards` are all shards of the stream, and `id` is the identifier of the stream in an application of several.
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
    named: &StreamIdentity, rows: &[&LeaseRow], listed: &BTreeMap<&str, &Shard>, now: &StreamIdentity,
    id: Option<&StreamId>,
) -> Naming {
    if !named.differs_in_time_alone(now) {
        return Naming::Other;
    }
    if let (Some(id), Some(row)) = (id.filter(|id| !now.is_of(id)), rows.first()) {
        return Naming::MadeAnew { lease: row.key.clone(), why: format!("its key names stream {id}") };
    }
    let compared = sync::compare(rows.iter().copied(), listed, |_| sync::Judged::ALL);
    if let Some(misfit) = compared.worst() {
        return Naming::MadeAnew { lease: misfit.lease.clone(), why: misfit.detail.clone() };
    }
    if let Some(row) = rows.iter().find(|row| is_lost(row, listed)) {
        return Naming::MadeAnew { lease: row.key.clone(), why: "its shard is not listed".to_owned() };
    }
    let proof = Proof::new(rows, listed);
    if let Some(row) = rows.iter().find(|row| !proof.is_safe(row)) {
        return Naming::Unproven { lease: row.key.clone() };
    }
    let step = |row: &&LeaseRow| Step {
        lease: row.key.clone(),
        deed: Deed::Name(now.clone()),
        seen: Some((*row).clone()),
        follows: vec!["its owner and its checkpoint stay as they are".to_owned()],
    };
    Naming::Name(rows.iter().map(step).collect())
}

/// Whether the shard of an unfinished row is not listed. The stream may have forgotten a finished shard.
fn is_lost(row: &LeaseRow, listed: &BTreeMap<&str, &Shard>) -> bool {
    !row.checkpoint.is_end() && !listed.contains_key(row.key.as_str())
}

/// The rows that cannot be of an earlier stream, since sequence numbers grow from stream to stream.
struct Proof<'a> {
    rows: BTreeMap<&'a str, &'a LeaseRow>,
    listed: &'a BTreeMap<&'a str, &'a Shard>,
}

impl<'a> Proof<'a> {
    fn new(rows: &[&'a LeaseRow], listed: &'a BTreeMap<&'a str, &'a Shard>) -> Self {
        let rows = rows.iter().map(|row| (row.key.as_str(), *row)).collect();
        Self { rows, listed }
    }

    /// Whether reading on from a row skips no record of this stream, given that the row fits the row's shard.
    fn is_safe(&self, row: &LeaseRow) -> bool {
        match row.checkpoint {
            // From the horizon the whole shard is read, and a number is of this stream.
            Checkpoint::TrimHorizon | Checkpoint::At(_) => true,
            // A moment is the same in every stream.
            Checkpoint::Latest | Checkpoint::AtTimestamp => false,
            Checkpoint::ShardEnd => {
                !self.listed.contains_key(row.key.as_str()) || self.is_below_proved(row.key.as_str())
            }
        }
    }

    /// Whether a child, or a child of a child, has a number: a shard begins to be read when its parents were read to their ends.
    fn is_below_proved(&self, parent: &str) -> bool {
        // A child is younger than its parent, whatever a damaged list says.
        let children = self
            .listed
            .values()
            .filter(|shard| shard.id.as_str() > parent && shard.parents().any(|id| id.as_str() == parent));
        let proved = |child: &&Shard| match self.rows.get(child.id.as_str()).map(|row| row.checkpoint) {
            Some(Checkpoint::At(_)) => true,
            Some(Checkpoint::ShardEnd) => self.is_below_proved(child.id.as_str()),
            _ => false,
        };
        children.copied().any(|child| proved(&child))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Format, LeaseFormat};
    use crate::row::{Change, RowRead};
    use crate::shard::HashRange;
    use crate::table::Item;
    use crate::testkit::at;
    use crate::time::Wall;

    const ARN: &str = "arn:aws:kinesis:eu-central-1:123456789012:stream/orders";

    fn of(arn: &str, seconds: i64) -> StreamIdentity {
        StreamIdentity::new(arn, Wall(seconds * 1_000)).unwrap()
    }

    /// Shard 1 is closed, and shard 2 is its child.
    fn shards() -> Vec<Shard> {
        let shard = |id: &str, parent: Option<&str>, last: Option<u64>| {
            crate::testkit::shard(id, parent, HashRange::ALL, 100, last)
        };
        vec![
            shard("shardId-000000000000", None, None),
            shard("shardId-000000000001", None, Some(199)),
            shard("shardId-000000000002", Some("shardId-000000000001"), None),
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
        let rows =
            [row(0, at(150), Some(of(ARN, 8))), row(1, at(150), Some(of("orders", 8))), row(2, at(1), None)];
        let view: View = rows.into_iter().map(RowRead::Lease).collect();
        assert_eq!(misnamed(&view, &shards(), &of(ARN, 8), None), []);
    }

    #[test]
    fn a_wrong_time_alone_is_corrected_where_each_row_fits() {
        let rows = [
            row(0, at(150), Some(of(ARN, 7))),
            row(1, Checkpoint::ShardEnd, Some(of(ARN, 7))),
            row(2, at(250), Some(of(ARN, 7))),
            row(9, Checkpoint::ShardEnd, Some(of(ARN, 7))),
        ];
        let Naming::Name(steps) = naming(&rows) else { panic!("{:?}", naming(&rows)) };
        assert_eq!(steps.len(), 4);
        assert!(steps[0].to_string().contains("created 1970-01-01T00:00:08Z"), "{}", steps[0]);
    }

    #[test]
    fn a_row_that_does_not_fit_is_of_another_stream() {
        let named = || Some(of(ARN, 7));
        let fits = row(0, at(150), named());
        let other_range = LeaseRow {
            range: Some(HashRange { start: HashRange::ALL.start, end: HashRange::ALL.start }),
            ..row(1, at(150), named())
        };
        for (bad, part) in [
            (row(1, at(99), named()), "before the first number of its shard, 100"),
            (row(1, at(200), named()), "after the last number"),
            (row(9, at(150), named()), "not listed"),
            (row(2, Checkpoint::ShardEnd, named()), "open"),
            (other_range, "hash keys"),
        ] {
            let found = naming(&[fits.clone(), bad.clone()]);
            assert!(
                matches!(&found, Naming::MadeAnew { why, .. } if why.contains(part)),
                "{part}: {found:?}"
            );
        }
    }

    /// A finished row of an earlier stream, renamed, would leave the shard of this stream unread.
    #[test]
    fn a_row_that_may_be_of_an_earlier_stream_is_renamed_by_nobody() {
        let named = || Some(of(ARN, 7));
        let other = "arn:aws:kinesis:eu-central-1:123456789012:stream/returns";
        assert_eq!(naming(&[row(0, at(150), Some(of(other, 8)))]), Naming::Other);
        let ended = || row(1, Checkpoint::ShardEnd, named());
        for (rows, safe) in [
            (vec![row(0, Checkpoint::TrimHorizon, named())], true),
            (vec![row(0, Checkpoint::Latest, named())], false),
            (vec![row(0, at(150), named()), row(2, Checkpoint::Latest, named())], false),
            (vec![row(0, at(150), named()), ended()], false),
            (vec![row(0, at(150), named()), ended(), row(2, Checkpoint::TrimHorizon, named())], false),
            (vec![ended(), row(2, at(250), named())], true),
        ] {
            let found = naming(&rows);
            assert_eq!(matches!(found, Naming::Name(_)), safe, "{found:?}");
            assert_eq!(matches!(found, Naming::Unproven { .. }), !safe, "{found:?}");
        }
    }

    #[test]
    fn a_row_of_several_streams_agrees_with_its_key() {
        let now = of(ARN, 8);
        let id: StreamId = "123456789012:orders:8".parse().unwrap();
        let earlier: StreamId = "123456789012:orders:7".parse().unwrap();
        let found = |id: &StreamId, named: StreamIdentity| {
            let listed: Vec<Shard> = shards().into_iter().map(|shard| id.qualify_shard(shard)).collect();
            let row =
                LeaseRow { stream: Some(named), ..LeaseRow::new(id.lease("shardId-000000000000"), at(150)) };
            let view: View = [RowRead::Lease(row)].into_iter().collect();
            let mut found = misnamed(&view, &listed, &now, Some(id));
            found.pop().map(|found| found.naming)
        };
        assert_eq!(found(&id, of(ARN, 8)), None);
        assert!(matches!(found(&id, of(ARN, 7)), Some(Naming::Name(_))));
        assert!(matches!(found(&earlier, of(ARN, 7)), Some(Naming::MadeAnew { .. })));
    }

    /// In every format: the name alone changes; a moved row and a row with a third name stay untouched.
    #[test]
    fn a_correction_is_guarded_by_what_was_read() {
        let places = [at(150), Checkpoint::TrimHorizon, Checkpoint::Latest, Checkpoint::ShardEnd];
        for kind in Format::ALL {
            for checkpoint in places {
                let named = row(1, checkpoint, Some(of(ARN, 7)));
                let change = corrected(kind, &named);
                let moved = LeaseRow { counter: 8, ..named.clone() };
                let other = LeaseRow { stream: Some(of(ARN, 6)), ..named.clone() };
                let ahead = LeaseRow { checkpoint: at(151), ..named };
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
