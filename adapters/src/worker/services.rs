//! The services of a worker: clients of AWS, or ports that stand in their place.

use crate::error::Error;
use crate::ports::{StreamPort, TablePort};
use crate::runtime::Runtime;
use crate::store::Store;
use leasehold_engine::config::Config;
use leasehold_engine::format::LeaseFormat;
use std::sync::Arc;

/// What a worker was given to keep its leases in, and to read from.
#[derive(Default)]
pub(super) struct Services {
    #[cfg(feature = "aws")]
    pub(super) kinesis: Option<aws_sdk_kinesis::Client>,
    #[cfg(feature = "aws")]
    pub(super) dynamodb: Option<aws_sdk_dynamodb::Client>,
    pub(super) table: Option<TablePort>,
    pub(super) stream: Option<MakeStream>,
}

pub(super) type SharedFormat = Arc<dyn LeaseFormat + Send + Sync>;
pub(super) type MakeStream = Box<dyn FnOnce(Store) -> StreamPort + Send>;

impl Services {
    pub(super) fn check(&self) -> Result<(), Error> {
        #[cfg(feature = "aws")]
        let (kinesis, dynamodb) = (self.kinesis.is_some(), self.dynamodb.is_some());
        #[cfg(not(feature = "aws"))]
        let (kinesis, dynamodb) = (false, false);
        if self.stream.is_none() && !kinesis {
            return Err(Error::Missing {
                what: "a Kinesis client",
                call: ".kinesis(client)",
            });
        }
        if self.table.is_none() && !dynamodb {
            return Err(Error::Missing {
                what: "a DynamoDB client",
                call: ".dynamodb(client)",
            });
        }
        #[cfg(feature = "aws")]
        self.check_regions()?;
        Ok(())
    }

    /// Without a region, every request would fail before it is sent.
    #[cfg(feature = "aws")]
    fn check_regions(&self) -> Result<(), Error> {
        let kinesis = self.kinesis.as_ref().filter(|_| self.stream.is_none());
        if kinesis.is_some_and(|client| client.config().region().is_none()) {
            return Err(Error::NoRegion { service: "Kinesis" });
        }
        let dynamodb = self.dynamodb.as_ref().filter(|_| self.table.is_none());
        if dynamodb.is_some_and(|client| client.config().region().is_none()) {
            return Err(Error::NoRegion { service: "DynamoDB" });
        }
        Ok(())
    }

    #[cfg_attr(
        not(feature = "aws"),
        allow(
            unused_variables,
            reason = "without the SDK there is nothing to make ports of"
        )
    )]
    pub(super) fn ports(
        self,
        config: &Config,
        format: SharedFormat,
        runtime: &Arc<dyn Runtime>,
        store: &Store,
    ) -> (Option<TablePort>, Option<StreamPort>) {
        let table = self.table;
        let stream = self.stream.map(|make| make(store.clone()));
        #[cfg(feature = "aws")]
        let table = table.or_else(|| {
            let client = self.dynamodb?;
            let table = crate::aws::DynamoTable::new(&client, runtime, config);
            Some(Arc::new(table.with_format(format)))
        });
        #[cfg(feature = "aws")]
        let stream = stream.or_else(|| {
            let client = self.kinesis?;
            Some(Arc::new(crate::aws::KinesisStream::new(
                &client,
                runtime,
                config,
                store.clone(),
            )))
        });
        (table, stream)
    }
}
