//! A record as one line of JSON.

use crate::text;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use leasehold_engine::position::Position;
use leasehold_engine::shown::is_hidden;
use leasehold_engine::time::Wall;
use std::fmt::Display;
use std::io::Write;

/// The content of a record's line.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// The shard's id.
    pub shard: &'a str,
    /// The fencing token: records printed under one token are in order.
    pub token: u64,
    /// The record's place in its shard.
    pub position: Position,
    /// The partition key.
    pub partition_key: &'a str,
    /// The payload.
    pub data: &'a [u8],
    /// The record's approximate arrival in the stream.
    pub arrival: Option<Wall>,
}

/// How a payload is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// In base64.
    Base64,
    /// As text. Invalid UTF-8 is replaced by U+FFFD.
    Text,
}

impl Line<'_> {
    /// Appends the line and its line feed. The line is built in place: payloads may be large, and records many.
    pub fn append_to(&self, out: &mut Vec<u8>, payload: Payload) {
        out.extend_from_slice(b"{\"shard\":");
        append_text(out, self.shard);
        out.extend_from_slice(b",\"token\":");
        append_shown(out, self.token);
        out.extend_from_slice(b",\"sequence\":\"");
        append_shown(out, self.position.sequence);
        out.extend_from_slice(b"\",\"sub_sequence\":");
        append_shown(out, self.position.sub);
        out.extend_from_slice(b",\"partition_key\":");
        append_text(out, self.partition_key);
        out.extend_from_slice(b",\"data\":");
        match payload {
            Payload::Base64 => append_base64(out, self.data),
            Payload::Text => match std::str::from_utf8(self.data) {
                Ok(text) => append_text(out, text),
                Err(_) => append_text(out, &String::from_utf8_lossy(self.data)),
            },
        }
        out.extend_from_slice(b",\"arrival\":");
        match self.arrival {
            Some(arrival) => {
                out.push(b'"');
                append_shown(out, arrival);
                out.push(b'"');
            }
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b"}\n");
    }
}

/// Appends a value without escapes.
fn append_shown(out: &mut Vec<u8>, shown: impl Display) {
    write!(out, "{shown}").expect("a Vec takes all that is written");
}

fn append_base64(out: &mut Vec<u8>, data: &[u8]) {
    out.push(b'"');
    let begin = out.len();
    let most = data.len().div_ceil(3) * 4;
    out.resize(begin + most, 0);
    let written = STANDARD
        .encode_slice(data, &mut out[begin..])
        .expect("there is room for four letters for every three bytes");
    out.truncate(begin + written);
    out.push(b'"');
}

/// Appends a JSON string. A terminal obeys some characters that JSON does not escape, all from DELETE upwards.
fn append_text(out: &mut Vec<u8>, text: &str) {
    let begin = out.len();
    serde_json::to_writer(&mut *out, text).expect("a text is JSON, and a Vec takes all that is written");
    let hidden = |text: &str| text.bytes().any(|byte| byte >= 0x7f) && text.chars().any(is_hidden);
    if let Ok(written) = std::str::from_utf8(&out[begin..])
        && hidden(written)
    {
        let escaped = text::json(written);
        out.truncate(begin);
        out.extend_from_slice(escaped.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn line(partition_key: &str, data: &[u8], arrival: Option<Wall>, payload: Payload) -> String {
        let mut out = b"before\n".to_vec();
        let line = Line {
            shard: "shardId-000000000000",
            token: 17,
            position: Position {
                sequence: "49590338271490256608559692538361571095921575989136588898"
                    .parse()
                    .expect("a sequence number"),
                sub: 3,
            },
            partition_key,
            data,
            arrival,
        };
        line.append_to(&mut out, payload);
        let text = String::from_utf8(out).expect("UTF-8");
        text.strip_prefix("before\n").expect("what was there").to_owned()
    }

    #[test]
    fn a_line_is_as_documented() {
        assert_eq!(
            line("k", b"hi", Some(Wall(1_735_689_600_000)), Payload::Base64),
            "{\"shard\":\"shardId-000000000000\",\"token\":17,\
             \"sequence\":\"49590338271490256608559692538361571095921575989136588898\",\"sub_sequence\":3,\
             \"partition_key\":\"k\",\"data\":\"aGk=\",\"arrival\":\"2025-01-01T00:00:00Z\"}\n"
        );
        let text = line("k", b"a\xffb\n", None, Payload::Text);
        assert!(text.ends_with(",\"data\":\"a\u{fffd}b\\n\",\"arrival\":null}\n"), "{text}");
    }

    proptest! {
        #[test]
        fn every_record_is_one_line_that_says_all_of_it(
            key in "\\PC{0,20}|[\\x00-\\x1f\"\\\\\\x7f-\\x9f\\u{202e}]{0,9}",
            data in prop::collection::vec(any::<u8>(), 0..200),
            arrival in any::<i64>(),
        ) {
            for payload in [Payload::Base64, Payload::Text] {
                let line = line(&key, &data, Some(Wall(arrival)), payload);
                prop_assert_eq!(line.find('\n'), Some(line.len() - 1));
                prop_assert!(!line.trim_end_matches('\n').chars().any(is_hidden));
                let value: Value = serde_json::from_str(&line).expect("JSON");
                let shown = match payload {
                    Payload::Base64 => STANDARD.encode(&data),
                    Payload::Text => String::from_utf8_lossy(&data).into_owned(),
                };
                prop_assert_eq!(&value["partition_key"], &json!(key));
                prop_assert_eq!(&value["data"], &json!(shown));
                prop_assert_eq!(&value["arrival"], &json!(Wall(arrival).to_string()));
            }
        }
    }
}
