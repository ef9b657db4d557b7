//! The shard of a checkpoint's number: a sequence number holds its shard, and the second of the shard's creation.

use leasehold_engine::ids::ShardId;
use leasehold_engine::position::SequenceNumber;
use leasehold_engine::row::LeaseRow;
use leasehold_engine::shard::Shard;
use leasehold_engine::stream_id::split_key;
use leasehold_local_aws::kinesis::{self, SequenceParts};
use std::collections::BTreeMap;

/// The fault of a checkpoint at this number in the row of this shard, if the number belongs to another shard. Numbers
/// of the service's first years have another layout, and count as no fault.
pub(super) fn of_another(shard: &Shard, number: SequenceNumber, listed: &[Shard]) -> Option<String> {
    let parts = parts(number)?;
    if index(shard) == Some(parts.shard) || index(shard).is_none() {
        return None;
    }
    let gave = |other: &&Shard| {
        let created = self::parts(other.starting).map(|parts| parts.created_secs);
        index(other) == Some(parts.shard) && created == Some(parts.created_secs)
    };
    let whose = match listed.iter().find(gave) {
        Some(other) => format!("a number of {}, another shard of this stream", other.id),
        None if number < shard.starting => return None,
        None => format!("a number of a shard shardId-{:012}, which the stream does not list", parts.shard),
    };
    Some(format!(
        "its checkpoint {number} is {whose}: a program or a person wrote it into the wrong row, and the service refuses to read the \
         shard from there"
    ))
}

/// The fault of a checkpoint at this number, if Kinesis gives no record such a number: the shard has numbers of today's
/// layout, and this number has another layout.
pub(super) fn of_no_record(shard: &Shard, number: SequenceNumber) -> Option<String> {
    let strange = parts(shard.starting).is_some() && parts(number).is_none();
    strange.then(|| {
        format!(
            "its checkpoint {number} is a number that Kinesis gives no record: a program or a person wrote it into the row, and the \
             service refuses to read the shard from there"
        )
    })
}

/// The parents of a row that are no parents of its shard: the shard itself, and listed shards that the shard does not
/// name. A stream may have forgotten parents that it does not list.
pub(super) fn not_parents<'a>(
    lease: &'a LeaseRow, shard: &Shard, listed: &BTreeMap<&str, &Shard>,
) -> Vec<&'a str> {
    let named = lease.parents.iter().map(ShardId::as_str);
    let wrong = |id: &&str| {
        let names = shard.parents().any(|parent| parent.as_str() == *id);
        *id == shard.id.as_str() || listed.contains_key(id) && !names
    };
    named.filter(wrong).collect()
}

/// Whether a shard is of a table's stream, by its name: DynamoDB Streams names shards by twenty digits and eight of base 16.
pub(super) fn is_of_a_table(shard: &str) -> bool {
    let parts = shard.strip_prefix("shardId-").and_then(|rest| rest.split_once('-'));
    parts.is_some_and(|(time, rest)| {
        let digits = time.len() == 20 && time.bytes().all(|byte| byte.is_ascii_digit());
        digits && rest.len() == 8 && rest.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

fn parts(number: SequenceNumber) -> Option<SequenceParts> {
    kinesis::SequenceNumber::from_words(number.words()).parts()
}

/// The number in a shard's id.
fn index(shard: &Shard) -> Option<u32> {
    let id = shard.id.as_str();
    let id = split_key(id).map_or(id, |(_, id)| id);
    let digits = id.strip_prefix("shardId-")?;
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_engine::shard::HashRange;
    use leasehold_engine::testkit;

    fn number(created_secs: u64, shard: u32, position: u64) -> SequenceNumber {
        let parts = SequenceParts { created_secs, position, time_secs: created_secs + position, shard };
        SequenceNumber::from_words(kinesis::SequenceNumber::new(parts).to_words())
    }

    fn shard(id: &str, created_secs: u64, index: u32) -> Shard {
        let shard = testkit::shard(id, None::<ShardId>, HashRange::ALL, 0, None);
        Shard { starting: number(created_secs, index, 0), ..shard }
    }

    #[test]
    fn a_number_of_another_shard_is_told_with_its_shard() {
        let listed = [shard("shardId-000000000000", 1_000, 0), shard("shardId-000000000017", 2_000, 17)];
        let said = |n: usize, number| of_another(&listed[n], number, &listed);
        assert_eq!(said(0, number(1_000, 0, 5)), None);
        assert_eq!(said(1, number(2_000, 17, 5)), None);
        let told = said(0, number(2_000, 17, 5)).unwrap();
        assert!(told.contains("is a number of shardId-000000000017, another shard"), "{told}");
        // A parent's number in the row of its child is before all of the child's.
        let told = said(1, number(1_000, 0, 5)).unwrap();
        assert!(told.contains("is a number of shardId-000000000000, another shard"), "{told}");
        let told = said(0, number(3_000, 4_000_000_000, 5)).unwrap();
        assert!(told.contains("shard shardId-004000000000, which the stream does not list"), "{told}");
        // A number of another stream is reported elsewhere.
        assert_eq!(said(1, number(500, 3, 5)), None);
    }

    #[test]
    fn a_number_of_no_record_is_told() {
        let own = shard("shardId-000000000001", 1_600_000_000, 1);
        let nines = "9".repeat(56).parse().unwrap();
        assert!(of_no_record(&own, nines).is_some_and(|detail| detail.contains("gives no record")));
        assert_eq!(of_no_record(&own, number(1_600_000_000, 1, 7)), None);
    }

    #[test]
    fn a_listed_shard_that_names_no_such_child_is_no_parent() {
        let (own, other) = (shard("shardId-000000000001", 1, 1), shard("shardId-000000000000", 1, 0));
        let listed = BTreeMap::from([(own.id.as_str(), &own), (other.id.as_str(), &other)]);
        let row = |parent: &str| LeaseRow {
            parents: vec![parent.into()],
            ..LeaseRow::new(own.id.to_lease(), leasehold_engine::position::Checkpoint::TrimHorizon)
        };
        for (parent, wrong) in
            [("shardId-000000000000", 1), ("shardId-000000000001", 1), ("shardId-000000000009", 0)]
        {
            assert_eq!(not_parents(&row(parent), &own, &listed).len(), wrong, "{parent}");
        }
        let child = Shard { parent: Some(other.id.clone()), ..own.clone() };
        assert_eq!(not_parents(&row("shardId-000000000000"), &child, &listed).len(), 0);
    }

    #[test]
    fn shards_of_dynamodb_streams_are_told_by_their_names() {
        assert!(is_of_a_table("shardId-00000001762992400730-85636fc0"));
        for other in [
            "shardId-000000000001",
            "shardId-00000001762992400730",
            "shardId-0000000176299240073-85636fc0",
            "shardId-00000001762992400730-85636fcg",
            "123456789012:orders:1700000000:shardId-000000000001",
        ] {
            assert!(!is_of_a_table(other), "{other}");
        }
    }

    #[test]
    fn nothing_is_said_where_the_number_or_the_name_tells_nothing() {
        let listed = [shard("shardId-000000000000", 1_000, 0)];
        assert_eq!(of_another(&listed[0], SequenceNumber::from(12_345), &listed), None);
        let odd = shard("orders", 1_000, 0);
        assert_eq!(of_another(&odd, number(2_000, 17, 5), &listed), None);
        let several = shard("123456789012:orders:1700000000:shardId-000000000001", 1_000, 1);
        assert_eq!(of_another(&several, number(1_000, 1, 5), &listed), None);
        assert!(of_another(&several, number(1_000, 0, 5), &listed).is_some());
    }
}
