//! The rows of both libraries, read as strictly as by the libraries' own readers and writers: an unknown name, type
//! or form is a panic.

use super::Row;
use leasehold::aws::dynamodb::types::AttributeValue;

/// A row of vmware-go-kcl-v2's lease table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    /// `ShardID`.
    pub shard: String,
    /// `AssignedTo`.
    pub owner: Option<String>,
    /// `Checkpoint`: a sequence number or `SHARD_END`; `""` in a claimed row without a checkpoint.
    pub checkpoint: Option<String>,
    /// `ParentShardId`: the first parent only.
    pub parent: Option<String>,
    /// `ClaimRequest`.
    pub claimed_by: Option<String>,
}

impl Lease {
    /// The library's readers take every attribute for a text without a check, and panic at other types.
    pub(super) fn read(row: &Row) -> Self {
        let known = ["ShardID", "AssignedTo", "LeaseTimeout", "Checkpoint", "ParentShardId", "ClaimRequest"];
        only(row, &known);
        let get = |name: &str| row.get(name).map(|value| text(row, name, value));
        let deadline = get("LeaseTimeout").unwrap_or_else(|| panic!("expected LeaseTimeout in {row:?}"));
        assert!(is_go_time(&deadline), "LeaseTimeout is not of Go's RFC3339Nano in UTC: {row:?}");
        let lease = Self {
            shard: get("ShardID").unwrap_or_else(|| panic!("expected ShardID in {row:?}")),
            owner: get("AssignedTo"),
            checkpoint: get("Checkpoint"),
            parent: get("ParentShardId"),
            claimed_by: get("ClaimRequest"),
        };
        // An empty owner would come from a checkpoint after the release of the lease, and no later condition would
        // fit an empty owner.
        for name in [&lease.owner, &lease.parent, &lease.claimed_by].into_iter().flatten() {
            assert!(!name.is_empty(), "expected no empty name in {row:?}");
        }
        if let Some(at) = &lease.checkpoint {
            let claimed = at.is_empty() && lease.claimed_by.is_some();
            assert!(
                claimed || at == "SHARD_END" || is_decimal(at),
                "expected a sequence number or SHARD_END in {row:?}"
            );
        }
        lease
    }

    /// Whether all of the shard was processed.
    pub(super) fn finished(&self) -> bool {
        self.checkpoint.as_deref() == Some("SHARD_END")
    }

    /// Whether somebody reads it and has checkpointed.
    pub(super) fn in_progress(&self) -> bool {
        self.owner.is_some() && self.checkpoint.as_deref().is_some_and(is_decimal)
    }
}

/// Whether a text is a time in the form of Go's `time.RFC3339Nano`, in UTC: no fraction, or a fraction without zeros
/// at the end. The library compares these texts: a second form of the same time counts as another value.
fn is_go_time(text: &str) -> bool {
    let Some(text) = text.strip_suffix('Z') else {
        return false;
    };
    // No fraction is written without its dot, and none ends in a zero.
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "1"));
    let shape = b"0000-00-00T00:00:00";
    let fits = |(found, asked): (u8, &u8)| match asked {
        b'0' => found.is_ascii_digit(),
        asked => found == *asked,
    };
    whole.len() == shape.len()
        && whole.bytes().zip(shape).all(fits)
        && (1..=9).contains(&fraction.len())
        && fraction.bytes().all(|digit| digit.is_ascii_digit())
        && !fraction.ends_with('0')
}

/// A row of kinsumer's `_checkpoints`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Checkpoint {
    /// `Shard`.
    pub shard: String,
    /// `SequenceNumber`.
    pub sequence: Option<String>,
    /// `OwnerID`.
    pub owner: Option<String>,
    /// Whether there is a time in `Finished`.
    pub finished: bool,
}

impl Checkpoint {
    /// Absent values may also be written as NULL.
    pub(super) fn read(row: &Row) -> Self {
        only(
            row,
            &[
                "Shard",
                "SequenceNumber",
                "LastUpdate",
                "LastUpdateRFC",
                "OwnerID",
                "OwnerName",
                "Finished",
                "FinishedRFC",
            ],
        );
        updated(row);
        let sequence = optional(row, "SequenceNumber");
        if let Some(at) = &sequence {
            assert!(is_decimal(at), "expected a sequence number in {row:?}");
        }
        let finished = row.get("Finished").filter(|value| !value.is_null());
        if let Some(time) = finished {
            assert!(is_nanos(time), "expected nanoseconds in Finished of {row:?}");
        }
        assert_eq!(finished.is_some(), optional(row, "FinishedRFC").is_some(), "{row:?}");
        let owner = optional(row, "OwnerID");
        assert_eq!(owner.is_some(), optional(row, "OwnerName").is_some(), "{row:?}");
        Self { shard: required(row, "Shard"), sequence, owner, finished: finished.is_some() }
    }
}

