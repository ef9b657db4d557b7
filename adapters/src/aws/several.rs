//! The stream port of a worker of several streams.

use super::KinesisStream;
use crate::aws::stream_ref::Directory;
use crate::ports::{Failure, Port};
use crate::runtime::{BoxFuture, Runtime};
use crate::store::Store;
use aws_sdk_kinesis::Client;
use leasehold_engine::config::Config;
use leasehold_engine::ids::OpId;
use leasehold_engine::input::{Outcome, Refusal, Why};
use leasehold_engine::output::StreamOp;
use leasehold_engine::stream_id::StreamId;
use leasehold_engine::time::Mono;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Reads several Kinesis streams. All ports keep fetched records in one store; shard names tell the streams apart.
pub(crate) struct SeveralStreams {
    /// What every stream's port is made from.
    common: KinesisStream,
    client: Client,
    runtime: Arc<dyn Runtime>,
    config: Config,
    directory: Directory,
    /// The ports that were made so far.
    ports: Mutex<BTreeMap<StreamId, KinesisStream>>,
}

impl SeveralStreams {
    pub(crate) fn new(
        client: &Client, runtime: &Arc<dyn Runtime>, config: &Config, store: Store, directory: Directory,
    ) -> Self {
        Self {
            common: KinesisStream::new(client, runtime, config, store),
            client: client.clone(),
            runtime: runtime.clone(),
            config: config.clone(),
            directory,
            ports: Mutex::default(),
        }
    }

    /// The port of a stream. Absent: no handle of this worker was given the stream.
    fn port(&self, id: &StreamId) -> Option<KinesisStream> {
        let mut ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(port) = ports.get(id) {
            return Some(port.clone());
        }
        let stream = self.directory.get(id)?;
        let client = stream.client(&self.client);
        let port = self.common.of(&stream, &client, &self.runtime, &self.config);
        ports.insert(id.clone(), port.clone());
        Some(port)
    }
}

impl Port<(StreamId, StreamOp)> for SeveralStreams {
    fn execute(&self, op_id: OpId, (id, op): (StreamId, StreamOp)) -> BoxFuture<'static, Outcome> {
        match self.port(&id) {
            Some(port) => port.execute(op_id, op),
            None => Box::pin(std::future::ready(Outcome::Refused(Refusal {
                why: Why::NotFound,
                current: None,
                detail: format!("expected a stream {id} that was given to this worker, found none"),
            }))),
        }
    }

    fn forget(&self, id: OpId) {
        self.common.forget(id);
    }

    fn heard(&self, id: OpId) -> Option<Mono> {
        self.common.heard(id)
    }

    fn failure(&self, id: OpId) -> Option<Failure> {
        self.common.failure(id)
    }
}
