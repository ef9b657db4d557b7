//! Claims of the end of a shard.

use super::bench::{Bench, STREAM_LAG, child, last_answer, no_records, pos, records};
use crate::input::{Fetched, Outcome, Reply};
use crate::output::IteratorFrom;
use crate::reader::{Event, Start, Want};
use crate::shard::ChildShard;
use crate::time::{Mono, Span};

#[test]
fn an_end_is_believed_when_a_second_answer_claims_it() {
    let children = [child("a"), child("b")];
    let mut bench = Bench::ready(Start::TrimHorizon);
    let last = Fetched { end: Some(children.to_vec()), behind_ms: 0, ..records(pos(1), pos(1), 1) };
    assert_eq!(bench.answer(last), None);
    let waited = bench.wait();
    assert!(waited <= bench.cfg.min_interval, "asked for at once: {waited:?}");
    assert_eq!(bench.next(), Some(Want::GetIterator(IteratorFrom::After(pos(1)))));
    assert_eq!(bench.again(last_answer(&children)), Some(Event::EndOfShard));
    bench.process_front();
    assert_eq!(bench.reader.finished(), Some(&children[..]));
}

#[test]
fn two_weak_claims_of_an_end_lie_apart() {
    let mut bench = Bench::ready(Start::TrimHorizon);
    let again_in = Span::from_secs(1);
    assert_eq!(bench.answer(last_answer(&[])), Some(Event::WeakEnd { again_in }));
    let first = bench.now;
    assert_eq!(claims_until_end(&mut bench), first + STREAM_LAG);
}

/// Claims the end without children, as often as the reader asks. Returns the moment of the end's proof.
fn claims_until_end(bench: &mut Bench) -> Mono {
    let pause = Span::from_secs(1);
    loop {
        assert!(bench.wait() <= pause, "an open shard is asked often enough to deny the claim");
        let event = bench.again(last_answer(&[]));
        if event == Some(Event::EndOfShard) {
            return bench.now;
        }
        assert_eq!(event, None, "a weak claim is told once");
        assert_eq!(bench.reader.finished(), None);
    }
}

/// The answer to a request of the first second comes, or is handled, long after the service gave the answer.
#[test]
fn a_late_answer_does_not_lie_apart_from_the_first_claim() {
    let mut bench = Bench::ready(Start::TrimHorizon);
    assert!(bench.answer(last_answer(&[])).is_some());
    assert_eq!(bench.iterate(Outcome::Applied(Reply::Iterator)), None);
    bench.wait();
    let second = bench.send();
    bench.now += STREAM_LAG.times(2);
    assert_eq!(bench.done(second, Outcome::Applied(Reply::Records(last_answer(&[])))), None);
    assert_eq!(bench.reader.finished(), None);
    assert_eq!(bench.again(last_answer(&[])), Some(Event::EndOfShard), "the third request lies apart");
}

#[test]
fn an_open_shard_denies_a_weak_claim_before_the_next_one() {
    let mut bench = Bench::ready(Start::TrimHorizon);
    assert!(bench.answer(last_answer(&[])).is_some());
    let first = bench.now;
    assert_eq!(bench.again(no_records(0)), None);
    while bench.now.since(first) < STREAM_LAG {
        assert_eq!(bench.answer(no_records(0)), None);
    }
    assert!(!bench.reader.is_end_claimed());
    assert!(matches!(bench.answer(last_answer(&[])), Some(Event::WeakEnd { .. })));
}

#[test]
fn a_weak_claim_soon_after_a_plain_one_is_waited_out() {
    let mut bench = Bench::ready(Start::TrimHorizon);
    assert_eq!(bench.answer(last_answer(&[child("a")])), None);
    let first = bench.now;
    let event = bench.again(last_answer(&[]));
    assert!(matches!(event, Some(Event::WeakEnd { .. })), "{event:?}");
    assert_eq!(claims_until_end(&mut bench), first + STREAM_LAG);
}

#[test]
fn records_take_a_claimed_end_back_and_empty_answers_do_not() {
    let children = [child("a")];
    let mut bench = Bench::ready(Start::TrimHorizon);
    assert_eq!(bench.answer(last_answer(&children)), None);
    assert_eq!(bench.again(no_records(9)), None, "the service looks for records on the way");
    assert_eq!(bench.answer(last_answer(&children)), Some(Event::EndOfShard));

    let mut bench = Bench::ready(Start::TrimHorizon);
    assert_eq!(bench.answer(last_answer(&children)), None);
    assert_eq!(bench.again(records(pos(1), pos(1), 1)), None);
    bench.process_front();
    assert_eq!(bench.answer(last_answer(&children)), None, "a new claim");
    assert_eq!(bench.again(last_answer(&children)), Some(Event::EndOfShard));
}

#[test]
fn three_answers_at_the_tip_take_the_claim_of_an_end_back() {
    let children = [child("a"), child("b")];
    for claim in [&[][..], &children] {
        let ends_after = |answers: &[u64]| {
            let mut bench = Bench::ready(Start::TrimHorizon);
            bench.answer(last_answer(claim));
            for (n, behind_ms) in answers.iter().enumerate() {
                let open = no_records(*behind_ms);
                let event = match n {
                    0 => bench.again(open),
                    _ => bench.answer(open),
                };
                assert_eq!(event, None);
            }
            bench.now += STREAM_LAG;
            let ended = match answers.len() {
                0 => bench.again(last_answer(claim)),
                _ => bench.answer(last_answer(claim)),
            };
            ended == Some(Event::EndOfShard)
        };
        assert!(ends_after(&[]));
        assert!(ends_after(&[0, 0]), "as a closed shard may answer");
        assert!(!ends_after(&[0, 0, 0]));
        assert!(!ends_after(&[0, 5, 0, 5, 0]));
        assert!(ends_after(&[5; 9]), "on the way");
    }
}

