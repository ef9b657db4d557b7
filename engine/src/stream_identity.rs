//! Which stream a lease row is of: the ARN and the creation time of the stream, as DescribeStreamSummary says them.
//!
//! All streams name their shards alike, and a stream deleted and made anew keeps its name and its ARN. Only the ARN and
//! the creation time together identify a stream. Rows hold both in an attribute of ours, as `<ARN>@<creation time in
//! seconds since 1970>`; where the service says no ARN, the stream's name stands in its place.

use crate::stream_id::StreamId;
use crate::time::Wall;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::sync::Arc;

/// What stands between the ARN and the time. No ARN of a stream has it.
const AT: char = '@';

/// The most bytes of such a text. An ARN has 2,048 characters at most.
const LONGEST: usize = 2_100;

/// The ARN, or the name, of a stream, and when the stream was created.
///
/// ```
/// use leasehold_engine::stream_identity::StreamIdentity;
/// use leasehold_engine::time::Wall;
///
/// let arn = "arn:aws:kinesis:eu-central-1:123456789012:stream/orders";
/// let orders = StreamIdentity::new(arn, Wall(1_700_000_000_123)).unwrap();
/// assert_eq!(orders.as_str(), format!("{arn}@1700000000"));
/// assert_eq!(orders.to_string(), format!("{arn} (created 2023-11-14T22:13:20Z)"));
/// let anew = StreamIdentity::new(arn, Wall(1_700_000_060_000)).unwrap();
/// assert!(orders.is_another(&anew) && !orders.is_another(&orders));
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct StreamIdentity(Arc<str>);

impl StreamIdentity {
    /// The identity of the stream with the given ARN or name, and the given creation time: parts of a second do not
    /// count. Absent: the ARN is empty, or names no stream.
    pub fn new(arn: &str, created: Wall) -> Option<Self> {
        let seconds = created.0.div_euclid(1_000);
        Self::read(&format!("{arn}{AT}{seconds}").into())
    }

    /// The identity that a text spells. Absent: the text spells none.
    pub fn read(text: &Arc<str>) -> Option<Self> {
        let (arn, _) = split(text)?;
        let plain = |byte: u8| byte.is_ascii_graphic() && byte != AT as u8;
        let good = !arn.is_empty() && arn.bytes().all(plain) && text.len() <= LONGEST;
        good.then(|| Self(text.clone()))
    }

    /// The identity's spelling.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// How it is spelled, without a copy.
    pub fn text(&self) -> Arc<str> {
        self.0.clone()
    }

    /// The ARN of the stream. Absent: only the stream's name is known.
    pub fn arn(&self) -> Option<&str> {
        Some(self.parts().0).filter(|arn| is_arn(arn))
    }

    fn parts(&self) -> (&str, i64) {
        split(&self.0).unwrap_or((&self.0, 0))
    }

    /// Whether the two are of different streams. Where one has a name instead of an ARN, names are compared.
    pub fn is_another(&self, other: &Self) -> bool {
        if self.0 == other.0 {
            return false;
        }
        let ((one, created), (another, then)) = (self.parts(), other.parts());
        let same = match (is_arn(one), is_arn(another)) {
            (true, false) => name(one) == another,
            (false, true) => one == name(another),
            _ => one == another,
        };
        !same || created != then
    }
}

#[doc(hidden)]
impl StreamIdentity {
    /// Whether the two are of one name, account and region, as far as both say so, and of different times of creation.
    pub fn differs_in_time_alone(&self, other: &Self) -> bool {
        let of = |identity: &Self| Self(format!("{}{AT}0", identity.parts().0).into());
        self.is_another(other) && !of(self).is_another(&of(other))
    }

    /// Whether this is the stream of an identifier in an application of several streams.
    pub fn is_of(&self, id: &StreamId) -> bool {
        let (arn, created) = self.parts();
        // arn:aws:kinesis:<region>:<account>:stream/<name>
        let account = arn.split(':').nth(4).filter(|_| is_arn(arn));
        let same = name(arn) == id.name() && account.is_none_or(|account| account == id.account());
        same && u64::try_from(created) == Ok(id.epoch())
    }
}

fn split(text: &str) -> Option<(&str, i64)> {
    let (arn, created) = text.rsplit_once(AT)?;
    let digits = !created.is_empty() && created.bytes().all(|byte| byte.is_ascii_digit());
    Some((arn, digits.then(|| created.parse().ok()).flatten()?))
}

fn is_arn(text: &str) -> bool {
    text.starts_with("arn:")
}

/// The name of the stream of an ARN.
fn name(arn: &str) -> &str {
    arn.split_once(":stream/").map_or(arn, |(_, name)| name)
}

