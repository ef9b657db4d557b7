//! A stream in an operator's words, and in requests.

use super::bounded::bounded;
use super::stream_ref::StreamRef;
use aws_sdk_kinesis::Client;
use leasehold_engine::stream_id::StreamId;
use std::fmt;

/// An operator's stream for [`Admin`](crate::admin::Admin): the only stream of an application, by its name, or a
/// stream of an application of several, by its identifier or as a [`StreamRef`].
#[derive(Clone, Debug)]
pub struct NamedStream(Named);

#[derive(Clone, Debug)]
enum Named {
    Only(String),
    OfSeveral(StreamRef),
}

impl From<&str> for NamedStream {
    /// A text that is no identifier is a name.
    fn from(text: &str) -> Self {
        Self(match text.parse::<StreamId>() {
            Ok(id) => Named::OfSeveral(StreamRef::new(id)),
            Err(_) => Named::Only(text.to_owned()),
        })
    }
}

impl From<&String> for NamedStream {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl From<StreamRef> for NamedStream {
    fn from(stream: StreamRef) -> Self {
        Self(Named::OfSeveral(stream))
    }
}

impl From<&NamedStream> for NamedStream {
    fn from(stream: &NamedStream) -> Self {
        stream.clone()
    }
}

impl fmt::Display for NamedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Named::Only(name) => f.write_str(name),
            Named::OfSeveral(stream) => stream.id().fmt(f),
        }
    }
}

impl NamedStream {
    /// The stream's identifier. Absent: the application reads this stream alone, and its leases are named by shard
    /// ids.
    pub fn id(&self) -> Option<&StreamId> {
        match &self.0 {
            Named::Only(_) => None,
            Named::OfSeveral(stream) => Some(stream.id()),
        }
    }

    /// The client that reads it.
    pub(crate) fn client(&self, common: &Client) -> Client {
        bounded(&match &self.0 {
            Named::Only(_) => common.clone(),
            Named::OfSeveral(stream) => stream.client(common),
        })
    }

    /// The name, if requests name the stream by name.
    pub(crate) fn name(&self) -> Option<String> {
        match &self.0 {
            Named::Only(name) => Some(name.clone()),
            Named::OfSeveral(stream) if stream.arn.is_none() => Some(stream.id().name().to_owned()),
            Named::OfSeveral(_) => None,
        }
    }

    /// The ARN, if requests name the stream by ARN.
    pub(crate) fn arn(&self) -> Option<String> {
        match &self.0 {
            Named::Only(_) => None,
            Named::OfSeveral(stream) => stream.arn.as_deref().map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_name_a_stream_as_it_was_given() {
        let of =
            |stream: NamedStream| (stream.to_string(), stream.id().is_some(), stream.name(), stream.arn());
        let name = Some("orders".to_owned());
        assert_eq!(of("orders".into()), ("orders".to_owned(), false, name.clone(), None));
        let id = "123456789012:orders:7";
        assert_eq!(of(id.into()), (id.to_owned(), true, name, None));
        let arn = "arn:aws:kinesis:eu-west-1:123456789012:stream/orders";
        let stream = StreamRef::from_arn(arn, 7).unwrap();
        assert_eq!(of(stream.into()), (id.to_owned(), true, None, Some(arn.to_owned())));
    }
}