#[test]
fn each_claim_of_an_end_is_taken_back_by_answers_after_it() {
    let mut bench = Bench::ready(Start::TrimHorizon);
    bench.answer(last_answer(&[child("a")]));
    for other in ["b", "c"] {
        bench.again(no_records(0));
        bench.answer(no_records(0));
        assert_eq!(bench.answer(last_answer(&[child(other)])), None);
    }
    bench.again(no_records(0));
    bench.answer(no_records(0));
    assert!(bench.reader.is_end_claimed());
    bench.answer(no_records(0));
    assert!(!bench.reader.is_end_claimed());
}

/// The answers, one after another, and whether an end follows from the last answer: with these children.
fn ends_with(answers: &[&[&str]]) -> Option<Vec<ChildShard>> {
    let mut bench = Bench::ready(Start::TrimHorizon);
    let (last, before) = answers.split_last().expect("there is an answer");
    let claim = |ids: &[&str]| last_answer(&ids.iter().map(|id| child(id)).collect::<Vec<_>>());
    for (n, ids) in before.iter().enumerate() {
        let event = match n {
            0 => bench.answer(claim(ids)),
            _ => bench.again(claim(ids)),
        };
        assert!(matches!(event, None | Some(Event::WeakEnd { .. })), "answer {n} of {answers:?}");
        assert_eq!(bench.reader.finished(), None, "answer {n} of {answers:?}");
    }
    let event = bench.again(claim(last));
    assert_eq!(event.is_some(), bench.reader.finished().is_some());
    bench.reader.finished().map(<[_]>::to_vec)
}

#[test]
fn children_are_believed_when_two_answers_name_the_same_ones() {
    let both = vec![child("a"), child("b")];
    assert_eq!(ends_with(&[&["a", "b"], &["b", "a"]]).map(|it| it.len()), Some(2));
    for wrong in [&["a", "a"][..], &["x", "b"], &["a", "b", "x"], &[]] {
        let right = &["a", "b"][..];
        assert_eq!(ends_with(&[wrong, right]), None, "{wrong:?}, and nothing says it again");
        assert_eq!(ends_with(&[wrong, right, right]), Some(both.clone()));
        if !wrong.is_empty() {
            assert_eq!(ends_with(&[right, wrong]), None);
            assert_eq!(ends_with(&[right, wrong, right]), None, "{wrong:?} lies between");
        }
    }
    let twice = ends_with(&[&["a", "b"], &["a", "a", "b"]]);
    assert_eq!(twice.map(|it| it.len()), Some(3), "the same children, one of them twice");
}

#[test]
fn a_listing_must_show_children_that_answers_leave_out() {
    assert_eq!(ends_with(&[&["a"], &["a"]]), Some(vec![]), "one of two");
    assert_eq!(ends_with(&[&["a"], &["a", "a"]]), Some(vec![]), "one of two, twice");
    let mut bench = Bench::ready(Start::TrimHorizon);
    bench.answer(last_answer(&[]));
    assert_eq!(bench.again(last_answer(&[child("a")])), None);
    claims_until_end(&mut bench);
    assert_eq!(bench.reader.finished(), Some(&[][..]), "no second answer names a child");
    let merged = ChildShard { parents: vec!["shard".into(), "other".into()], ..child("a") };
    let mut bench = Bench::ready(Start::TrimHorizon);
    bench.answer(last_answer(std::slice::from_ref(&merged)));
    bench.again(last_answer(std::slice::from_ref(&merged)));
    assert_eq!(bench.reader.finished(), Some(&[merged][..]), "the one it was merged into");
}

#[test]
fn an_end_is_believed_though_answers_differ_in_children() {
    let mut bench = Bench::ready(Start::TrimHorizon);
    let (began, mut event) = (bench.now, bench.answer(last_answer(&[child("a"), child("b")])));
    let mut answers = 1;
    while event.is_none() {
        assert!(bench.now.since(began) < STREAM_LAG, "it is not asked without end");
        let other = ["b", "c"][answers % 2];
        event = bench.again(last_answer(&[child("a"), child(other)]));
        answers += 1;
    }
    assert_eq!(event, Some(Event::EndOfShard));
    assert_eq!(bench.reader.finished(), Some(&[][..]), "a listing says which");
    assert!(bench.now.since(began) >= STREAM_LAG && answers > 2);
}

#[test]
fn a_rewind_forgets_a_claim_and_its_pause() {
    let mut bench = Bench::ready(Start::TrimHorizon);
    assert_eq!(bench.answer(records(pos(1), pos(1), 1)), None);
    assert!(bench.answer(last_answer(&[])).is_some());
    bench.reader.rewind();
    assert!(bench.wait() < STREAM_LAG);
    bench.again(records(pos(1), pos(1), 1));
    assert!(matches!(bench.answer(last_answer(&[])), Some(Event::WeakEnd { .. })));
}
