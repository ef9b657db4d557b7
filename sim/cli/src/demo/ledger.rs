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
    put: u64,
    processed: u64,
    duplicates: u64,
    out_of_order: u64,
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
        Self(Mutex::new(Books {
            keys: vec![Key::default(); keys],
            put: 0,
            processed: 0,
            duplicates: 0,
            out_of_order: 0,
        }))
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the next record of this key in the stream.
    pub(super) fn put(&self, key: usize) {
        let mut books = self.books();
        if let Some(key) = books.keys.get_mut(key) {
            key.put += 1;
            books.put += 1;
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
            books.duplicates += 1;
        } else {
            books.processed += 1;
            books.out_of_order += u64::from(later);
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
        Totals {
            put: books.put,
            processed: books.processed,
            duplicates: books.duplicates,
            missing: missing.sum(),
            out_of_order: books.out_of_order,
        }
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

    fn process(ledger: &Ledger, numbers: &[u32]) {
        for &n in numbers {
            assert!(ledger.processed(Entry { key: 1, n }));
        }
    }

    #[test]
    fn records_in_order_balance() {
        let ledger = ledger(3);
        process(&ledger, &[0, 1, 2]);
        let totals = ledger.totals();
        assert_eq!((totals.put, totals.processed, totals.missing), (3, 3, 0));
        assert_eq!((totals.duplicates, totals.out_of_order), (0, 0));
    }

    #[test]
    fn a_record_that_never_came_is_missing_though_a_later_one_came() {
        let ledger = ledger(3);
        process(&ledger, &[0, 2]);
        let totals = ledger.totals();
        assert_eq!((totals.missing, totals.out_of_order), (1, 0));
    }

    #[test]
    fn a_first_time_after_a_later_record_is_disorder() {
        let ledger = ledger(3);
        process(&ledger, &[0, 2, 1]);
        let totals = ledger.totals();
        assert_eq!((totals.missing, totals.out_of_order, totals.duplicates), (0, 1, 0));
    }

    #[test]
    fn records_read_again_are_duplicates_and_not_disorder() {
        let ledger = ledger(3);
        process(&ledger, &[0, 1, 0, 1, 2]);
        let totals = ledger.totals();
        assert_eq!((totals.processed, totals.duplicates, totals.out_of_order), (3, 2, 0));
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
