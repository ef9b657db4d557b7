//! Enhanced monitoring and encryption: kept and reported, with no effect on data.

use super::Kinesis;
use super::error::{ApiError, ApiResult};
use super::ids::StreamRef;
use super::reshard::Reshard;

/// Every shard level metric.
pub(crate) const METRICS: [&str; 7] = [
    "IncomingBytes",
    "IncomingRecords",
    "IteratorAgeMilliseconds",
    "OutgoingBytes",
    "OutgoingRecords",
    "ReadProvisionedThroughputExceeded",
    "WriteProvisionedThroughputExceeded",
];

/// The metrics before and after a change.
pub(crate) struct MetricsChange {
    pub name: String,
    pub arn: String,
    pub before: Vec<&'static str>,
    pub after: Vec<&'static str>,
}

impl Kinesis {
    /// `EnableEnhancedMonitoring` and its opposite; `ALL` stands for every metric.
    pub(crate) fn change_metrics(
        &mut self, now_ms: i64, stream: StreamRef<'_>, metrics: &[String], enable: bool,
    ) -> ApiResult<MetricsChange> {
        let stream = self.found_active(now_ms, stream)?;
        let named = |metric: &str| metrics.iter().any(|name| name == metric || name == "ALL");
        let before = stream.metrics.clone();
        let after: Vec<&'static str> = METRICS
            .into_iter()
            .filter(|metric| if named(metric) { enable } else { before.contains(metric) })
            .collect();
        stream.metrics = after.clone();
        stream.begin(now_ms, Reshard::Nothing);
        Ok(MetricsChange { name: stream.name.to_string(), arn: stream.arn(), before, after })
    }

    /// `StartStreamEncryption` (with a key) and `StopStreamEncryption` (with none).
    pub(crate) fn change_encryption(
        &mut self, now_ms: i64, stream: StreamRef<'_>, key: Option<String>,
    ) -> ApiResult<()> {
        let stream = self.found_active(now_ms, stream)?;
        if key.is_none() && stream.encryption_key.is_none() {
            return Err(ApiError::argument(format!("Stream {} is not encrypted.", stream.name)));
        }
        stream.encryption_key = key;
        stream.begin(now_ms, Reshard::Nothing);
        Ok(())
    }
}
