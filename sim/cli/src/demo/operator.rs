//! Creates the stream, and splits and merges its shards.

use crate::clients::{Clients, in_full};
use crate::exit::Failure;
use leasehold::admin::{Admin, Shard};
use leasehold::aws::kinesis::types::StreamStatus;
use leasehold::format::Format;
use leasehold_engine::internals::draw_below;
use std::time::Duration;

const POLL: Duration = Duration::from_millis(100);

/// The administrator of the stream.
#[derive(Debug)]
pub(super) struct Operator {
    pub clients: Clients,
    pub stream: String,
    pub seed: u64,
    /// The number of splits and merges.
    pub reshards: u64,
}

impl Operator {
    fn failed(&self, what: &str, error: &(dyn std::error::Error + 'static)) -> Failure {
        Failure::under_way(format!(
            "expected to be able to {what} stream {}: {}",
            self.stream,
            in_full(error)
        ))
    }

    pub(super) async fn create(&self, shards: i32) -> Result<(), Failure> {
        let request = self.clients.kinesis.create_stream();
        request
            .stream_name(&self.stream)
            .shard_count(shards)
            .send()
            .await
            .map_err(|error| self.failed("create", &error))?;
        self.until_active().await
    }

    async fn until_active(&self) -> Result<(), Failure> {
        loop {
            let request = self.clients.kinesis.describe_stream_summary();
            let answer = request
                .stream_name(&self.stream)
                .send()
                .await
                .map_err(|error| self.failed("describe", &error))?;
            let status = answer.stream_description_summary().map(|summary| summary.stream_status());
            if status == Some(&StreamStatus::Active) {
                return Ok(());
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// The open shards, in the order of the hash space.
    async fn open_shards(&self) -> Result<Vec<Shard>, Failure> {
        let Clients { kinesis, dynamodb } = &self.clients;
        let shards = match Admin::new(dynamodb, super::APPLICATION, Format::Kcl) {
            Ok(admin) => admin.shards(kinesis, self.stream.as_str()).await,
            Err(error) => Err(error),
        };
        let mut open = shards.map_err(|error| self.failed("list the shards of", &error))?;
        open.retain(Shard::is_open);
        open.sort_by_key(|shard| shard.range);
        Ok(open)
    }

    /// Splits the widest shard in the middle.
    pub(super) async fn split(&mut self) -> Result<String, Failure> {
        let open = self.open_shards().await?;
        // Draws one of the widest shards.
        let widest = open.iter().map(width).max().unwrap_or_default();
        let widest: Vec<&Shard> = open.iter().filter(|shard| width(shard) == widest).collect();
        let at = draw_below(self.seed, "split", "", self.reshards, widest.len() as u64) as usize;
        let Some(shard) = widest.get(at) else {
            return Err(Failure::under_way("the stream has no open shard"));
        };
        let middle = shard.range.start.0 + width(shard) / 2 + 1;
        let request = self.clients.kinesis.split_shard();
        request
            .stream_name(&self.stream)
            .shard_to_split(shard.id.as_str())
            .new_starting_hash_key(middle.to_string())
            .send()
            .await
            .map_err(|error| self.failed("split a shard of", &error))?;
        self.until_active().await?;
        self.reshards += 1;
        Ok(shard.id.to_string())
    }

    /// Merges two adjacent shards.
    pub(super) async fn merge(&mut self) -> Result<(String, String), Failure> {
        let open = self.open_shards().await?;
        let pairs = open.len().saturating_sub(1);
        let at = draw_below(self.seed, "merge", "", self.reshards, pairs as u64) as usize;
        let (Some(left), Some(right)) = (open.get(at), open.get(at + 1)) else {
            return Err(Failure::under_way("the stream has no two shards to be merged"));
        };
        let request = self.clients.kinesis.merge_shards();
        request
            .stream_name(&self.stream)
            .shard_to_merge(left.id.as_str())
            .adjacent_shard_to_merge(right.id.as_str())
            .send()
            .await
            .map_err(|error| self.failed("merge shards of", &error))?;
        self.until_active().await?;
        self.reshards += 1;
        Ok((left.id.to_string(), right.id.to_string()))
    }
}

fn width(shard: &Shard) -> u128 {
    shard.range.end.0 - shard.range.start.0
}
