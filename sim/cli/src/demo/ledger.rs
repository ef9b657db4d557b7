//! The books of the demo: records put, records processed, and their order.

use serde::{Deserialize, Serialize};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A record's content: its partition key, and its number within the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// The number of the partition key.
    pub key: usize,
    /// Counts the records of the key, from 0.
    pub n: u32,
}

impl Entry {
    pub(super) fn to_bytes(self) -> Vec<u8> {
        // Two numbers always have a JSON form.
        serde_json::to_vec(&self).unwrap_or_default()
    }

    pub(super) fn from_bytes(data: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(data)
    }
}

/// The records put into the stream and processed from it.
#[derive(Debug)]
pub(super) struct Ledger(Mutex<Books>);

#[derive(Debug)]
struct Books {
    keys: Vec<Key>,
    /// Without the missing records, which are counted from the keys.
    totals: Totals,
}

#[derive(Clone, Debug, Default)]
struct Key {
    put: u32,
    /// Whether a record was processed, by its number.
    done: Vec<bool>,
}

/// The sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub put: u64,
    /// Different processed records.
    pub processed: u64,
    /// Repeats of processed records.
    pub duplicates: u64,
    /// Records put but not processed.
    pub missing: u64,
    /// Records processed for the first time after a later one of their key.
    pub out_of_order: u64,
}

impl Ledger {
    /// Empty books for so many partition keys.
    pub(super) fn new(keys: usize) -> Self {
        Self(Mutex::new(Books { keys: vec![Key::default(); keys], totals: Totals::default() }))
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the next record of this key in the stream.
    pub(super) fn put(&self, key: usize) {
        let mut books = self.books();
        if let Some(key) = books.keys.get_mut(key) {
            key.put += 1;
            books.totals.put += 1;
        }
    }

    /// Counts a processed record. False if the producer cannot have put the record.
    pub(super) fn processed(&self, entry: Entry) -> bool {
        let mut books = self.books();
        let Some(key) = books.keys.get_mut(entry.key) else {
            return false;
        };
        let n = entry.n as usize;
        // A worker may process a record before the producer hears of its put: one record beyond the known count.
        if n > key.put as usize {
            return false;
        }
        let later = key.done.len() > n;
        if !later {
            key.done.resize(n + 1, false);
        }
        if std::mem::replace(&mut key.done[n], true) {
            books.totals.duplicates += 1;
        } else {
            books.totals.processed += 1;
            books.totals.out_of_order += u64::from(later);
        }
        true
    }

    pub(super) fn totals(&self) -> Totals {
        let books = self.books();
        let missing = books.keys.iter().map(|key| {
            let put = key.put as usize;
            let done = key.done.iter().take(put).filter(|done| **done).count();
            (put - done) as u64
        });
        Totals { missing: missing.sum(), ..books.totals }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(put: u32) -> Ledger {
        let ledger = Ledger::new(2);
        for _ in 0..put {
            ledger.put(1);
        }
        ledger
    }

    #[test]
    fn loss_repeats_and_disorder_are_told_apart() {
        let totals = |processed, missing, duplicates, out_of_order| Totals {
            put: 3,
            processed,
            duplicates,
            missing,
            out_of_order,
        };
        for (case, numbers, expected) in [
            ("in order", &[0, 1, 2][..], totals(3, 0, 0, 0)),
            ("a record never came, though a later one came", &[0, 2], totals(2, 1, 0, 0)),
            ("a first time after a later record", &[0, 2, 1], totals(3, 0, 0, 1)),
            ("records are read again, which is no disorder", &[0, 1, 0, 1, 2], totals(3, 0, 2, 0)),
        ] {
            let ledger = ledger(3);
            assert!(numbers.iter().all(|n| ledger.processed(Entry { key: 1, n: *n })), "{case}");
            assert_eq!(ledger.totals(), expected, "{case}");
        }
    }

    #[test]
    fn a_record_that_the_producer_did_not_put_is_refused() {
        let ledger = ledger(1);
        assert!(!ledger.processed(Entry { key: 7, n: 0 }));
        assert!(!ledger.processed(Entry { key: 1, n: 5 }));
        assert!(ledger.processed(Entry { key: 1, n: 1 }), "not acknowledged to the producer yet");
    }

    #[test]
    fn entries_survive_the_stream() {
        let entry = Entry { key: 12, n: 34 };
        assert_eq!(Entry::from_bytes(&entry.to_bytes()).unwrap(), entry);
        assert!(Entry::from_bytes(b"hello").is_err());
    }
}
