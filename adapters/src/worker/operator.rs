//! A worker's table, streams and options for an operator's requests, whether the worker runs or not.

use super::builder::Settings;
use super::services::{SharedFormat, StreamSource, TableSource};
use crate::admin::{Admin, AdminError, Done, NamedStream, Plan, To, Which, rewind};
use crate::aws::stream_ref::Directory;
use crate::runtime::Runtime;
use leasehold_engine::config::Config;
use leasehold_engine::stream_id::{StreamId, split_key};
use leasehold_engine::time::Span;
use std::fmt;
use std::sync::Arc;

/// How long the table is watched at most, to see which owners live.
const WATCH: Span = Span::from_secs(5);

/// The places of a worker's leases and shards. An operator makes new ports: the connections of the worker's ports are
/// driven by the worker's runtime.
pub(super) struct Operator {
    table: TableSource,
    #[cfg(feature = "aws")]
    kinesis: Option<aws_sdk_kinesis::Client>,
    directory: Option<Directory>,
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
            directory: settings.directory.clone(),
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
        let table = self.table.clone().port(&self.config, self.format.clone(), &runtime);
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
        let admin = self.admin()?;
        admin.check(which, to)?;
        let streams = self.streams();
        self.knows(&streams, which)?;
        let mut listed = Vec::new();
        for stream in streams {
            let shards = admin.shards(kinesis, &stream).await?;
            listed.push((stream, shards));
        }
        // Each live owner renews meanwhile.
        let watch = self.config.renew_interval().times(2).min(WATCH);
        let (view, report) = admin.watch(watch, self.config.lease_duration()).await?;
        let mut plan = Plan::default();
        for (stream, shards) in listed {
            let (mut view, mut which) = (view.clone(), which.clone());
            view.keep_stream(stream.id());
            if let (Some(id), Which::Shards(keys)) = (stream.id(), &mut which) {
                keys.retain(|key| key.as_str().starts_with(id.lease("").as_str()));
            }
            let place = admin.place(kinesis, &stream, &shards, &view, &which, to).await?;
            let of_stream = rewind(&view, &shards, &which, &place, &report.alive());
            plan.steps.extend(of_stream.steps);
            plan.left.extend(of_stream.left);
        }
        Ok(Rewind { admin, plan })
    }

    /// In a worker of several streams: checks that the named shards belong to these streams.
    fn knows(&self, streams: &[NamedStream], which: &Which) -> Result<(), AdminError> {
        let (Some(_), Which::Shards(keys)) = (&self.directory, which) else {
            return Ok(());
        };
        let known = |key: &str| {
            let of = split_key(key).map(|(stream, _)| stream);
            streams.iter().any(|stream| of == stream.id().map(StreamId::as_str))
        };
        match keys.iter().find(|key| !known(key.as_str())) {
            None => Ok(()),
            Some(key) => Err(AdminError::new(
                "plan a rewind",
                format!(
                    "expected the names of shards of this worker's streams, which are the keys of their leases, found {:?}",
                    key.as_str()
                ),
            )),
        }
    }

    /// All streams of the worker.
    fn streams(&self) -> Vec<NamedStream> {
        match &self.directory {
            None => vec![self.config.stream().into()],
            Some(directory) => directory.all().into_iter().map(NamedStream::from).collect(),
        }
    }
}

/// A planned rewind before its writes, made by [`Control::rewind`](crate::Control::rewind).
///
/// `Display` gives the plan in sentences, a line for each lease and for each consequence.
#[derive(Debug)]
#[must_use = "nothing is written before `apply`"]
pub struct Rewind {
    admin: Admin,
    plan: Plan,
}

impl Rewind {
    /// The planned writes and their consequences, lease by lease, and the leases left alone with the reasons.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Writes the plan, as [`Admin::apply`] does: each lease by one conditional write, ancestors first. A lease with
    /// a new owner since the plan is left alone; a renewal and a checkpoint of the same owner are no hindrance.
    ///
    /// # Errors
    /// If the table cannot be read or written after several tries. Finished writes stay; a new plan shows the writes
    /// left.
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
