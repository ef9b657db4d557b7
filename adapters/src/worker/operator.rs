//! What an operator's requests need of a worker: its table, its stream and its options, whether it runs or not.

use super::builder::Settings;
use super::services::{SharedFormat, StreamSource, TableSource};
use crate::admin::{Admin, AdminError, Done, Plan, To, Which, rewind};
use crate::runtime::Runtime;
use leasehold_engine::config::Config;
use leasehold_engine::time::Span;
use std::fmt;
use std::sync::Arc;

/// How long the table is watched at most, to see which owners live.
const WATCH: Span = Span::from_secs(5);

/// Where a worker's leases and shards are. It makes ports of its own: those of the worker have connections that are driven by the
/// runtime that keeps its leases.
pub(super) struct Operator {
    table: TableSource,
    #[cfg(feature = "aws")]
    kinesis: Option<aws_sdk_kinesis::Client>,
    format: SharedFormat,
    config: Config,
    runtime: Option<Arc<dyn Runtime>>,
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operator").finish_non_exhaustive()
    }
}

impl Operator {
    pub(super) fn new(settings: &Settings, table: &TableSource, stream: &StreamSource) -> Self {
        Self {
            table: table.clone(),
            #[cfg(feature = "aws")]
            kinesis: stream.client(),
            format: settings.format.clone(),
            config: settings.config.clone(),
            runtime: settings.runtime.clone(),
        }
    }

    fn admin(&self) -> Result<Admin, AdminError> {
        let runtime = match &self.runtime {
            Some(runtime) => runtime.clone(),
            None => super::default_runtime()
                .map_err(|error| AdminError::new("use the lease table", error.to_string()))?,
        };
        let life = self.format.policies().life;
        let table = self
            .table
            .clone()
            .port(&self.config, self.format.clone(), &runtime);
        Ok(Admin::over(table, runtime, life))
    }

    /// What a rewind would write.
    pub(super) async fn rewind(&self, which: &Which, to: To) -> Result<Rewind, AdminError> {
        let Some(kinesis) = &self.kinesis else {
            return Err(AdminError::new(
                "plan a rewind",
                "expected a worker with a Kinesis client, found one that reads from somewhere else; call `.kinesis(client)` on its \
                 builder",
            ));
        };
        if !self.config.streams().is_empty() {
            return Err(AdminError::new(
                "plan a rewind",
                "expected a worker of one stream, found one of several; use `leasehold admin rewind` with one of its streams",
            ));
        }
        let (admin, stream) = (self.admin()?, self.config.stream());
        admin.check(which, to)?;
        let shards = admin.shards(kinesis, stream).await?;
        // Each live owner renews meanwhile.
        let watch = self.config.renew_interval().times(2).min(WATCH);
        let (view, report) = admin.watch(watch, self.config.lease_duration()).await?;
        let place = admin.place(kinesis, stream, &shards, &view, which, to).await?;
        let plan = rewind(&view, &shards, which, &place, &report.alive());
        Ok(Rewind { admin, plan })
    }
}

/// A rewind that was planned, of which nothing is written yet: what [`Control::rewind`](crate::Control::rewind) gives.
///
/// As a text it is the plan in sentences, a line for each lease and for each thing that follows.
#[derive(Debug)]
#[must_use = "nothing is written before `apply`"]
pub struct Rewind {
    admin: Admin,
    plan: Plan,
}

impl Rewind {
    /// What would be written and what follows from it, lease by lease, and what is left alone and why.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Writes it, as [`Admin::apply`] does: each lease by one conditional write, ancestors first. A lease that changed its owner
    /// since it was planned is left as it is; a renewal and a checkpoint of the same owner are no hindrance.
    ///
    /// # Errors
    /// If the table cannot be read or written in spite of several tries. What was written stays; a rewind that is planned anew shows
    /// what is left.
    pub async fn apply(self) -> Result<Vec<Done>, AdminError> {
        self.admin.apply(&self.plan).await
    }
}

impl fmt::Display for Rewind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        for step in &self.plan.steps {
            lines.push(step.to_string());
            lines.extend(step.follows.iter().map(|sentence| format!("    {sentence}")));
        }
        let left = self.plan.left.iter();
        lines.extend(left.map(|left| format!("leave {} alone: {}", left.lease, left.why)));
        f.write_str(&lines.join("\n"))
    }
}
