use super::*;
use proptest::prelude::*;
use std::cmp::Ordering;

/// 2^192 - 1.
const HIGHEST: &str = "6277101735386680763835789423207666416102355444464034512895";

/// Every bit length is equally likely.
fn numbers() -> impl Strategy<Value = SequenceNumber> {
    (any::<[u64; 3]>(), 0u32..=192).prop_map(|(mut words, bits)| {
        for (n, word) in words.iter_mut().rev().enumerate() {
            let kept = bits.saturating_sub(64 * n as u32).min(64);
            *word = if kept == 0 { 0 } else { *word >> (64 - kept) };
        }
        SequenceNumber::from_words(words)
    })
}

/// Decimal texts without leading zeros compare by length, then digit by digit.
fn compare_texts(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then(a.cmp(b))
}

#[test]
fn known_numbers() {
    for (text, words) in [
        ("0", [0, 0, 0]),
        ("10000000000000000000", [0, 0, 10_000_000_000_000_000_000]),
        ("18446744073709551616", [0, 1, 0]),
        ("340282366920938463463374607431768211456", [1, 0, 0]),
        (HIGHEST, [u64::MAX; 3]),
    ] {
        let number: SequenceNumber = text.parse().unwrap();
        assert_eq!(number.words(), words);
        assert_eq!(number.to_string(), text);
    }
    assert_eq!("007".parse(), Ok(SequenceNumber::from(7)));
}

#[test]
fn garbage_is_refused() {
    let above = "6277101735386680763835789423207666416102355444464034512896";
    let long = "0".repeat(59);
    for text in
        ["", " 1", "+1", "-1", "1.0", "1e3", "0x1", "\u{0661}", "TRIM_HORIZON", above, &"9".repeat(58), &long]
    {
        assert!(text.parse::<SequenceNumber>().is_err(), "{text:?}");
    }
    assert_eq!(
        "x1".parse::<SequenceNumber>().unwrap_err().to_string(),
        "expected a sequence number (1 to 58 decimal digits, below 2^192), found \"x1\""
    );
    assert!(serde_json::from_str::<SequenceNumber>("7").is_err());
    assert!(serde_json::from_str::<SequenceNumber>("\"7x\"").is_err());
}

#[test]
fn checkpoints_sort_and_cover_as_the_original_does() {
    let at = |n: u64, sub| Position { sequence: n.into(), sub };
    let order = [
        Checkpoint::AtTimestamp,
        Checkpoint::TrimHorizon,
        Checkpoint::Latest,
        Checkpoint::At(at(0, 0)),
        Checkpoint::At(at(9, 0)),
        Checkpoint::At(at(9, 1)),
        Checkpoint::At(at(10, 0)),
        Checkpoint::ShardEnd,
    ];
    assert!(order.is_sorted_by(|a, b| a < b));
    let done = Checkpoint::At(at(9, 1));
    assert!(
        done.covers(at(9, 1)) && done.covers(at(9, 0)) && !done.covers(at(9, 2)) && !done.covers(at(10, 0))
    );
    assert!(!Checkpoint::Latest.covers(at(0, 0)) && Checkpoint::ShardEnd.covers(at(10, 0)));
    assert_eq!(done.to_string(), "9.1");
    assert_eq!(Checkpoint::At(at(9, 0)).to_string(), "9");
}

proptest! {
    #[test]
    fn text_and_number_go_round(number in numbers()) {
        let text = number.to_string();
        prop_assert_eq!(text.parse(), Ok(number));
        prop_assert!(text == "0" || !text.starts_with('0'));
    }

    #[test]
    fn order_is_numeric(a in numbers(), b in numbers()) {
        prop_assert_eq!(a.cmp(&b), compare_texts(&a.to_string(), &b.to_string()));
    }

    #[test]
    fn small_numbers_are_those_of_the_machine(number: u64) {
        prop_assert_eq!(SequenceNumber::from(number).to_string(), number.to_string());
    }

    #[test]
    fn json_goes_round(sequence in numbers(), sub in 0u64..3) {
        let checkpoint = Checkpoint::At(Position { sequence, sub });
        let json = serde_json::to_string(&checkpoint).unwrap();
        prop_assert_eq!(serde_json::from_str::<Checkpoint>(&json).unwrap(), checkpoint);
        prop_assert!(json.contains(&format!("\"{sequence}\"")), "{}", json);
    }

    #[test]
    fn words_go_round(number in numbers()) {
        let mut words = Vec::new();
        ciborium::into_writer(&number, &mut words).unwrap();
        prop_assert!(words.len() <= 28, "{:?} is no three words", words);
        prop_assert_eq!(ciborium::from_reader::<SequenceNumber, _>(words.as_slice()).unwrap(), number);
    }

    #[test]
    fn whatever_parses_prints_as_it_was_but_for_leading_zeros(text in "\\PC{0,70}|[0-9]{0,70}") {
        if let Ok(number) = text.parse::<SequenceNumber>() {
            let number = number.to_string();
            prop_assert_eq!(number.trim_start_matches('0'), text.trim_start_matches('0'));
        }
    }
}
