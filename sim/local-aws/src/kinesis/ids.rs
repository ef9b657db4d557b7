//! How streams and shards are named.

use std::fmt;

/// One creation of a stream: a deletion and a new creation under the same name give another id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u32);

/// A shard of a stream, by the number in its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardIndex(pub u32);

impl fmt::Display for ShardIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shardId-{:012}", self.0)
    }
}

impl ShardIndex {
    /// Reads `shardId-000000000007`; like the service, accepts `shardId-7` and `7`, too.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.split('-').nth(1).unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        digits.parse().ok().filter(|&index| index <= i32::MAX as u32).map(ShardIndex)
    }
}

/// A request's reference to a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamRef<'a> {
    /// One creation of a stream: the fast way, unknown to AWS.
    Id(StreamId),
    /// `StreamName`.
    Name(&'a str),
    /// `StreamARN`.
    Arn(&'a str),
    /// Name and ARN, for the same stream.
    Both {
        /// `StreamName`.
        name: &'a str,
        /// `StreamARN`.
        arn: &'a str,
    },
}

impl From<StreamId> for StreamRef<'_> {
    fn from(id: StreamId) -> Self {
        StreamRef::Id(id)
    }
}

impl<'a> From<&'a str> for StreamRef<'a> {
    fn from(name: &'a str) -> Self {
        StreamRef::Name(name)
    }
}

/// The parts of a Kinesis ARN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arn<'a> {
    pub region: &'a str,
    pub account: &'a str,
    pub stream: &'a str,
    /// The consumer's name and second of creation.
    pub consumer: Option<(&'a str, &'a str)>,
}

impl<'a> Arn<'a> {
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.splitn(6, ':');
        let aws = parts.next()? == "arn" && parts.next()?.starts_with("aws") && parts.next()? == "kinesis";
        let (region, account) = (parts.next()?, parts.next()?);
        let resource = parts.next()?.strip_prefix("stream/")?;
        let (stream, consumer) = match resource.split_once("/consumer/") {
            Some((stream, consumer)) => (stream, Some(consumer.split_once(':')?)),
            None => (resource, None),
        };
        let twelve = account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit());
        (aws && twelve && is_name(stream)).then_some(Arn { region, account, stream, consumer })
    }
}

/// Letters, digits, `_`, `.` and `-`, at least one.
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shard_names_are_read_as_the_service_reads_them() {
        for text in ["shardId-000000000012", "shardId-12", "12", "shard-12"] {
            assert_eq!(ShardIndex::parse(text), Some(ShardIndex(12)), "{text}");
        }
        for text in ["", "-", "shardId-", "shardId-x", "shardId-99999999999", "shardId--1", "12x"] {
            assert_eq!(ShardIndex::parse(text), None, "{text}");
        }
        assert_eq!(ShardIndex(12).to_string(), "shardId-000000000012");
    }

    #[test]
    fn arns_are_taken_apart() {
        let arn = Arn::parse("arn:aws:kinesis:eu-west-1:123456789012:stream/a.b-c").unwrap();
        assert_eq!(
            (arn.region, arn.account, arn.stream, arn.consumer),
            ("eu-west-1", "123456789012", "a.b-c", None)
        );
        let arn = Arn::parse("arn:aws-cn:kinesis:cn-north-1:123456789012:stream/s/consumer/c:17").unwrap();
        assert_eq!((arn.stream, arn.consumer), ("s", Some(("c", "17"))));
        for text in [
            "",
            "s",
            "arn:aws:kinesis:r:123:stream/s",
            "arn:aws:kinesis:r:123456789012:stream/",
            "arn:aws:s3:::b",
        ] {
            assert_eq!(Arn::parse(text), None, "{text}");
        }
    }
}
