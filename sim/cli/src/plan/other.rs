//! Rows of another stream than the table's own.
//!
//! KCL's multi-stream mode keys a row `account:stream:epoch:shard`, and says `account:stream:epoch` in `streamName` as well.

use super::Finding;
use crate::text::counted;
use leasehold_engine::format::{Kcl, LeaseFormat as _};
use leasehold_engine::row::{LeaseRow, RowRead};
use leasehold_engine::stream_id::{StreamId, split_key};
use leasehold_engine::table::{AttributeValue, Item};
use leasehold_local_aws::kinesis::is_stream_name;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// The attribute for a stream's identifier in rows of multi-stream mode.
const STREAM_NAME: &str = "streamName";

/// A stream's name, or its identifier of multi-stream mode.
pub(super) fn parse_stream(text: &str) -> Result<String, String> {
    let id = text.parse::<StreamId>();
    let name = id.as_ref().map_or(text, StreamId::name);
    if is_stream_name(name) && name.len() <= 128 {
        Ok(text.to_owned())
    } else {
        Err("expected the name of a stream, such as orders, or account:stream:epoch as multi-stream mode has it".into())
    }
}

/// Leases of one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Count {
    leases: usize,
    unfinished: usize,
}

impl Count {
    pub(super) fn add(&mut self, lease: &LeaseRow) {
        self.leases += 1;
        self.unfinished += usize::from(!lease.checkpoint.is_end());
    }

    /// An unreadable lease row counts as a lease, too.
    pub(crate) fn add_row(&mut self, row: &RowRead) {
        match row.lease() {
            Some(lease) => self.add(lease),
            None => self.leases += 1,
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} unfinished)", counted(self.leases as u64, "lease"), self.unfinished)
    }
}

/// The stream in a key of multi-stream mode: `account:stream:epoch` of `account:stream:epoch:shard`.
pub(crate) fn stream_of(key: &str) -> Option<&str> {
    split_key(key).map(|(stream, _)| stream)
}

/// Takes out the rows of other streams, and reports each such stream.
pub(super) fn take_out(items: &mut Vec<Item>, stream: &str) -> Vec<Finding> {
    let mut others: BTreeMap<String, Count> = BTreeMap::new();
    items.retain(|item| {
        let Some(named) = named(item).filter(|named| !is_same(named, stream)) else {
            return true;
        };
        let count = others.entry(named.to_owned()).or_default();
        count.add_row(&Kcl.decode(item));
        false
    });
    let finding = |(named, count): (String, Count)| Finding {
        kind: "other-stream",
        lease_key: None,
        detail: format!(
            "{count} of the stream {named}, and the table should belong to {stream}: left out of the plan"
        ),
    };
    others.into_iter().map(finding).collect()
}

/// The stream named by a row, if any.
fn named(item: &Item) -> Option<&str> {
    text(item, STREAM_NAME).or_else(|| stream_of(text(item, Kcl.key_name())?))
}

/// Whether `a` and `b` mean one stream; either may be the name alone.
fn is_same(a: &str, b: &str) -> bool {
    match (a.parse::<StreamId>(), b.parse::<StreamId>()) {
        (Ok(_), Ok(_)) | (Err(_), Err(_)) => a == b,
        (Ok(id), Err(_)) => id.name() == b,
        (Err(_), Ok(id)) => a == id.name(),
    }
}

fn text<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
    item.get(name).and_then(AttributeValue::as_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(key: &str, stream: Option<&str>) -> Item {
        let text = |name: &'static str, value: &str| (name.into(), AttributeValue::s(value));
        let mut item = Item::from([text("leaseKey", key)]);
        item.extend(stream.map(|stream| text(STREAM_NAME, stream)));
        item
    }

    #[test]
    fn rows_that_name_another_stream_are_taken_out() {
        let rows = [
            item("shardId-000000000000", None),
            item("shardId-000000000001", Some("orders")),
            item("shardId-000000000002", Some("bills")),
            item("12:orders:1700000000:shardId-000000000003", None),
            item("12:bills:1700000000:shardId-000000000004", None),
            item("12:orders:1700000000:shardId-000000000005", Some("12:bills:1700000000")),
            item("a:b", None),
        ];
        let left = |stream| {
            let mut items = rows.to_vec();
            let findings = take_out(&mut items, stream);
            assert!(findings.iter().all(|finding| finding.kind == "other-stream"));
            let number = |item: &Item| text(item, "leaseKey").and_then(|key| key.chars().last());
            let told = findings.into_iter().map(|finding| finding.detail);
            let told: Vec<String> = told
                .map(|detail| detail.split(", and").next().map(str::to_owned))
                .map(Option::unwrap_or_default)
                .collect();
            (items.iter().filter_map(number).collect::<String>(), told)
        };
        let of = |count: &str, stream: &str| format!("{count} of the stream {stream}");
        let one = "1 lease (0 unfinished)";
        let bills = [of("2 leases (0 unfinished)", "12:bills:1700000000"), of(one, "bills")];
        assert_eq!(left("orders"), ("013b".to_owned(), bills.to_vec()));
        assert_eq!(left("12:orders:1700000000"), ("013b".to_owned(), bills.to_vec()));
        let older = of(one, "12:orders:1700000000");
        let all = [bills[0].clone(), older, bills[1].clone()];
        assert_eq!(left("12:orders:1800000000"), ("01b".to_owned(), all.to_vec()));
    }

    #[test]
    fn a_stream_has_a_name_that_it_can_have() {
        for good in ["orders", "a.b_c-D", "123456789012:orders:1700000000"] {
            assert_eq!(parse_stream(good).as_deref(), Ok(good));
        }
        let long = "x".repeat(129);
        for bad in ["", "two words", "12:orders", "a:orders:1", "12:orders:x", "1:2:3:4", &long] {
            assert!(parse_stream(bad).is_err(), "{bad:?}");
        }
    }
}
