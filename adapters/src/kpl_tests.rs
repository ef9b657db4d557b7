use super::*;
use leasehold_engine::position::Position;
use proptest::prelude::*;

const HALF: HashRange = HashRange {
    start: HashKey(0),
    end: HashKey(u128::MAX / 2),
};

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
    partition_keys: &[&str],
    hash_keys: &[&str],
    parts: &[(u64, Option<u64>, &str)],
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

fn parts(data: Bytes, range: Option<HashRange>, misplaced: Misplaced) -> Vec<(u64, String, String)> {
    match unpack(plain(data), range, misplaced) {
        Unpacked::Plain(record) => panic!("plain: {record:?}"),
        Unpacked::Dropped(_) => Vec::new(),
        Unpacked::Split(..) => panic!("split, though there are no dead letters"),
        Unpacked::Parts(parts) => parts
            .into_iter()
            .map(|part| {
                assert!(part.aggregated && part.position.sequence == 7.into());
                (
                    part.position.sub,
                    part.partition_key.to_string(),
                    String::from_utf8(part.data.to_vec()).unwrap(),
                )
            })
            .collect(),
    }
}

fn is_plain(data: impl Into<Bytes>) -> bool {
    let data = data.into();
    unpack(plain(data.clone()), Some(HALF), Misplaced::Drop) == Unpacked::Plain(plain(data))
}

/// Written by hand, byte for byte, so that reading is not only tested against our own writing.
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
    let Unpacked::Parts(parts) = unpack(plain(seal(&body)), None, Misplaced::Drop) else {
        panic!("two parts")
    };
    assert_eq!(parts.len(), 2);
    assert_eq!(parts[1].explicit_hash_key, Some(HashKey(5)));
}

#[test]
fn what_is_no_aggregate_stays_as_it_is() {
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
    assert!(is_plain(aggregate(
        &["k"],
        &[],
        &[(0, None, "a"), (1, None, "b")]
    )));
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
    assert_eq!(
        unpack(plain(data), None, Misplaced::Drop),
        Unpacked::Parts(Vec::new())
    );
}

#[test]
fn a_misplaced_part_drops_its_aggregate_or_is_kept_as_told() {
    let (inside, outside) = ("1", u128::MAX.to_string());
    let data = aggregate(
        &["k"],
        &[inside, &outside],
        &[(0, Some(0), "a"), (0, Some(1), "b")],
    );
    assert!(parts(data.clone(), Some(HALF), Misplaced::Drop).is_empty());
    assert_eq!(parts(data.clone(), Some(HALF), Misplaced::Keep).len(), 2);
    assert_eq!(
        parts(data.clone(), Some(HashRange::ALL), Misplaced::Drop).len(),
        2
    );
    assert_eq!(parts(data, None, Misplaced::Drop).len(), 2);
}

#[test]
fn parts_of_other_shards_are_set_apart_if_they_are_dead_letters() {
    let (inside, outside) = ("1", u128::MAX.to_string());
    let mixed = [(0, Some(0), "a"), (0, Some(1), "b"), (0, Some(0), "c")];
    let data = aggregate(&["k"], &[inside, &outside], &mixed);
    let split = |range| unpack(plain(data.clone()), range, Misplaced::DeadLetter);
    let Unpacked::Split(ours, others) = split(Some(HALF)) else {
        panic!("expected it to be split, found {:?}", split(Some(HALF)))
    };
    let subs = |parts: &[Record]| parts.iter().map(|part| part.position.sub).collect::<Vec<_>>();
    assert_eq!((subs(&ours), subs(&others)), (vec![0, 2], vec![1]));
    for range in [None, Some(HashRange::ALL)] {
        assert!(matches!(split(range), Unpacked::Parts(parts) if parts.len() == 3));
    }
}

#[test]
fn a_partition_key_counts_by_its_md5() {
    // MD5("a") begins with 0x0c, MD5("b") with 0x92.
    assert_eq!(
        hash_of(&Record {
            partition_key: "a".into(),
            ..plain("")
        }),
        HashKey(0x0cc1_75b9_c0f1_b6a8_31c3_99e2_6977_2661)
    );
    assert_eq!(
        parts(
            aggregate(&["a"], &[], &[(0, None, "x")]),
            Some(HALF),
            Misplaced::Drop
        )
        .len(),
        1
    );
    assert!(
        parts(
            aggregate(&["b"], &[], &[(0, None, "x")]),
            Some(HALF),
            Misplaced::Drop
        )
        .is_empty()
    );
}

#[test]
fn the_edges_of_a_range_belong_to_it() {
    let range = HashRange {
        start: HashKey(10),
        end: HashKey(20),
    };
    for (key, kept) in [("9", 0), ("10", 1), ("20", 1), ("21", 0)] {
        let data = aggregate(&["k"], &[key], &[(0, Some(0), "a")]);
        assert_eq!(parts(data, Some(range), Misplaced::Drop).len(), kept, "{key}");
    }
}

proptest! {
    #[test]
    fn what_was_packed_comes_out(
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
            Unpacked::Parts(_) => {}
            other => panic!("{other:?}, though what is misplaced is to be kept"),
        }
    }
}