impl fmt::Display for StreamIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (arn, created) = self.parts();
        write!(f, "{arn} (created {})", Wall(created.saturating_mul(1_000)))
    }
}

impl fmt::Debug for StreamIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl<'de> Deserialize<'de> for StreamIdentity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        let bad = || serde::de::Error::custom("expected a stream as `<ARN>@<creation time in seconds>`");
        Self::read(&Arc::from(&*text)).ok_or_else(bad)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ARN: &str = "arn:aws:kinesis:eu-central-1:123456789012:stream/orders";

    fn of(arn: &str, seconds: i64) -> StreamIdentity {
        StreamIdentity::new(arn, Wall(seconds * 1_000)).unwrap()
    }

    #[test]
    fn a_stream_is_told_by_its_arn_and_by_when_it_was_made() {
        let orders = of(ARN, 7);
        assert!(!orders.is_another(&StreamIdentity::new(ARN, Wall(7_999)).unwrap()));
        assert!(orders.is_another(&of(ARN, 8)), "made anew");
        for other in [
            "arn:aws:kinesis:eu-central-1:123456789012:stream/returns",
            "arn:aws:kinesis:eu-west-1:123456789012:stream/orders",
            "arn:aws:kinesis:eu-central-1:210987654321:stream/orders",
            "arn:aws-cn:kinesis:eu-central-1:123456789012:stream/orders",
        ] {
            assert!(orders.is_another(&of(other, 7)), "{other}");
        }
    }

    #[test]
    fn a_name_stands_for_any_arn_of_that_name() {
        let orders = of(ARN, 7);
        for (other, differs) in [
            (of("orders", 7), false),
            (of("orders", 8), true),
            (of("returns", 7), true),
            (of("order", 7), true),
        ] {
            assert_eq!(orders.is_another(&other), differs, "{other}");
            assert_eq!(other.is_another(&orders), differs, "{other}");
        }
        assert!(of("orders", 7).is_another(&of("returns", 7)));
    }

    #[test]
    fn a_stream_made_anew_differs_in_its_time_alone() {
        let other = "arn:aws:kinesis:eu-west-1:123456789012:stream/orders";
        for (one, another, alone) in [
            (of(ARN, 7), of(ARN, 8), true),
            (of(ARN, 7), of("orders", 8), true),
            (of(ARN, 7), of(ARN, 7), false),
            (of(ARN, 7), of("orders", 7), false),
            (of(ARN, 7), of(other, 8), false),
            (of("returns", 7), of("orders", 8), false),
        ] {
            assert_eq!(one.differs_in_time_alone(&another), alone, "{one} {another}");
        }
    }

    #[test]
    fn an_identifier_names_one_stream() {
        let id: StreamId = "123456789012:orders:7".parse().unwrap();
        for (identity, is) in [
            (of(ARN, 7), true),
            (of("orders", 7), true),
            (of(ARN, 8), false),
            (of("returns", 7), false),
            (of("arn:aws:kinesis:eu-central-1:210987654321:stream/orders", 7), false),
        ] {
            assert_eq!(identity.is_of(&id), is, "{identity}");
        }
    }

    #[test]
    fn a_text_that_spells_no_stream_is_none() {
        let long = format!("{}@7", "a".repeat(LONGEST));
        for text in [
            "",
            "@",
            "@7",
            "orders",
            "orders@",
            "orders@-7",
            "orders@+7",
            "orders@7 ",
            "ord ers@7",
            "a@b@7",
            "ord\u{1b}ers@7",
            "orders\n@7",
            "örders@7",
            "orders@99999999999999999999999",
            &long,
        ] {
            assert_eq!(StreamIdentity::read(&text.into()), None, "{text:?}");
        }
        assert_eq!(StreamIdentity::new("", Wall(7_000)), None);
        assert_eq!(StreamIdentity::new("orders", Wall(-7_000)), None);
        assert!(serde_json::from_str::<StreamIdentity>("\"orders\"").is_err());
    }

    proptest! {
        #[test]
        fn a_spelled_identity_is_read(name in "[a-zA-Z0-9_.-]{1,128}", created in 0i64..9_000_000_000_000) {
            let one = StreamIdentity::new(&name, Wall(created)).unwrap();
            prop_assert_eq!(StreamIdentity::read(&one.text()), Some(one.clone()));
            let json = serde_json::to_string(&one).unwrap();
            prop_assert_eq!(serde_json::from_str::<StreamIdentity>(&json).unwrap(), one);
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            if let Some(read) = StreamIdentity::read(&text.as_str().into()) {
                let _ = (read.to_string(), read.is_another(&read));
            }
        }
    }
}
