use super::*;
use crate::testing::op;
use leasehold_engine::input::{Refusal, Reply};

const DOWN: Outcome = Outcome::NotSent(Cause::Network);

fn refused() -> Option<Failure> {
    Some(Failure { at: Some("http://127.0.0.1:9".into()), why: "Connection refused".into() })
}

/// A failed request of a lease, at a time in milliseconds.
fn fails(troubles: &mut Troubles, at: u64, lease: u64, outcome: &Outcome) -> Option<String> {
    let now = Mono(at * 1_000);
    let lines = troubles.outcome(now, Kind::Table, op(lease), outcome, refused());
    assert_eq!(lines, Vec::<String>::new());
    let key = LeaseKey::from(format!("shard-{lease}").as_str());
    troubles.trouble(
        now,
        &Trouble {
            op: op(lease),
            lease: Some(&key),
            what: &format!("renew {key}"),
            how: "the connection broke",
        },
    )
}

fn answers(troubles: &mut Troubles, at: u64) -> Vec<String> {
    let done = Outcome::Applied(Reply::Done);
    troubles.outcome(Mono(at * 1_000), Kind::Table, op(1), &done, None)
}

#[test]
fn the_first_failure_is_told_with_its_cause_the_rest_counted() {
    let mut troubles = Troubles::default();
    let first = fails(&mut troubles, 0, 0, &DOWN).expect("a line");
    assert_eq!(
        first,
        "DynamoDB at http://127.0.0.1:9 cannot be reached: Connection refused; could not renew shard-0; retrying; no lease \
         is held until it answers"
    );
    // 200 leases, each failing every 3 s.
    let lines: Vec<String> = (1..=120_u64)
        .filter(|second| second % 3 == 0)
        .flat_map(|second| (0..200).map(move |lease| (second * 1_000 + lease, lease)))
        .filter_map(|(at, lease)| fails(&mut troubles, at, lease, &DOWN))
        .collect();
    assert_eq!(
        lines,
        [
            "DynamoDB at http://127.0.0.1:9 cannot be reached: Connection refused; 3800 more of these in the last 60.000s, of \
             200 leases; retrying; no lease is held until it answers",
            "DynamoDB at http://127.0.0.1:9 cannot be reached: Connection refused; 3999 more of these in the last 60.000s, of \
             200 leases; retrying; no lease is held until it answers",
        ]
    );
}

#[test]
fn that_it_is_over_is_told_once_when_it_is_sure() {
    let mut troubles = Troubles::default();
    assert!(fails(&mut troubles, 0, 1, &DOWN).is_some());
    // An answer already under way when the service went down.
    assert_eq!(answers(&mut troubles, 10), Vec::<String>::new());
    assert!(fails(&mut troubles, 13_000, 1, &DOWN).is_none());
    assert_eq!(answers(&mut troubles, 14_000), Vec::<String>::new());
    assert_eq!(
        answers(&mut troubles, 15_500),
        ["DynamoDB answers again after 14.000s; 1 more request had failed"]
    );
    assert_eq!(answers(&mut troubles, 16_000), Vec::<String>::new());
}

/// A service that comes and goes gets no more lines than a dead service.
#[test]
fn a_service_that_flaps_has_few_lines() {
    let mut troubles = Troubles::default();
    let mut lines = Vec::new();
    for second in 0..600_u64 {
        match second % 10 {
            0 => lines.extend(fails(&mut troubles, second * 1_000, 1, &DOWN)),
            _ => lines.extend(answers(&mut troubles, second * 1_000)),
        }
    }
    let told = lines.iter().filter(|line| line.contains("cannot be reached")).count();
    assert_eq!(told, 10, "{lines:#?}");
    assert_eq!(lines.len(), 20, "{lines:#?}");
}

#[test]
fn services_and_causes_are_told_apart() {
    let mut troubles = Troubles::default();
    let now = Mono(0);
    let throttled = Outcome::NotSent(Cause::Throttled);
    assert!(fails(&mut troubles, 0, 1, &DOWN).is_some());
    let line = fails(&mut troubles, 1, 1, &throttled).expect("another cause");
    assert!(line.contains("DynamoDB at http://127.0.0.1:9 throttles requests"), "{line}");
    assert!(fails(&mut troubles, 2, 1, &throttled).is_none());
    let denied = Outcome::Refused(Refusal {
        why: Why::Denied,
        current: None,
        detail: "AccessDeniedException: no".into(),
    });
    troubles.outcome(now, Kind::Stream, op(1), &denied, None);
    let trouble = Trouble {
        op: op(1),
        lease: None,
        what: "list shards",
        how: "access was denied (AccessDeniedException: no)",
    };
    assert_eq!(
        troubles.trouble(now, &trouble).as_deref(),
        Some(
            "Kinesis denies access: access was denied (AccessDeniedException: no); could not list shards; retrying"
        )
    );
}

/// Throttling is over after a minute without a throttled request, whatever other answers come meanwhile.
#[test]
fn trouble_in_answers_is_over_with_the_first_answer_without_it() {
    let mut troubles = Troubles::default();
    let throttled = Outcome::NotSent(Cause::Throttled);
    assert!(fails(&mut troubles, 0, 1, &throttled).is_some());
    assert!(fails(&mut troubles, 10_000, 1, &throttled).is_none());
    assert_eq!(answers(&mut troubles, 69_000), Vec::<String>::new());
    assert_eq!(
        answers(&mut troubles, 71_000),
        ["DynamoDB no longer throttles requests: the last time was 61.000s ago; 1 more request had failed"]
    );
    assert_eq!(answers(&mut troubles, 140_000), Vec::<String>::new());
}

#[test]
fn a_worker_with_leases_is_told_what_becomes_of_them() {
    let mut troubles = Troubles::default();
    troubles.begin(Span::from_secs(9));
    troubles.took(&"shard-1".into());
    let line = fails(&mut troubles, 0, 1, &DOWN).expect("a line");
    assert!(line.ends_with("retrying; a lease that is not renewed for 9.000s is paused"), "{line}");
    troubles.gave_up(&"shard-1".into());
    let line = fails(&mut troubles, 60_000, 1, &DOWN).expect("a line");
    assert!(line.ends_with("no lease is held until it answers"), "{line}");
}

/// Trouble without a request is told in the engine's words.
#[test]
fn trouble_without_a_request_is_told_in_the_words_of_the_engine() {
    let trouble = Trouble {
        op: op(1),
        lease: None,
        what: "scan the lease table",
        how: "expected an answer to this command, found Done",
    };
    assert_eq!(
        Troubles::default().trouble(Mono(0), &trouble).as_deref(),
        Some("could not scan the lease table: expected an answer to this command, found Done")
    );
}
