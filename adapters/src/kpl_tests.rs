use super::*;
use leasehold_engine::position::Position;
use proptest::prelude::*;

const HALF: HashRange = HashRange { start: HashKey(0), end: HashKey(u128::MAX / 2) };

fn plain(data: impl Into<Bytes>) -> Record {
    Record {
        shard: "s".into(),
        position: Position::of(7.into()),
        partition_key: "outer".into(),
        explicit_hash_key: None,
        data: data.into(),
        arrival: None,
        aggregated: false,
    }
}

fn seal(body: &[u8]) -> Bytes {
    let mut data = MAGIC.to_vec();
    data.extend_from_slice(body);
    data.extend_from_slice(&Md5::digest(body));
    data.into()
}

pub(crate) fn aggregate(
    partition_keys: &[&str], hash_keys: &[&str], parts: &[(u64, Option<u64>, &str)],
) -> Bytes {
    let aggregate = Aggregate {
        partition_keys: partition_keys.iter().map(ToString::to_string).collect(),
        explicit_hash_keys: hash_keys.iter().map(ToString::to_string).collect(),
        parts: parts
            .iter()
            .map(|(partition_key, explicit_hash_key, data)| Part {
                partition_key: Some(*partition_key),
                explicit_hash_key: *explicit_hash_key,
                data: Some(Bytes::copy_from_slice(data.as_bytes())),
            })
            .collect(),
    };
    seal(&aggregate.encode_to_vec())
}

fn sorted(data: Bytes, range: Option<HashRange>, misplaced: Misplaced) -> Sorted<Record> {
    match unpack(plain(data), range, misplaced) {
        Unpacked::Plain(record) => panic!("plain: {record:?}"),
        Unpacked::Parts(sorted, count) => {
            let all = sorted.ours.len() as u64 + sorted.others.len() as u64 + sorted.dropped;
            assert_eq!(all, count, "each part has its place");
            sorted
        }
    }
}

fn parts(data: Bytes, range: Option<HashRange>, misplaced: Misplaced) -> Vec<(u64, String, String)> {
    let sorted = sorted(data, range, misplaced);
    assert_eq!(sorted.others, [], "there are no dead letters");
    sorted
        .ours
        .into_iter()
        .map(|part| {
            assert!(part.aggregated && part.position.sequence == 7.into());
            (
                part.position.sub,
                part.partition_key.to_string(),
                String::from_utf8(part.data.to_vec()).unwrap(),
            )
        })
        .collect()
}

fn is_plain(data: impl Into<Bytes>) -> bool {
    let data = data.into();
    unpack(plain(data.clone()), Some(HALF), Misplaced::Drop) == Unpacked::Plain(plain(data))
}

/// Written by hand, byte for byte: reading is also tested without our own writer.
#[test]
fn an_aggregate_as_bytes() {
    let body = [
        &[0x0a, 2][..],
        b"k0",
        &[0x0a, 2],
        b"k1",
        &[0x12, 1],
        b"5",
        // index 0, data "a"
        &[0x1a, 5, 0x08, 0, 0x1a, 1],
        b"a",
        // index 1, hash key index 0, data "bc", a tag to be ignored
        &[0x1a, 13, 0x08, 1, 0x10, 0, 0x1a, 2],
        b"bc",
        &[0x22, 3, 0x0a, 1],
        b"t",
    ]
    .concat();
    assert_eq!(
        parts(seal(&body), None, Misplaced::Drop),
        [(0, "k0".into(), "a".into()), (1, "k1".into(), "bc".into())]
    );
    let parts = sorted(seal(&body), None, Misplaced::Drop).ours;
    assert_eq!(parts.len(), 2);
    assert_eq!(parts[1].explicit_hash_key, Some(HashKey(5)));
}

#[test]
fn a_record_that_is_no_aggregate_stays_as_it_is() {
    let good = aggregate(&["k"], &[], &[(0, None, "a")]);
    let mut bad_sum = good.to_vec();
    *bad_sum.last_mut().unwrap() ^= 1;
    assert!(is_plain(bad_sum));
    assert!(is_plain(&b""[..]));
    assert!(is_plain(&MAGIC[..]));
    assert!(is_plain(&b"hello"[..]));
    assert!(is_plain(seal(b"")), "nothing between the magic and the sum");
    assert!(is_plain(seal(&[0xff; 20])), "no protobuf");
    assert!(is_plain(good.slice(..good.len() - 1)));
}

