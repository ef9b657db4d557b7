//! The rows of a KCL's lease table, over time.

use leasehold::aws::dynamodb::types::AttributeValue;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// A lease as a scan showed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When it was scanned.
    pub at: Duration,
    /// `leaseKey`.
    pub lease: String,
    /// `leaseOwner`: the owner, and while a lease is handed over the next one.
    pub owner: Option<String>,
    /// `checkpointOwner`: who hands it over.
    pub from: Option<String>,
    /// `checkpoint`: a sequence number, or a word.
    pub checkpoint: String,
    /// `leaseCounter`.
    pub counter: u64,
}

impl Entry {
    /// Reads a row; nothing, if it is no lease.
    ///
    /// # Panics
    /// If a lease lacks an attribute required by the KCL's readers.
    pub fn read(at: Duration, row: &HashMap<String, AttributeValue>) -> Option<Self> {
        let text = |name: &str| row.get(name)?.as_s().ok().cloned();
        if text("entityType").is_some_and(|kind| kind != "LEASE") {
            return None;
        }
        let need = |name: &str| text(name).unwrap_or_else(|| panic!("expected {name} in {row:?}"));
        let counter = row.get("leaseCounter").and_then(|count| count.as_n().ok());
        let counter = counter.and_then(|count| count.parse().ok());
        Some(Self {
            at,
            lease: need("leaseKey"),
            owner: text("leaseOwner"),
            from: text("checkpointOwner"),
            checkpoint: need("checkpoint"),
            counter: counter.unwrap_or_else(|| panic!("expected leaseCounter in {row:?}")),
        })
    }

    /// The worker processing the shard, by its name before the colon; empty without a worker.
    pub fn holder(&self) -> &str {
        let owner = self.from.as_ref().or(self.owner.as_ref());
        owner.map_or("", |owner| owner.split(':').next().unwrap_or_default())
    }

    /// Whether the shard was processed to its end.
    pub fn finished(&self) -> bool {
        self.checkpoint == "SHARD_END"
    }

    /// How far it is: words come before numbers, except for the end.
    fn progress(&self) -> (u8, usize, &str) {
        let digits = self.checkpoint.trim_start_matches('0');
        match self.checkpoint.as_str() {
            "SHARD_END" => (2, 0, ""),
            text if text.bytes().all(|byte| byte.is_ascii_digit()) => (1, digits.len(), digits),
            _ => (0, 0, ""),
        }
    }
}

/// The leases of a table, each with its state at every scan with a change.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    leases: BTreeMap<String, Vec<Entry>>,
    present: Vec<String>,
}

impl Ledger {
    /// Takes what one scan found.
    pub fn scanned(&mut self, entries: impl Iterator<Item = Entry>) {
        self.present.clear();
        for entry in entries {
            self.present.push(entry.lease.clone());
            let history = self.leases.entry(entry.lease.clone()).or_default();
            let same = |last: &Entry| Entry { at: entry.at, ..last.clone() } == entry;
            if !history.last().is_some_and(same) {
                history.push(entry);
            }
        }
    }

    /// The leases of the last scan, in their state at that time.
    pub fn now(&self) -> BTreeMap<&str, &Entry> {
        let present = self.present.iter();
        present.filter_map(|lease| Some((lease.as_str(), self.leases.get(lease)?.last()?))).collect()
    }

    /// Who had each lease, in their order; empty for nobody.
    pub fn holders(&self) -> BTreeMap<&str, Vec<&str>> {
        let leases = self.leases.iter();
        leases
            .map(|(lease, history)| {
                let mut holders: Vec<&str> = history.iter().map(Entry::holder).collect();
                holders.dedup();
                (lease.as_str(), holders)
            })
            .collect()
    }

    /// The lease was taken from `worker` without a hand-over and without a release: when the table first showed the next
    /// owner. Libraries steal leases so, also from a worker at the end of its life.
    pub fn taken_from(&self, lease: &str, worker: &str) -> Option<Duration> {
        let history = self.leases.get(lease)?;
        let is_taken = |pair: &&[Entry]| {
            let next = pair[1].holder();
            pair[0].holder() == worker && !next.is_empty() && next != worker && pair[0].from.is_none()
        };
        history.windows(2).filter(is_taken).map(|pair| pair[1].at).next_back()
    }

    /// How often the table showed the beginning of a hand-over, before the owner's consent.
    pub fn handing_over(&self) -> usize {
        let begun = |pair: &[Entry]| pair[0].from.is_none() && pair[1].from.is_some();
        let histories = self.leases.values();
        histories.map(|history| history.windows(2).filter(|pair| begun(pair)).count()).sum()
    }

