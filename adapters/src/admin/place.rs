//! The target of a rewind in each shard.

use super::{Admin, AdminError, NamedStream, Place, Shard, To, View, Which};
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::time::Wall;
use std::collections::BTreeMap;

impl Admin {
    /// Whether `to` makes sense for these shards, by this machine's clock.
    pub(crate) fn check(&self, which: &Which, to: To) -> Result<(), AdminError> {
        let checked = to.check(which, Wall(self.runtime.wall().0));
        checked.map_err(|how| AdminError::new("work out the place", how))
    }

    /// The place of a rewind to `to` in each of the meant shards, for [`rewind`](super::rewind). `shards` is the
    /// whole list of the stream's shards.
    ///
    /// # Errors
    /// If `to` makes no sense for these shards ([`To::check`]), if Kinesis refuses a sequence number, or if a shard cannot be read
    /// to look for a time.
    pub async fn place(
        &self, kinesis: &aws_sdk_kinesis::Client, stream: impl Into<NamedStream>, shards: &[Shard],
        view: &View, which: &Which, to: To,
    ) -> Result<Place, AdminError> {
        self.check(which, to)?;
        let stream = stream.into();
        let mut places = BTreeMap::new();
        let meant = shards.iter().filter(|shard| is_meant(&shard.id.to_lease(), view, which));
        match to {
            To::TrimHorizon => return Ok(Place::TrimHorizon),
            To::Latest => return Ok(Place::Latest),
            To::Number(number) => {
                for shard in meant {
                    // Of numbers outside of the shard, the plan says more.
                    if number >= shard.starting && shard.ending.is_none_or(|ending| number <= ending) {
                        self.check_number(kinesis, &stream, &shard.id, number).await?;
                    }
                    places.insert(shard.id.to_lease(), Checkpoint::At(Position::of(number)));
                }
            }
            To::Time(time) => {
                for shard in meant {
                    if let Some(place) = self.place_at(kinesis, &stream, &shard.id, time).await? {
                        places.insert(shard.id.to_lease(), place);
                    }
                }
            }
        }
        Ok(Place::After(places))
    }
}

/// Whether a shard's lease is meant. Where all are, leases that were removed after their shards' ends are, too. For a worker's leases, places are worked out for all: the plan takes those it needs.
fn is_meant(key: &LeaseKey, view: &View, which: &Which) -> bool {
    match which {
        Which::All => true,
        Which::Worker(_) => view.leases.contains_key(key),
        Which::Shards(shards) => view.leases.contains_key(key) && shards.contains(key),
    }
}