#[test]
fn an_aggregate_damaged_inside_is_handed_over_whole() {
    assert!(is_plain(aggregate(&["k"], &[], &[(0, None, "a"), (1, None, "b")])));
    assert!(is_plain(aggregate(&["k"], &["1"], &[(0, Some(1), "a")])));
    assert!(is_plain(aggregate(&["k"], &["x"], &[(0, Some(0), "a")])));
    assert!(is_plain(aggregate(&["k"], &["1"], &[(u64::MAX, None, "a")])));
    // No partition key index, no data.
    assert!(is_plain(seal(&[0x0a, 1, b'k', 0x1a, 3, 0x1a, 1, b'a'])));
    assert!(is_plain(seal(&[0x0a, 1, b'k', 0x1a, 2, 0x08, 0])));
    assert!(
        !is_plain(aggregate(&["k"], &["x", "3"], &[(0, Some(1), "a")])),
        "unused entries may be anything"
    );
}

#[test]
fn an_empty_aggregate_vanishes_but_counts() {
    let data = aggregate(&["k"], &[], &[]);
    assert_eq!(parts(data, None, Misplaced::Drop), []);
}

#[test]
fn parts_of_other_shards_go_where_told_and_keep_their_numbers() {
    let (inside, outside) = ("1", u128::MAX.to_string());
    let mixed = [(0, Some(0), "a"), (0, Some(1), "b"), (0, Some(0), "c")];
    let data = aggregate(&["k"], &[inside, &outside], &mixed);
    let subs = |parts: &[Record]| parts.iter().map(|part| part.position.sub).collect::<Vec<_>>();
    for (misplaced, ours, others, dropped) in [
        (Misplaced::Drop, vec![0, 2], vec![], 1),
        (Misplaced::DropWhole, vec![], vec![], 3),
        (Misplaced::Keep, vec![0, 1, 2], vec![], 0),
        (Misplaced::DeadLetter, vec![0, 2], vec![1], 0),
    ] {
        let sorted = sorted(data.clone(), Some(HALF), misplaced);
        let found = (subs(&sorted.ours), subs(&sorted.others), sorted.dropped);
        assert_eq!(found, (ours, others, dropped), "{misplaced}");
        for range in [None, Some(HashRange::ALL)] {
            assert_eq!(parts(data.clone(), range, misplaced).len(), 3, "{misplaced}, {range:?}");
        }
    }
}

/// The hash key of a partition key.
fn hash(key: &str) -> u128 {
    u128::from_be_bytes(Md5::digest(key).into())
}

/// A producer with a map from before a split sends one aggregate of eight events to one of the two children. The
/// producer sends events not counted as stored again, to the second child; an old producer sends all events to both.
#[test]
fn after_a_split_each_event_stored_for_a_kpl_is_handed_over() {
    let keys: Vec<String> = (0..8).map(|n| format!("user-{n}")).collect();
    let names: Vec<&str> = keys.iter().map(String::as_str).collect();
    let pack = |of: &[usize]| {
        let events: Vec<(u64, Option<u64>, &str)> = of.iter().map(|n| (*n as u64, None, names[*n])).collect();
        aggregate(&names, &[], &events)
    };
    let children = [(0, u128::MAX / 2), (u128::MAX / 2 + 1, u128::MAX)];
    let children = children.map(|(start, end)| HashRange { start: HashKey(start), end: HashKey(end) });
    let all: Vec<usize> = (0..8).collect();
    let of = |child: usize| -> Vec<usize> {
        let belongs = |n: &usize| children[child].contains(HashKey(hash(names[*n])));
        all.iter().copied().filter(belongs).collect()
    };
    let outside = of(1);
    assert!(!of(0).is_empty() && !outside.is_empty(), "the split parts the keys");
    let handed_over = |sent: &[(usize, Bytes)], misplaced| {
        let mut events: Vec<String> = Vec::new();
        for (child, data) in sent {
            events.extend(
                parts(data.clone(), Some(children[*child]), misplaced).into_iter().map(|(_, _, data)| data),
            );
        }
        events.sort();
        events
    };
    let new = [(0, pack(&all)), (1, pack(&outside))];
    assert_eq!(handed_over(&new, Misplaced::Drop), keys, "each once");
    let old = [(0, pack(&all)), (0, pack(&of(0))), (1, pack(&outside))];
    let twice = handed_over(&old, Misplaced::Drop);
    assert_eq!(twice.len(), 8 + of(0).len(), "those of the first child come twice");
    assert!(keys.iter().all(|key| twice.contains(key)));
    // The whole of it was dropped before.
    let lost = 8 - handed_over(&new, Misplaced::DropWhole).len();
    assert_eq!(lost, of(0).len());
    assert_eq!(handed_over(&old, Misplaced::DropWhole), keys);
}

