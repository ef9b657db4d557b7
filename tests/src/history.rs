//! A fleet's processing, in printed order and with printing times: hand-overs, standstills, repeats, holes.

use crate::member::Printed;
use crate::producer::Put;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

/// A record that a worker printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// When, since the watch began.
    pub at: Duration,
    /// Which worker.
    pub worker: String,
    /// The record.
    pub record: Printed,
    /// The time from the record's arrival in the stream, if the worker tells the arrival.
    pub late: Option<Duration>,
}

/// The reason for a shard's move from one worker to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The former owner was asked to leave.
    Left,
    /// The former owner was killed.
    Killed,
    /// The new owner took the lease from a running owner.
    Taken,
}

/// Which workers were stopped, when, and how.
pub type Ends = BTreeMap<String, (Duration, Cause)>;

/// A shard's move from one worker to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handover {
    /// The shard.
    pub shard: String,
    /// Who read it before.
    pub from: String,
    /// The new reader. The same worker, if the worker lost the shard and regained the shard without a reader in
    /// between.
    pub to: String,
    /// Why.
    pub cause: Cause,
    /// The first record of the new owner.
    pub at: Duration,
    /// The time from the last printed record to `at`.
    pub standstill: Duration,
    /// How long after `at` the former owner went on.
    pub overlap: Duration,
    /// How many records were printed once more, by either of them, until the next hand-over.
    pub repeats: usize,
}

/// One worker's time with a shard.
struct Tenure<'a> {
    worker: &'a str,
    session: u64,
}

/// All hand-overs, by shard and in their order.
pub fn handovers(seen: &[Seen], ends: &Ends) -> Vec<Handover> {
    let mut shards: BTreeMap<&str, Vec<&Seen>> = BTreeMap::new();
    for record in seen {
        shards.entry(&record.record.shard).or_default().push(record);
    }
    let mut handovers: Vec<Handover> = shards.values().flat_map(|seen| of_shard(seen)).collect();
    for handover in &mut handovers {
        if let Some((_, cause)) = ends.get(&handover.from).filter(|(at, _)| *at <= handover.at) {
            handover.cause = *cause;
        }
    }
    handovers
}

/// The hand-overs of one shard, as if no worker had been stopped.
fn of_shard(seen: &[&Seen]) -> Vec<Handover> {
    let mut tenures: Vec<Tenure<'_>> = Vec::new();
    let mut handovers: Vec<Handover> = Vec::new();
    let mut printed = BTreeSet::new();
    let mut last = Duration::ZERO;
    for record in seen {
        let session = record.record.session;
        let known =
            tenures.iter().position(|tenure| tenure.worker == record.worker && tenure.session == session);
        match (known, tenures.last()) {
            // The last hand-over began the last tenure.
            (Some(index), _) => {
                if let Some(next) = handovers.get_mut(index) {
                    next.overlap = record.at.saturating_sub(next.at);
                }
            }
            (None, former) => {
                handovers.extend(former.map(|former| Handover {
                    shard: record.record.shard.clone(),
                    from: former.worker.to_owned(),
                    to: record.worker.clone(),
                    cause: Cause::Taken,
                    at: record.at,
                    standstill: record.at.saturating_sub(last),
                    overlap: Duration::ZERO,
                    repeats: 0,
                }));
                tenures.push(Tenure { worker: &record.worker, session });
            }
        }
        if !printed.insert(&record.record.sequence)
            && let Some(handover) = handovers.last_mut()
        {
            handover.repeats += 1;
        }
        last = record.at;
    }
    handovers
}

/// Records that nobody printed.
pub fn missing(seen: &[Seen], put: &Put) -> Vec<String> {
    let printed: BTreeSet<(&str, &str)> =
        seen.iter().map(|seen| (seen.record.sequence.as_str(), seen.record.data.as_str())).collect();
    let all = put.iter().flat_map(|(shard, records)| records.iter().map(move |record| (shard, record)));
    all.filter(|(_, (sequence, data))| !printed.contains(&(sequence.as_str(), data.as_str())))
        .map(|(shard, (sequence, data))| format!("{shard} {sequence} {data}"))
        .collect()
}

/// Places where a worker, within one holding of a shard, printed a record other than the next record of the shard.
pub fn holes(seen: &[Seen], put: &Put) -> Vec<String> {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for records in put.values() {
        places.extend(records.iter().zip(0..).map(|((sequence, _), place)| (sequence.as_str(), place)));
    }
    let mut expected: BTreeMap<(&str, &str, u64), usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for Seen { worker, record, .. } in seen {
        let Some(&place) = places.get(record.sequence.as_str()) else {
            wrong.push(format!("{worker} printed {record:?}, which was never put"));
            continue;
        };
        let tenure = (worker.as_str(), record.shard.as_str(), record.session);
        if let Some(next) = expected.insert(tenure, place + 1)
            && next != place
        {
            wrong.push(format!("{worker} printed record {place} where {next} was next: {record:?}"));
        }
    }
    wrong
}

