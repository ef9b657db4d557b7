//! The in-memory services behind HTTP, for any AWS SDK.
//!
//! A server answers Kinesis and DynamoDB on one port, told apart by `X-Amz-Target`, in the JSON formats of the SDKs
//! (Kinesis in CBOR too), over HTTP/1.1 and over HTTP/2 with prior knowledge; with the feature `tls` also over TLS on the same port. SubscribeToShard is answered by an event
//! stream. Signatures are accepted unchecked, so the
//! server belongs on loopback. A signature tells the request's region: each region has streams and tables of its own.
//!
//! ```
//! use leasehold_local_aws::http::{LocalOptions, Loopback};
//! use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
//! use tokio::net::TcpStream;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let server = Loopback::start(LocalOptions::default()).await?;
//!
//! // An SDK is given the endpoint, any region and any credentials. By hand it is one request:
//! let mut client = TcpStream::connect(server.endpoint().trim_start_matches("http://")).await?;
//! let request = "POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
//!     content-type: application/x-amz-json-1.1\r\nx-amz-target: Kinesis_20131202.CreateStream\r\n\
//!     content-length: 40\r\n\r\n{\"StreamName\":\"orders\", \"ShardCount\": 2}";
//! client.write_all(request.as_bytes()).await?;
//! let mut answer = String::new();
//! client.read_to_string(&mut answer).await?;
//! assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
//!
//! // The services themselves can be looked at, and changed, while they are served.
//! assert!(server.aws().lock().kinesis.stream("orders").is_some());
//!
//! // The server ends when it is told to, and lets the requests under way finish.
//! server.stop().await?;
//! # Ok(())
//! # }
//! ```
//!
//! [`serve`] runs the same server on the program's own listener, with a [`SharedAws`] on another clock, say.

mod answer;
mod cbor;
mod changes;
pub mod frames;
mod hosts;
mod leaving;
mod loopback;
mod open;
mod quiet;
mod region;
mod server;
mod service;
mod subscribe;
#[cfg(test)]
mod tests;
#[cfg(feature = "tls")]
mod tls;
mod wire;

pub use loopback::Loopback;
pub use region::is_region;
pub use server::serve;
#[cfg(feature = "tls")]
pub use tls::Tls;

use crate::dynamo::{Dynamo, DynamoConfig};
use crate::kinesis::{Kinesis, KinesisConfig};
use changes::Changes;
use hyper::StatusCode;
use serde_json::Value;
use service::{Refusal, Service};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Tells milliseconds since the epoch.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// The machine's own clock.
pub fn wall_clock() -> Clock {
    Arc::new(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

/// How the services behave.
#[derive(Clone, Debug, Default)]
pub struct LocalOptions {
    /// Kinesis: its limits, delays, account and region.
    pub kinesis: KinesisConfig,
    /// DynamoDB: its throttling, delays, account and region.
    pub dynamo: DynamoConfig,
    /// Whether all requests mean the region of Kinesis' options. Otherwise a request means the region of its signature.
    /// False by default.
    pub one_region: bool,
    /// Further names of the server, besides `localhost` and IP addresses, such as `host.docker.internal`. Requests for
    /// other hosts are refused, since a web page may let its name point to this machine. `*`: any name. None by
    /// default.
    pub allow_hosts: Vec<String>,
    /// Connections may begin with TLS, too. None by default: the server speaks plain HTTP alone.
    #[cfg(feature = "tls")]
    pub tls: Option<Tls>,
}

/// The services of one account in one region.
#[derive(Debug)]
pub struct LocalAws {
    options: LocalOptions,
    /// Kinesis Data Streams.
    pub kinesis: Kinesis,
    /// DynamoDB.
    pub dynamo: Dynamo,
}

impl LocalAws {
    /// An empty account.
    pub fn new(options: LocalOptions) -> Self {
        LocalAws {
            kinesis: Kinesis::new(options.kinesis.clone()),
            dynamo: Dynamo::new(options.dynamo.clone()),
            options,
        }
    }

    /// The same account, empty, in another region.
    fn elsewhere(&self, region: &str) -> Self {
        let mut options = self.options.clone();
        options.kinesis.region = region.into();
        options.dynamo.region = region.to_owned();
        Self::new(options)
    }

    /// One request to a service; null stands for an empty body.
    fn call(&mut self, to: Service, now_ms: i64, operation: &str, body: Value) -> Result<Value, Refusal> {
        match to {
            Service::Kinesis => self.kinesis.call(now_ms, operation, body).map_err(Refusal::from),
            Service::Dynamo => self.dynamo.call(now_ms, operation, &body).map_err(Refusal::from),
        }
    }
}

/// Gives the code and the message of an error for a request to be refused. The rule sees the operation, such as
/// `Kinesis_20131202.GetRecords`, and the body in JSON.
type FrontRule = Box<dyn Fn(&str, &str) -> Option<(&'static str, &'static str)> + Send>;

/// The services and their clock, shared by all connections.
#[derive(Clone)]
pub struct SharedAws {
    /// Of the region in the options.
    home: Arc<Mutex<LocalAws>>,
    /// The services of other signed regions.
    others: Arc<Mutex<BTreeMap<String, Arc<Mutex<LocalAws>>>>>,
    clock: Clock,
    front: Arc<Mutex<Option<FrontRule>>>,
    /// Wakes subscriptions after a request that changed a stream.
    changes: Arc<Changes>,
}

impl SharedAws {
    /// Shares services on this clock.
    pub fn new(aws: LocalAws, clock: Clock) -> Self {
        SharedAws {
            home: Arc::new(Mutex::new(aws)),
            others: Arc::default(),
            clock,
            front: Arc::default(),
            changes: Arc::default(),
        }
    }

    /// From now on, refuses the requests for which the rule gives an error, as the common front of all AWS services
    /// does; absent: refuses nothing. For tests of this project.
    #[doc(hidden)]
    pub fn refuse(&self, rule: Option<FrontRule>) {
        *held(&self.front) = rule;
    }

    /// Asks the rule about a request.
    fn check(&self, target: &str, body: &Value) -> Result<(), Refusal> {
        let refused = held(&self.front).as_ref().and_then(|rule| rule(target, &body.to_string()));
        match refused {
            Some((code, message)) => Err(Refusal::new(code, StatusCode::BAD_REQUEST, message)),
            None => Ok(()),
        }
    }

    /// The services of the region in the options, for looking and meddling; requests wait meanwhile.
    pub fn lock(&self) -> MutexGuard<'_, LocalAws> {
        held(&self.home)
    }

    /// The services of the region that a request was signed for.
    fn of_region(&self, region: Option<&str>) -> Arc<Mutex<LocalAws>> {
        let home = self.lock();
        match region {
            Some(region) if !home.options.one_region && region != &*home.options.kinesis.region => {
                let mut others = held(&self.others);
                let services = others
                    .entry(region.to_owned())
                    .or_insert_with(|| Arc::new(Mutex::new(home.elsewhere(region))));
                services.clone()
            }
            _ => self.home.clone(),
        }
    }

    fn now_ms(&self) -> i64 {
        (self.clock)()
    }
}

/// The services hold no half-done change between calls, so a panic elsewhere does not spoil them.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
