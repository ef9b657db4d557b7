use super::*;
use proptest::prelude::*;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

fn of(value: &impl Serialize) -> u64 {
    let mut digest = Digest::new();
    digest.absorb(value);
    digest.value()
}

#[derive(Serialize)]
struct Row {
    key: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

#[derive(Serialize)]
enum Kind {
    Unit,
    New(u8),
    Tuple(u8, u8),
    Struct { a: u8, b: u8 },
}

/// Values of one type: the type itself is not part of a digest.
fn all_differ<T: Serialize>(values: &[T]) {
    let digests: BTreeSet<u64> = values.iter().map(of).collect();
    assert_eq!(digests.len(), values.len());
}

#[test]
fn every_difference_shows() {
    let row = |key, owner, next| Row { key, owner, next };
    all_differ(&["", "a", "a\0", "\0a", "eight by", "eight by\0", "eight by and more"]);
    all_differ(&[0, 1, u64::MAX, 1 << 63]);
    all_differ(&[0i64, -1, 1, i64::MIN]);
    all_differ(&[0u128, 1, 1 << 64, 1 << 65, u128::MAX]);
    all_differ(&[0.0f64, -0.0, 1.5]);
    all_differ(&['a', 'b']);
    all_differ(&[None, Some(None), Some(Some(false)), Some(Some(true))]);
    all_differ(&[(1u8, 2u8), (2, 1), (1, 1)]);
    all_differ(&[BTreeMap::from([(1, 2)]), BTreeMap::from([(2, 1)]), BTreeMap::new()]);
    all_differ(&[
        Kind::Unit,
        Kind::New(0),
        Kind::New(1),
        Kind::Tuple(1, 2),
        Kind::Struct { a: 1, b: 2 },
        Kind::Struct { a: 2, b: 1 },
    ]);
    all_differ(&[
        row("k", None, None),
        row("k", Some(1), None),
        row("k", None, Some(1)),
        row("k", Some(1), Some(1)),
        row("l", None, None),
    ]);
}

#[test]
fn nesting_and_length_show() {
    let lists: [Vec<Vec<u8>>; 8] = [
        vec![],
        vec![vec![]],
        vec![vec![], vec![]],
        vec![vec![1, 2]],
        vec![vec![1], vec![2]],
        vec![vec![], vec![1, 2]],
        vec![vec![1, 2], vec![]],
        vec![vec![0]],
    ];
    let digests: BTreeSet<u64> = lists.iter().map(of).collect();
    assert_eq!(digests.len(), lists.len());
    assert_ne!(of(&("ab", "c")), of(&("a", "bc")));
    assert_ne!(of(&("", "abcdefgh")), of(&("abcdefgh", "")));
    // A chunk with the value of a length must not pass for a length.
    assert_ne!(of(&("abcdefgh", "\u{10}\0\0\0\0\0\0\0")), of(&("abcdefgh\u{8}\0\0\0\0\0\0\0", "")));
}

#[test]
fn absorbing_is_ordered_and_rolls() {
    let mut both = Digest::default();
    both.absorb(&1u8);
    let first = both.value();
    both.absorb(&2u8);
    let mut swapped = Digest::new();
    swapped.absorb(&2u8);
    swapped.absorb(&1u8);
    assert_ne!(both.value(), first);
    assert_ne!(both.value(), swapped.value());
    assert_eq!(first, of(&1u8));
}

#[test]
fn a_refusing_value_counts_as_refused() {
    struct Refuses(u8);
    impl Serialize for Refuses {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            if self.0 == 0 { Err(ser::Error::custom("no")) } else { serializer.serialize_u8(self.0) }
        }
    }
    assert_ne!(of(&Refuses(0)), Digest::new().value());
    assert_ne!(of(&[Refuses(1), Refuses(0)]), of(&[Refuses(2), Refuses(0)]));
}

#[test]
fn an_uncounted_sequence_is_delimited() {
    struct Stream(&'static [u8]);
    impl Serialize for Stream {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            use ser::SerializeSeq;
            let mut seq = serializer.serialize_seq(None)?;
            for byte in self.0 {
                seq.serialize_element(byte)?;
            }
            seq.end()
        }
    }
    let pair = |a, b| of(&(Stream(a), Stream(b)));
    let digests = [pair(&[1, 2], &[]), pair(&[1], &[2]), pair(&[], &[1, 2]), pair(&[1], &[0, 2])];
    assert_eq!(digests.iter().collect::<BTreeSet<_>>().len(), 4);
}

/// Recorded digests are compared across builds and machines, so these values may never change.
#[test]
fn known_vectors() {
    assert_eq!(
        [
            Digest::new().value(),
            of(&0u64),
            of(&"shardId-000000000001"),
            of(&(1u8, Some(true), vec!["a", "b"])),
        ],
        [0x80ae_ce20_8517_97a7, 0x0e31_e733_6028_53e4, 0x3dfc_5fa2_ab9a_eef8, 0xd054_ee32_a240_a46a,]
    );
}

proptest! {
    #[test]
    fn displayed_text_equals_the_text(text in ".{0,40}") {
        struct Shown<'a>(&'a str);
        impl Serialize for Shown<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(&format_args!("{}{}", &self.0[..0], self.0))
            }
        }
        prop_assert_eq!(of(&Shown(&text)), of(&text));
    }

    #[test]
    fn different_values_differ(a: Vec<(u8, Option<String>)>, b: Vec<(u8, Option<String>)>) {
        prop_assert_eq!(of(&a) == of(&b), a == b);
    }
}
