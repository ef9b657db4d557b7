//! Where a rewind leads, and the place in each shard that this comes to.

use super::{Admin, AdminError, Place, Shard, View, Which};
use leasehold_engine::position::{Checkpoint, Position, SequenceNumber};
use leasehold_engine::time::Wall;
use std::collections::BTreeMap;
use std::fmt;

/// Where shards are to be read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum To {
    /// Each from its oldest record.
    TrimHorizon,
    /// Each with what arrives once its lease is taken: records that were not processed are skipped.
    Latest,
    /// Each from the first record that arrived at this time or later. The time lies in the past.
    ///
    /// No table format keeps a time in a row, so the time is turned into the place of the last record before it. With KCL's
    /// aggregated records, parts of that record may come again.
    Time(Wall),
    /// The one shard that is named, after the record with this sequence number.
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
    /// A sequence number without exactly one shard, or a time that lies in the future: in a sentence.
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

#[cfg(feature = "aws")]
impl Admin {
    /// Whether `to` makes sense for these shards, by this machine's clock.
    pub(crate) fn check(&self, which: &Which, to: To) -> Result<(), AdminError> {
        let checked = to.check(which, Wall(self.runtime.wall().0));
        checked.map_err(|how| AdminError::new("work out the place", how))
    }

    /// What a rewind to `to` comes to in each of the shards that are meant, for [`rewind`](super::rewind). `shards` is the whole list
    /// of the stream's shards.
    ///
    /// # Errors
    /// If `to` makes no sense for these shards ([`To::check`]), if Kinesis refuses a sequence number, or if a shard cannot be read
    /// to look for a time.
    pub async fn place(
        &self,
        kinesis: &aws_sdk_kinesis::Client,
        stream: &str,
        shards: &[Shard],
        view: &View,
        which: &Which,
        to: To,
    ) -> Result<Place, AdminError> {
        self.check(which, to)?;
        let mut places = BTreeMap::new();
        let meant = shards
            .iter()
            .filter(|shard| is_meant(&shard.id.to_lease(), view, which));
        match to {
            To::TrimHorizon => return Ok(Place::TrimHorizon),
            To::Latest => return Ok(Place::Latest),
            To::Number(number) => {
                for shard in meant {
                    // Of numbers outside of the shard, the plan says more.
                    if number >= shard.starting && shard.ending.is_none_or(|ending| number <= ending) {
                        self.check_number(kinesis, stream, &shard.id, number).await?;
                    }
                    places.insert(shard.id.to_lease(), Checkpoint::At(Position::of(number)));
                }
            }
            To::Time(time) => {
                for shard in meant {
                    if let Some(place) = self.place_at(kinesis, stream, &shard.id, time).await? {
                        places.insert(shard.id.to_lease(), place);
                    }
                }
            }
        }
        Ok(Place::After(places))
    }
}

/// Whether a lease that is there is meant. For a worker's leases, places are worked out for all: the plan takes those it needs.
#[cfg(feature = "aws")]
fn is_meant(key: &leasehold_engine::ids::LeaseKey, view: &View, which: &Which) -> bool {
    view.leases.contains_key(key)
        && match which {
            Which::All | Which::Worker(_) => true,
            Which::Shards(shards) => shards.contains(key),
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