/// A row of kinsumer's `_clients`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Client {
    /// `ID`, by which clients are ordered.
    pub id: String,
    /// `Name`, for people.
    pub name: String,
}

impl Client {
    /// An id is a UUID in lower case.
    pub(super) fn read(row: &Row) -> Self {
        only(row, &["ID", "LastUpdate", "LastUpdateRFC", "Name"]);
        updated(row);
        let id = required(row, "ID");
        let hex = |byte: u8| byte == b'-' || byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        assert!(id.len() == 36 && id.bytes().all(hex), "expected a UUID in {row:?}");
        Self { id, name: required(row, "Name") }
    }
}

/// The rows of kinsumer's `_metadata`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Metadata {
    /// `ID` of the row `Leader`.
    pub leader: Option<String>,
    /// `ShardIDs` of the row `ShardCache`: those that are not finished, in their order.
    pub shards: Vec<String>,
}

impl Metadata {
    /// There are two rows at most.
    pub(super) fn read(rows: &[Row]) -> Self {
        let mut metadata = Self::default();
        for row in rows {
            updated(row);
            match required(row, "Key").as_str() {
                "Leader" => {
                    only(row, &["Key", "ID", "Name", "LastUpdate", "LastUpdateRFC"]);
                    metadata.leader = optional(row, "ID");
                }
                "ShardCache" => {
                    only(row, &["Key", "ShardIDs", "LastUpdate", "LastUpdateRFC"]);
                    let shards = row.get("ShardIDs").and_then(|value| value.as_l().ok());
                    let shards = shards.unwrap_or_else(|| panic!("expected a list of shards in {row:?}"));
                    metadata.shards = shards.iter().map(|shard| text(row, "ShardIDs", shard)).collect();
                    assert!(metadata.shards.is_sorted(), "expected an order in {row:?}");
                }
                _ => panic!("expected the leader or the shards, found {row:?}"),
            }
        }
        metadata
    }
}

fn only(row: &Row, known: &[&str]) {
    let unknown: Vec<&String> = row.keys().filter(|name| !known.contains(&name.as_str())).collect();
    assert!(unknown.is_empty(), "expected no {unknown:?} in {row:?}");
}

fn text(row: &Row, name: &str, value: &AttributeValue) -> String {
    let text = value.as_s();
    text.unwrap_or_else(|_| panic!("expected {name} to be a text in {row:?}")).clone()
}

/// A text, or NULL, or nothing.
fn optional(row: &Row, name: &str) -> Option<String> {
    let value = row.get(name).filter(|value| !value.is_null())?;
    Some(text(row, name, value))
}

fn required(row: &Row, name: &str) -> String {
    optional(row, name).unwrap_or_else(|| panic!("expected {name} in {row:?}"))
}

/// kinsumer writes the time of every write, for itself and once more for people.
fn updated(row: &Row) {
    assert!(row.get("LastUpdate").is_some_and(is_nanos), "expected nanoseconds in LastUpdate of {row:?}");
    // `Tue, 21 Nov 2023 00:34:00 +0000`
    let shown = required(row, "LastUpdateRFC");
    assert!(shown.len() == 31 && shown.ends_with(" +0000"), "expected RFC 1123 in {row:?}");
}

/// Nanoseconds since 1970 have 19 digits from 2001 to 2286.
fn is_nanos(value: &AttributeValue) -> bool {
    value.as_n().is_ok_and(|digits| digits.len() == 19 && is_decimal(digits))
}

