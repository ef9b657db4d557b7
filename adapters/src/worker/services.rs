//! The services of a worker: clients of AWS, or ports in their place.

use crate::error::Error;
use crate::ports::{StreamPort, StreamsPort, TablePort};
use crate::runtime::Runtime;
use crate::store::Store;
use leasehold_engine::config::Config;
use leasehold_engine::format::LeaseFormat;
use std::sync::Arc;

pub(super) type SharedFormat = Arc<dyn LeaseFormat + Send + Sync>;
pub(super) type MakeStream = Box<dyn FnOnce(Store) -> StreamPort + Send>;

/// How each of several streams is reached.
#[cfg(feature = "aws")]
pub(super) type Directory = crate::aws::stream_ref::Directory;

/// Without the SDK, no worker reads several streams.
#[cfg(not(feature = "aws"))]
#[derive(Clone, Debug)]
pub(super) enum Directory {}

/// What a worker keeps its leases in.
#[derive(Clone)]
pub(super) enum TableSource {
    #[cfg(feature = "aws")]
    Client(aws_sdk_dynamodb::Client),
    Port(TablePort),
}

/// What a worker reads from.
pub(super) enum StreamSource {
    #[cfg(feature = "aws")]
    Client(aws_sdk_kinesis::Client),
    Port(MakeStream),
}

#[cfg_attr(
    not(feature = "aws"),
    allow(unused_variables, clippy::unnecessary_wraps, reason = "without the SDK there are ports only")
)]
impl TableSource {
    /// Without a region, every request would fail before the sending.
    pub(super) fn check(&self) -> Result<(), Error> {
        match self {
            #[cfg(feature = "aws")]
            Self::Client(client) => {
                client.config().region().map(drop).ok_or(Error::NoRegion { service: "DynamoDB" })
            }
            Self::Port(_) => Ok(()),
        }
    }

    pub(super) fn port(self, config: &Config, format: SharedFormat, runtime: &Arc<dyn Runtime>) -> TablePort {
        match self {
            #[cfg(feature = "aws")]
            Self::Client(client) => {
                Arc::new(crate::aws::DynamoTable::new(&client, runtime, config).with_format(format))
            }
            Self::Port(port) => port,
        }
    }
}

#[cfg_attr(
    not(feature = "aws"),
    allow(unused_variables, clippy::unnecessary_wraps, reason = "without the SDK there are ports only")
)]
impl StreamSource {
    /// Without a region, every request would fail before the sending.
    pub(super) fn check(&self) -> Result<(), Error> {
        match self {
            #[cfg(feature = "aws")]
            Self::Client(client) => {
                client.config().region().map(drop).ok_or(Error::NoRegion { service: "Kinesis" })
            }
            Self::Port(_) => Ok(()),
        }
    }

    /// The client, if it is not something else.
    #[cfg(feature = "aws")]
    pub(super) fn client(&self) -> Option<aws_sdk_kinesis::Client> {
        match self {
            Self::Client(client) => Some(client.clone()),
            Self::Port(_) => None,
        }
    }

    /// The port to several streams, for a worker of several streams.
    pub(super) fn several(
        &self, directory: Option<Directory>, config: &Config, runtime: &Arc<dyn Runtime>, store: &Store,
    ) -> Option<StreamsPort> {
        #[cfg(feature = "aws")]
        if let (Some(directory), Self::Client(client)) = (directory, self) {
            let port = crate::aws::SeveralStreams::new(client, runtime, config, store.clone(), directory);
            return Some(Arc::new(port));
        }
        None
    }

    pub(super) fn port(self, config: &Config, runtime: &Arc<dyn Runtime>, store: &Store) -> StreamPort {
        match self {
            #[cfg(feature = "aws")]
            Self::Client(client) => {
                Arc::new(crate::aws::KinesisStream::new(&client, runtime, config, store.clone()))
            }
            Self::Port(make) => make(store.clone()),
        }
    }
}
