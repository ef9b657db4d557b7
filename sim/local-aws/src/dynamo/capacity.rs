//! Capacity units: the cost of a call, and the token bucket that enforces provisioned capacity.

/// Capacity in halves of a unit, for an eventually consistent read costs half a one.
pub type Halves = u64;

/// The cost of a read of so many bytes.
pub(super) fn read_cost(bytes: usize, consistent: bool) -> Halves {
    let blocks = (bytes.div_ceil(4096) as u64).max(1);
    if consistent { blocks * 2 } else { blocks }
}

/// The cost of a write of so many bytes.
pub(super) fn write_cost(bytes: usize) -> Halves {
    (bytes.div_ceil(1024) as u64).max(1) * 2
}

/// The cost of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Consumed {
    /// At the table itself.
    pub table: Halves,
    /// At indexes, by name.
    pub indexes: Vec<(String, Halves)>,
}

impl Consumed {
    /// A cost at the table alone.
    pub fn table(halves: Halves) -> Self {
        Self { table: halves, indexes: Vec::new() }
    }

    /// The sum.
    pub fn total(&self) -> Halves {
        self.table + self.indexes.iter().map(|(_, halves)| halves).sum::<Halves>()
    }

    /// Adds another call's cost.
    pub fn add(&mut self, other: Self) {
        self.table += other.table;
        for (name, halves) in other.indexes {
            match self.indexes.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += halves,
                None => self.indexes.push((name, halves)),
            }
        }
    }
}

/// A token bucket. A call passes while anything is left, and may go into debt, as at the service.
#[derive(Clone, Debug, Default)]
pub(super) struct Bucket {
    /// In thousandths of a half unit.
    level: i64,
    /// Absent until the first call. The first call finds the capacity of one second.
    filled_ms: Option<i64>,
}

impl Bucket {
    /// Whether a call may pass now, at a rate of whole units a second.
    pub(super) fn open(&mut self, now_ms: i64, rate: u64, burst_seconds: u64) -> bool {
        let per_ms = i64::try_from(rate).unwrap_or(i64::MAX / 4).saturating_mul(2);
        match self.filled_ms {
            None => self.level = per_ms.saturating_mul(1000),
            Some(then) => {
                let gained = per_ms.saturating_mul(now_ms.saturating_sub(then).max(0));
                let burst = i64::try_from(burst_seconds).unwrap_or(i64::MAX).max(1);
                let full = per_ms.saturating_mul(1000).saturating_mul(burst);
                self.level = self.level.saturating_add(gained).min(full);
            }
        }
        // A clock that goes back does not fill the bucket twice.
        self.filled_ms = Some(self.filled_ms.map_or(now_ms, |then| then.max(now_ms)));
        self.level > 0
    }

    /// Takes the cost of a call.
    pub(super) fn take(&mut self, halves: Halves) {
        let cost = i64::try_from(halves).unwrap_or(i64::MAX).saturating_mul(1000);
        self.level = self.level.saturating_sub(cost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_round_up() {
        assert_eq!((read_cost(0, true), read_cost(4096, true), read_cost(4097, false)), (2, 2, 2));
        assert_eq!((write_cost(0), write_cost(1024), write_cost(1025)), (2, 2, 4));
    }

    #[test]
    fn a_bucket_gives_its_rate_and_saves_up_to_its_burst() {
        let mut bucket = Bucket::default();
        let mut pass = |now: i64| {
            let open = bucket.open(now, 5, 3);
            if open {
                bucket.take(2);
            }
            open
        };
        assert_eq!((0..20).filter(|_| pass(0)).count(), 5);
        assert_eq!((0..20).filter(|_| pass(1_000)).count(), 5);
        assert_eq!((0..50).filter(|_| pass(100_000)).count(), 15);
        // A clock that goes back gives no capacity.
        assert!(!pass(50_000) && !pass(100_000));
        assert!(pass(100_200));
    }

    #[test]
    fn debt_is_paid_before_the_next_call() {
        let mut bucket = Bucket::default();
        assert!(bucket.open(0, 1, 300));
        bucket.take(20);
        assert!(!bucket.open(8_000, 1, 300));
        assert!(bucket.open(9_001, 1, 300));
    }
}
