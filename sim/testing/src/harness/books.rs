//! A stand-in for a database, which all workers of a world share.

use super::world::End;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many records of each partition key are written. Clones share.
#[derive(Clone, Debug, Default)]
pub struct Books(Arc<Mutex<BTreeMap<String, u64>>>);

impl Books {
    fn keys(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a record with the default payload, for the first time or again.
    ///
    /// # Errors
    /// If the record comes before an earlier record of its key.
    pub fn write(&self, data: &Bytes) -> Result<(), String> {
        let text = String::from_utf8_lossy(data);
        let parts = text.split_once('/').and_then(|(key, nth)| Some((key, nth.parse::<u64>().ok()?)));
        let (key, nth) = parts.ok_or_else(|| format!("{text:?} was written, which nobody put"))?;
        let mut keys = self.keys();
        let written = keys.entry(key.to_owned()).or_default();
        if nth > *written {
            return Err(format!("{text} was written after {written} of its key"));
        }
        *written = (*written).max(nth + 1);
        Ok(())
    }

    /// At the end, every record is written.
    ///
    /// # Panics
    /// If a record was not written.
    pub fn check(&self, end: &End) {
        let put: BTreeMap<String, u64> =
            end.puts().iter().map(|put| (put.partition_key.to_string(), put.nth + 1)).collect();
        assert_eq!(*self.keys(), put, "written of each key, and put");
    }
}
