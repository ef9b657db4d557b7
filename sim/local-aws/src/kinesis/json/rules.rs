//! The service's rules for texts.

use crate::kinesis::ids::{Arn, is_name};

/// Bounds, a pattern, or a set of values.
pub(crate) struct Rule {
    least: usize,
    most: usize,
    pattern: Option<Pattern>,
    values: &'static [&'static str],
}

/// A regular expression as shown by the service, and the function in its place.
struct Pattern {
    text: &'static str,
    matches: fn(&str) -> bool,
}

const fn length(least: usize, most: usize) -> Rule {
    Rule { least, most, pattern: None, values: &[] }
}

const fn pattern(most: usize, pattern: &'static str, matches: fn(&str) -> bool) -> Rule {
    Rule { least: 1, most, pattern: Some(Pattern { text: pattern, matches }), values: &[] }
}

const fn one_of(values: &'static [&'static str]) -> Rule {
    Rule { least: 0, most: usize::MAX, pattern: None, values }
}

pub(crate) const NAME: Rule = pattern(128, "[a-zA-Z0-9_.-]+", is_name);
pub(crate) const STREAM_ARN: Rule =
    pattern(2048, r"arn:aws.*:kinesis:.*:\d{12}:stream/\S+", |text| Arn::parse(text).is_some());
pub(crate) const RESOURCE_ARN: Rule =
    pattern(2048, r"arn:aws.*:kinesis:.*:\d{12}:.*stream/\S+", |text| Arn::parse(text).is_some());
pub(crate) const CONSUMER_ARN: Rule = pattern(
    2048,
    r"^(arn):aws.*:kinesis:.*:\d{12}:.*stream\/[a-zA-Z0-9_.-]+\/consumer\/[a-zA-Z0-9_.-]+:[0-9]+",
    |text| Arn::parse(text).is_some_and(|arn| arn.consumer.is_some()),
);
pub(crate) const SEQUENCE: Rule = pattern(129, r"0|([1-9]\d{0,128})", is_natural);
pub(crate) const HASH_KEY: Rule = pattern(39, r"0|([1-9]\d{0,38})", is_natural);
pub(crate) const ITERATOR: Rule = length(1, 512);
pub(crate) const TOKEN: Rule = length(1, 1_048_576);
pub(crate) const PARTITION_KEY: Rule = length(1, 256);
pub(crate) const TAG_KEY: Rule = length(1, 128);
pub(crate) const TAG_VALUE: Rule = length(0, 256);
pub(crate) const KEY_ID: Rule = length(1, 2048);
pub(crate) const ITERATOR_TYPE: Rule =
    one_of(&["AFTER_SEQUENCE_NUMBER", "LATEST", "AT_TIMESTAMP", "AT_SEQUENCE_NUMBER", "TRIM_HORIZON"]);
pub(crate) const FILTER_TYPE: Rule = one_of(&[
    "AFTER_SHARD_ID",
    "AT_TRIM_HORIZON",
    "FROM_TRIM_HORIZON",
    "AT_LATEST",
    "AT_TIMESTAMP",
    "FROM_TIMESTAMP",
]);
pub(crate) const MODE: Rule = one_of(&["PROVISIONED", "ON_DEMAND"]);
pub(crate) const SCALING: Rule = one_of(&["UNIFORM_SCALING"]);
pub(crate) const ENCRYPTION: Rule = one_of(&["KMS"]);
pub(crate) const METRIC: Rule = one_of(&[
    "IncomingBytes",
    "IncomingRecords",
    "OutgoingBytes",
    "OutgoingRecords",
    "WriteProvisionedThroughputExceeded",
    "ReadProvisionedThroughputExceeded",
    "IteratorAgeMilliseconds",
    "ALL",
]);

impl Rule {
    /// The constraints violated by a text, in words.
    pub(super) fn violated_by(&self, text: &str) -> Vec<String> {
        let mut violated = Vec::new();
        let chars = text.chars().count();
        if let Some(pattern) = &self.pattern
            && !(pattern.matches)(text)
        {
            violated.push(format!("Member must satisfy regular expression pattern: {}", pattern.text));
        }
        if chars < self.least {
            violated.push(format!("Member must have length greater than or equal to {}", self.least));
        }
        if chars > self.most {
            violated.push(format!("Member must have length less than or equal to {}", self.most));
        }
        if !self.values.is_empty() && !self.values.contains(&text) {
            violated.push(format!("Member must satisfy enum value set: [{}]", self.values.join(", ")));
        }
        violated
    }
}

/// Digits without a leading zero.
fn is_natural(text: &str) -> bool {
    text == "0"
        || (text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() && !text.starts_with('0'))
}