fn is_decimal(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(attributes: &[(&str, AttributeValue)]) -> Row {
        attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    fn s(text: &str) -> AttributeValue {
        AttributeValue::S(text.to_owned())
    }

    fn refused(read: impl FnOnce() + std::panic::UnwindSafe) -> bool {
        std::panic::catch_unwind(read).is_err()
    }

    #[test]
    fn times_of_go_are_told_from_other_forms_of_the_same_time() {
        for good in [
            "2024-03-04T18:07:06.123456789Z",
            "2024-03-04T18:07:06.5Z",
            "2024-03-04T18:07:06Z",
            "0001-01-01T00:00:00Z",
        ] {
            assert!(is_go_time(good), "{good}");
        }
        for bad in [
            "2024-03-04T18:07:06.500Z",
            "2024-03-04T18:07:06.Z",
            "2024-03-04T18:07:06+00:00",
            "2024-03-04t18:07:06z",
            "2024-03-04 18:07:06Z",
            "1709575626",
            "",
        ] {
            assert!(!is_go_time(bad), "{bad}");
        }
    }

    #[test]
    fn a_lease_is_read_and_what_its_library_never_writes_is_refused() {
        let good = [
            ("ShardID", s("shardId-000000000003")),
            ("AssignedTo", s("anna")),
            ("LeaseTimeout", s("2026-11-22T00:45:33.143757726Z")),
            ("Checkpoint", s("49680444723199734744604704450582199770528417310958420018")),
            ("ParentShardId", s("shardId-000000000000")),
        ];
        let lease = Lease::read(&row(&good));
        assert!(lease.in_progress() && !lease.finished(), "{lease:?}");
        assert_eq!(lease.parent.as_deref(), Some("shardId-000000000000"));
        for (name, value) in [
            ("AssignedTo", s("")),
            ("AssignedTo", AttributeValue::Null(true)),
            ("LeaseTimeout", s("2026-11-22T00:45:33.143757726+00:00")),
            ("LeaseTimeout", AttributeValue::N("1795308333143757726".to_owned())),
            ("Checkpoint", s("TRIM_HORIZON")),
            ("Checkpoint", s("")),
            ("leaseCounter", AttributeValue::N("1".to_owned())),
        ] {
            let mut wrong = row(&good);
            wrong.insert(name.to_owned(), value.clone());
            assert!(refused(move || drop(Lease::read(&wrong))), "{name}: {value:?}");
        }
    }

    #[test]
    fn rows_of_kinsumer_are_read_and_strange_ones_refused() {
        let stamp = [
            ("LastUpdate", AttributeValue::N("1795308434832107298".to_owned())),
            ("LastUpdateRFC", s("Sun, 22 Nov 2026 00:47:14 +0000")),
        ];
        let mut ended = row(&stamp);
        ended.extend(row(&[
            ("Shard", s("shardId-000000000000")),
            ("SequenceNumber", s("49680444757743589057128639697051932206407130465477591042")),
            ("OwnerID", AttributeValue::Null(true)),
            ("Finished", AttributeValue::N("1795308431248785089".to_owned())),
            ("FinishedRFC", s("Sun, 22 Nov 2026 00:47:11 +0000")),
        ]));
        let checkpoint = Checkpoint::read(&ended);
        assert!(checkpoint.finished && checkpoint.owner.is_none(), "{checkpoint:?}");
        for (name, value) in [
            ("Finished", AttributeValue::N("1795308431".to_owned())),
            ("Finished", AttributeValue::Null(true)),
            ("OwnerID", s("05faee9c-f978-4145-8f96-3dce4eed539c")),
            ("LastUpdate", s("1795308434832107298")),
            ("LastUpdateRFC", s("2026-11-22T00:47:14Z")),
            ("SequenceNumber", s("SHARD_END")),
            ("LeaseTimeout", s("2026-11-22T00:47:14Z")),
        ] {
            let mut wrong = ended.clone();
            wrong.insert(name.to_owned(), value.clone());
            assert!(refused(move || drop(Checkpoint::read(&wrong))), "{name}: {value:?}");
        }

        let mut cache = row(&stamp);
        let shards = ["shardId-000000000001", "shardId-000000000002"];
        let list = |shards: &[&str]| AttributeValue::L(shards.iter().copied().map(s).collect());
        cache.extend(row(&[("Key", s("ShardCache")), ("ShardIDs", list(&shards))]));
        assert_eq!(Metadata::read(&[cache.clone()]).shards, shards);
        cache.insert("ShardIDs".to_owned(), list(&[shards[1], shards[0]]));
        assert!(refused(move || drop(Metadata::read(&[cache]))));
    }
}