/// Aggregates of foreign producers: a readable aggregate is taken apart, and an unreadable aggregate comes whole.
#[test]
fn odd_aggregates_of_other_producers() {
    let low = "0";
    for (data, expected) in [
        (aggregate(&["a"], &[low], &[(0, Some(0), "ok")]), vec!["ok"]),
        (aggregate(&["a"], &[], &[(0, None, ""), (0, None, "after")]), vec!["", "after"]),
        // One part is of another shard.
        (aggregate(&["a", "b"], &[], &[(0, None, "here"), (1, None, "other")]), vec!["here"]),
    ] {
        let found = parts(data, Some(HALF), Misplaced::Drop);
        let found: Vec<&str> = found.iter().map(|(_, _, data)| data.as_str()).collect();
        assert_eq!(found, expected);
    }
    let inner = aggregate(&["a"], &[], &[(0, None, "inner")]);
    let outer = Aggregate {
        partition_keys: vec!["a".into()],
        explicit_hash_keys: Vec::new(),
        parts: vec![Part { partition_key: Some(0), explicit_hash_key: None, data: Some(inner.clone()) }],
    };
    let nested = sorted(seal(&outer.encode_to_vec()), Some(HALF), Misplaced::Drop).ours;
    assert_eq!(nested.iter().map(|part| &part.data).collect::<Vec<_>>(), [&inner]);
    assert!(is_plain(aggregate(&["a"], &[""], &[(0, Some(0), "no number")])));
}

#[test]
fn a_partition_key_counts_by_its_md5() {
    // MD5("a") begins with 0x0c, MD5("b") with 0x92.
    assert_eq!(
        hash_of(&Record { partition_key: "a".into(), ..plain("") }),
        HashKey(0x0cc1_75b9_c0f1_b6a8_31c3_99e2_6977_2661)
    );
    assert_eq!(parts(aggregate(&["a"], &[], &[(0, None, "x")]), Some(HALF), Misplaced::Drop).len(), 1);
    assert!(parts(aggregate(&["b"], &[], &[(0, None, "x")]), Some(HALF), Misplaced::Drop).is_empty());
}

#[test]
fn the_edges_of_a_range_belong_to_it() {
    let range = HashRange { start: HashKey(10), end: HashKey(20) };
    for (key, kept) in [("9", 0), ("10", 1), ("20", 1), ("21", 0)] {
        let data = aggregate(&["k"], &[key], &[(0, Some(0), "a")]);
        assert_eq!(parts(data, Some(range), Misplaced::Drop).len(), kept, "{key}");
    }
}

proptest! {
    #[test]
    fn packed_events_come_out_again(
        keys in proptest::collection::vec("[a-z]{1,8}", 1..5),
        contents in proptest::collection::vec((any::<u16>(), "[ -~]{0,20}"), 0..20),
    ) {
        let names: Vec<&str> = keys.iter().map(String::as_str).collect();
        let packed: Vec<(u64, Option<u64>, &str)> = contents
            .iter()
            .map(|(key, data)| (u64::from(*key) % keys.len() as u64, None, data.as_str()))
            .collect();
        let expected: Vec<(u64, String, String)> = (0..)
            .zip(&packed)
            .map(|(sub, (key, _, data))| (sub, keys[*key as usize].clone(), (*data).to_owned()))
            .collect();
        prop_assert_eq!(parts(aggregate(&names, &[], &packed), None, Misplaced::Drop), expected);
    }

    #[test]
    fn no_bytes_do_harm(body in proptest::collection::vec(any::<u8>(), 0..200), sealed in any::<bool>()) {
        let data = if sealed { seal(&body) } else { body.into() };
        match unpack(plain(data.clone()), Some(HALF), Misplaced::Keep) {
            Unpacked::Plain(record) => prop_assert_eq!(record, plain(data)),
            Unpacked::Parts(sorted, _) => {
                prop_assert!(sorted.others.is_empty() && sorted.dropped == 0, "what is misplaced is kept");
            }
        }
    }
}
