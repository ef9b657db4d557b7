//! Requests to the world, and answers on their way back.

use bytes::Bytes;
use leasehold_local_aws::kinesis::Subscription;
use leasehold_testing::harness::Service;

/// A worker's request to the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// An operation of the SDK.
    Call(Call),
    /// The next event of a subscription. No SDK sends this request: the body of the subscription asks for an event as the
    /// SDK reads the body.
    Event(Subscription),
}

/// A request of the JSON protocols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// `X-Amz-Target`: the service's prefix, a dot, and the operation.
    pub target: String,
    /// The request's `Content-Type`. The answer repeats this type.
    pub content_type: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Call {
    /// The operation.
    pub fn operation(&self) -> &str {
        self.target.rsplit('.').next().unwrap_or_default()
    }
}

impl Request {
    /// The service.
    pub fn service(&self) -> Service {
        match self {
            Self::Call(call) if call.target.starts_with("DynamoDB") => Service::Table,
            Self::Call(_) | Self::Event(_) => Service::Stream,
        }
    }
}

/// What comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Carried {
    /// An answer.
    Answer {
        /// Its HTTP status.
        status: u16,
        /// Its body.
        body: Vec<u8>,
    },
    /// A subscription has begun: an answer whose body brings events.
    Subscribed(Subscription),
    /// The next bytes of a subscription's body.
    Pushed(Pushed),
    /// No server listened.
    Refused,
    /// The connection broke.
    Reset,
    /// No byte came during the client's whole read timeout.
    ReadTimeout,
}

/// The next bytes of a subscription's body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// A frame, and the subscription after this frame; absent: the body ends.
    Frame(Bytes, Option<Subscription>),
    /// No event is due yet.
    NotYet(Subscription),
    /// The body ends.
    Over,
}
