//! Names and numbers in a form for people.

use crate::oracles::Time;
use crate::oracles::fact::{Mark, Verb};

/// The beginning of each shard id.
const PREFIX: &str = "shardId-";

/// A text with the leading zeros of shard ids removed, since the zeros make all ids look alike.
pub fn shorten(text: &str) -> String {
    let mut short = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(PREFIX) {
        let (before, id) = rest.split_at(at);
        short.push_str(before);
        rest = &id[PREFIX.len()..];
        let length = rest.bytes().take_while(u8::is_ascii_digit).count();
        if length == 0 {
            short.push_str(PREFIX);
            continue;
        }
        let digits = rest[..length].trim_start_matches('0');
        short.push_str("shard-");
        short.push_str(if digits.is_empty() { "0" } else { digits });
        rest = &rest[length..];
    }
    short.push_str(rest);
    short
}

/// The number at the end of a shard's name.
pub fn number(name: &str) -> Option<u32> {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    name[name.len() - digits..].parse().ok()
}

/// A worker's name without the number of its life.
pub fn worker(name: &str) -> &str {
    match name.rsplit_once(':') {
        Some((before, life))
            if (8..=16).contains(&life.len()) && life.bytes().all(|b| b.is_ascii_hexdigit()) =>
        {
            before
        }
        _ => name,
    }
}

/// A time in seconds, to the millisecond.
pub fn seconds(at: Time) -> String {
    format!("{}.{:03} s", at / 1_000_000, at / 1_000 % 1_000)
}

/// A shard's progress.
pub fn progress(mark: Mark) -> String {
    match mark {
        Mark::AtTimestamp => "AT_TIMESTAMP".to_owned(),
        Mark::TrimHorizon => "TRIM_HORIZON".to_owned(),
        Mark::Latest => "LATEST".to_owned(),
        Mark::At(record) => format!("record {record}"),
        Mark::Nowhere => "a position of no record".to_owned(),
        Mark::End => "the end of the shard".to_owned(),
    }
}

/// The effect of a write.
pub fn verb(verb: Verb) -> &'static str {
    match verb {
        Verb::Create => "create",
        Verb::Renew => "renew",
        Verb::Take => "take",
        Verb::Claim => "claim",
        Verb::Assign => "assign",
        Verb::Checkpoint => "checkpoint",
        Verb::End => "end",
        Verb::Release => "release",
        Verb::BeginHandOver => "begin to hand over",
        Verb::HandOver => "hand over",
        Verb::SetRange => "set the range of",
        Verb::Delete => "delete",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_within_a_text_are_shortened() {
        assert_eq!(
            shorten("took shardId-000000000003 after shardId-000000000000: shardId-x"),
            "took shard-3 after shard-0: shardId-x"
        );
        assert_eq!(shorten("shardId-"), "shardId-");
        assert_eq!(shorten("größe shardId-0000000000120"), "größe shard-120");
    }

    #[test]
    fn the_number_of_a_shard_is_at_the_end_of_its_name() {
        assert_eq!(number("shardId-000000000120"), Some(120));
        assert_eq!(number("größe"), None);
        assert_eq!(number("99999999999999999999"), None);
    }

    #[test]
    fn a_life_is_told_from_a_port() {
        assert_eq!(worker("w1:00c0ffee00c0ffee"), "w1");
        assert_eq!(worker("host:8080"), "host:8080");
    }
}
