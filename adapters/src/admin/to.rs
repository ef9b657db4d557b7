//! Where a rewind leads.

use super::Which;
use leasehold_engine::position::SequenceNumber;
use leasehold_engine::time::Wall;
use std::fmt;

/// Where shards are to be read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum To {
    /// Each from its oldest record.
    TrimHorizon,
    /// Each shard from the records arriving after the take of its lease: unprocessed older records are skipped.
    Latest,
    /// Each shard from its first record at this time or later. The time lies in the past.
    ///
    /// Rows of other libraries cannot hold a time: the plan replaces the time by the place of the last record before
    /// the time. With KCL's aggregated records, parts of that record may come again.
    Time(Wall),
    /// The only named shard, after the record with this sequence number.
    Number(SequenceNumber),
}

impl fmt::Display for To {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            To::TrimHorizon => f.write_str("TRIM_HORIZON"),
            To::Latest => f.write_str("LATEST"),
            To::Time(time) => write!(f, "{time}"),
            To::Number(number) => write!(f, "{number}"),
        }
    }
}

impl To {
    /// Whether it makes sense for these shards, now.
    ///
    /// # Errors
    /// A sequence number without exactly one shard, or a time in the future: in a sentence.
    pub fn check(self, which: &Which, now: Wall) -> Result<(), String> {
        match self {
            To::Number(number) => match which {
                Which::Shards(shards) if shards.len() == 1 => Ok(()),
                _ => Err(format!(
                    "expected one shard with the sequence number {number}, found {}: a number belongs to one shard; name it, or give \
                     a time",
                    match which {
                        Which::All => "all of them".to_owned(),
                        Which::Shards(shards) => shards.len().to_string(),
                        Which::Worker(_) => "those of a worker".to_owned(),
                    }
                )),
            },
            To::Time(time) if time > now => Err(format!(
                "expected a time in the past, found {time}; to go on with what arrives from now on, say latest"
            )),
            To::TrimHorizon | To::Latest | To::Time(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_for_one_shard_and_a_time_is_past() {
        let (now, number) = (Wall(1_000), To::Number(7.into()));
        let one = Which::Shards(vec!["a".into()]);
        assert_eq!(number.check(&one, now), Ok(()));
        assert_eq!(To::Time(Wall(1_000)).check(&Which::All, now), Ok(()));
        let two = Which::Shards(vec!["a".into(), "b".into()]);
        for (to, which, found) in [
            (number, &two, "found 2"),
            (number, &Which::All, "found all of them"),
            (number, &Which::Worker("w".into()), "found those of a worker"),
            (To::Time(Wall(1_001)), &one, "expected a time in the past"),
        ] {
            let told = to.check(which, now).unwrap_err();
            assert!(told.contains(found), "{told}");
        }
    }
}