    /// Where a counter or a checkpoint went back.
    pub fn went_back(&self) -> Vec<String> {
        let back =
            |pair: &&[Entry]| pair[1].counter < pair[0].counter || pair[1].progress() < pair[0].progress();
        let histories = self.leases.values();
        let pairs = histories.flat_map(|history| history.windows(2).filter(back));
        pairs.map(|pair| format!("{:?} after {:?}", pair[1], pair[0])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(attributes: &[(&str, &str)]) -> HashMap<String, AttributeValue> {
        let value = |name: &str, text: &str| match name {
            "leaseCounter" => AttributeValue::N(text.to_owned()),
            _ => AttributeValue::S(text.to_owned()),
        };
        let attributes = attributes.iter();
        attributes.map(|(name, text)| ((*name).to_owned(), value(name, text))).collect()
    }

    fn entry(ms: u64, owner: &str, from: Option<&str>, checkpoint: &str, counter: u64) -> Entry {
        Entry {
            at: Duration::from_millis(ms),
            lease: "s".to_owned(),
            owner: Some(owner.to_owned()),
            from: from.map(str::to_owned),
            checkpoint: checkpoint.to_owned(),
            counter,
        }
    }

    fn ledger(entries: &[Entry]) -> Ledger {
        let mut ledger = Ledger::default();
        entries.iter().for_each(|entry| ledger.scanned([entry.clone()].into_iter()));
        ledger
    }

    #[test]
    fn a_lease_is_read_and_other_rows_are_not() {
        let lease = [
            ("leaseKey", "s"),
            ("leaseOwner", "b"),
            ("checkpointOwner", "lea:07"),
            ("checkpoint", "LATEST"),
            ("leaseCounter", "7"),
        ];
        let read = Entry::read(Duration::ZERO, &row(&lease)).unwrap();
        assert_eq!(read, entry(0, "b", Some("lea:07"), "LATEST", 7));
        assert_eq!(read.holder(), "lea");
        let other = [("leaseKey", "Leader"), ("entityType", "LEADER")];
        assert_eq!(Entry::read(Duration::ZERO, &row(&other)), None);
    }

    #[test]
    fn holders_are_told_in_their_order() {
        let ledger = ledger(&[
            entry(0, "a", None, "1", 1),
            entry(1, "a", None, "2", 2),
            entry(2, "b", Some("a"), "2", 2),
            entry(3, "b", None, "2", 3),
        ]);
        assert_eq!(ledger.holders()["s"], ["a", "b"]);
        assert_eq!(ledger.handing_over(), 1);
        assert_eq!(ledger.now()["s"].counter, 3);
    }

    #[test]
    fn a_lease_taken_is_told_from_a_lease_released_or_handed_over() {
        let taken = ledger(&[entry(0, "a", None, "1", 1), entry(7, "b", None, "1", 2)]);
        assert_eq!(taken.taken_from("s", "a"), Some(Duration::from_millis(7)));
        let released = [entry(0, "a", None, "1", 1), entry(1, "", None, "1", 2), entry(2, "b", None, "1", 3)];
        assert_eq!(ledger(&released).taken_from("s", "a"), None);
        let handed_over =
            [entry(0, "a", None, "1", 1), entry(1, "b", Some("a"), "1", 1), entry(2, "b", None, "1", 2)];
        assert_eq!(ledger(&handed_over).taken_from("s", "a"), None);
    }

    #[test]
    fn a_shard_gone_from_the_table_is_not_there_now() {
        let mut ledger = ledger(&[entry(0, "a", None, "SHARD_END", 1)]);
        assert!(ledger.now()["s"].finished());
        ledger.scanned(std::iter::empty());
        assert!(ledger.now().is_empty());
    }

    #[test]
    fn checkpoints_and_counters_that_go_back_are_found() {
        let good = ["TRIM_HORIZON", "9", "10", "10", "SHARD_END"];
        let good: Vec<Entry> = (0..).zip(good).map(|(n, at)| entry(n, "a", None, at, n)).collect();
        assert_eq!(ledger(&good).went_back(), Vec::<String>::new());
        for (first, then) in [(("10", 1), ("9", 2)), (("SHARD_END", 1), ("9", 2)), (("9", 2), ("9", 1))] {
            let bad = [first, then].map(|(at, counter)| entry(counter, "a", None, at, counter));
            assert_eq!(ledger(&bad).went_back().len(), 1, "{bad:?}");
        }
    }
}
