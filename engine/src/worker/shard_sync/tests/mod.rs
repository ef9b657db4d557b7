//! Shard sync alone, by method.

mod audit;
mod bootstrap;
mod clean_up;
mod contradicted;
mod create;
mod listing;
mod orphans;
mod recognise;

use super::{Listed, ShardSync};
use crate::input::{Outcome, Reply, ShardPage};
use crate::notice::ListReason;
use crate::output::{Effect, ShardFilter, StreamOp};
use crate::row::{Change, LeaseRow};
use crate::shard::Shard;
use crate::worker::context::{Context, Request};
use crate::worker::testing::Did;

fn page(shards: &[Shard], more: bool) -> Outcome {
    let shards = shards.to_vec();
    Outcome::Applied(Reply::Shards(ShardPage { shards, more }))
}

fn lists(filter: ShardFilter) -> Effect {
    let after = None;
    Effect::Stream(StreamOp::ListShards { filter, after })
}

/// A list of all shards, requested now by the room.
fn listed(cx: &mut Context, sync: &mut ShardSync, shards: &[Shard]) -> Listed {
    sync.listing.end();
    sync.list(cx, ListReason::Hole);
    let op = cx.did().op();
    let (_, listed) = sync.listing.on_page(cx, op, page(shards, false)).expect("the only page");
    cx.did();
    listed
}

/// The rows that are to be created.
fn created(did: &Did) -> Vec<LeaseRow> {
    let create = |request: &Request| match request {
        Request::WriteRow { change: Change::Create(row), .. } => Some((**row).clone()),
        _ => None,
    };
    did.requests().iter().filter_map(create).collect()
}

fn keys(did: &Did) -> Vec<String> {
    let rows = created(did);
    rows.iter().map(|row| row.key.to_string()).collect()
}