/// The hand-overs as a table.
pub fn table(handovers: &[Handover]) -> String {
    let mut out =
        "     at ms  shard  from     to       cause   standstill ms  overlap ms  repeats\n".to_owned();
    for handover in handovers {
        let shard = handover.shard.trim_start_matches("shardId-").trim_start_matches('0');
        let _ = writeln!(
            out,
            "{:>10}  {:>5}  {:<7}  {:<7}  {:<6}  {:>13}  {:>10}  {:>7}",
            handover.at.as_millis(),
            if shard.is_empty() { "0" } else { shard },
            handover.from,
            handover.to,
            format!("{:?}", handover.cause).to_lowercase(),
            handover.standstill.as_millis(),
            handover.overlap.as_millis(),
            handover.repeats
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(ms: u64, worker: &str, session: u64, sequence: u32) -> Seen {
        Seen {
            at: Duration::from_millis(ms),
            worker: worker.to_owned(),
            record: Printed {
                shard: "shardId-000000000000".to_owned(),
                sequence: sequence.to_string(),
                data: format!("{sequence:06}"),
                session,
                arrival: None,
            },
            late: None,
        }
    }

    fn put(sequences: std::ops::Range<u32>) -> Put {
        let records = sequences.map(|n| (n.to_string(), format!("{n:06}")));
        [("shardId-000000000000".to_owned(), records.collect())].into()
    }

    /// Standstill, overlap and repeats of each hand-over.
    fn measured(seen: &[Seen]) -> Vec<(String, u64, u64, usize)> {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap();
        handovers(seen, &Ends::new())
            .iter()
            .map(|h| (format!("{}-{}", h.from, h.to), ms(h.standstill), ms(h.overlap), h.repeats))
            .collect()
    }

    #[test]
    fn one_worker_hands_nothing_over() {
        assert_eq!(measured(&[seen(1, "a", 1, 1), seen(5, "a", 1, 2)]), []);
    }

    #[test]
    fn a_shard_stands_from_its_last_record_to_the_next_owners_first() {
        let all = [
            seen(10, "a", 1, 1),
            seen(20, "a", 1, 2),
            seen(320, "b", 4, 3),
            seen(330, "b", 4, 4),
            seen(400, "a", 2, 4),
            seen(410, "a", 2, 5),
        ];
        assert_eq!(measured(&all), [("a-b".to_owned(), 300, 0, 0), ("b-a".to_owned(), 70, 0, 1)]);
    }

    #[test]
    fn a_former_owner_that_goes_on_overlaps_and_repeats() {
        let all = [
            seen(10, "a", 1, 1),
            seen(20, "b", 1, 2),
            seen(25, "a", 1, 2),
            seen(30, "a", 1, 3),
            seen(35, "b", 1, 3),
        ];
        assert_eq!(measured(&all), [("a-b".to_owned(), 10, 10, 2)]);
    }

    #[test]
    fn another_session_of_the_same_worker_is_a_hand_over() {
        let all = [seen(10, "a", 1, 1), seen(60, "a", 2, 1)];
        assert_eq!(measured(&all), [("a-a".to_owned(), 50, 0, 1)]);
    }

    #[test]
    fn a_shard_is_taken_unless_its_owner_was_stopped_before() {
        let all = [seen(10, "a", 1, 1), seen(20, "b", 1, 2), seen(30, "c", 1, 3)];
        let at = Duration::from_millis;
        let ends = [("a", (at(15), Cause::Left)), ("b", (at(31), Cause::Killed))];
        let ends: Ends = ends.map(|(worker, end)| (worker.to_owned(), end)).into();
        let causes: Vec<Cause> = handovers(&all, &ends).iter().map(|h| h.cause).collect();
        assert_eq!(causes, [Cause::Left, Cause::Taken]);
    }

    #[test]
    fn an_unprinted_record_is_missing() {
        let all = [seen(1, "a", 1, 1), seen(2, "b", 1, 3)];
        assert_eq!(missing(&all, &put(1..4)), ["shardId-000000000000 2 000002"]);
        assert_eq!(missing(&all, &put(3..4)), Vec::<String>::new());
    }

    #[test]
    fn a_session_has_no_hole_and_goes_never_back() {
        let good = [seen(1, "a", 1, 1), seen(2, "b", 1, 1), seen(3, "a", 1, 2), seen(4, "a", 2, 1)];
        assert_eq!(holes(&good, &put(1..4)), Vec::<String>::new());
        for bad in [[1, 3], [2, 1], [2, 2], [2, 9]] {
            let bad = bad.map(|sequence| seen(1, "a", 1, sequence));
            assert_eq!(holes(&bad, &put(1..4)).len(), 1, "{bad:?}");
        }
    }

    #[test]
    fn the_table_names_shards_by_number() {
        let all = [seen(10, "lea", 1, 1), seen(1_060, "anna", 2, 1)];
        let table = table(&handovers(&all, &Ends::new()));
        assert_eq!(
            table.lines().nth(1),
            Some("      1060      0  lea      anna     taken            1050           0        1")
        );
    }
}
