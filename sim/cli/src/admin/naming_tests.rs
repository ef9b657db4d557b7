//! Rows of another stream.

use super::*;
use leasehold::admin::report;
use leasehold::format::{Format, LeaseFormat};
use leasehold::{Checkpoint, LeaseRow, Position, ShardId, Span, Wall};
use leasehold_engine::row::RowRead;
use leasehold_engine::shard::HashRange;
use leasehold_engine::testkit::shard;
use std::collections::BTreeMap;

const ARN: &str = "arn:aws:kinesis:eu-central-1:123456789012:stream/orders";

fn of(arn: &str, seconds: i64) -> StreamIdentity {
    StreamIdentity::new(arn, Wall(seconds * 1_000)).expect("a stream")
}

fn shards() -> Vec<Shard> {
    vec![shard("shardId-000000000000", None::<ShardId>, HashRange::ALL, 100, None)]
}

fn view(number: u64, owner: Option<&str>, named: Option<StreamIdentity>) -> View {
    let row = LeaseRow {
        counter: 7,
        owner: owner.map(Into::into),
        stream: named,
        ..LeaseRow::new("shardId-000000000000".into(), Checkpoint::At(Position::of(number.into())))
    };
    [RowRead::Lease(row)].into_iter().collect()
}

fn judged(view: &View, alive: bool, described: &Described) -> Vec<Ailment> {
    let mut before = view.clone();
    for row in before.leases.values_mut().filter(|_| alive) {
        row.counter -= 1;
    }
    let patient = Patient {
        stream: None,
        view,
        shards: &shards(),
        lacks: &BTreeMap::new(),
        report: &report(&before, view, Span::from_secs(5), Span::from_secs(10)),
        finished: Format::Kcl.policies().finished,
    };
    judge(&patient, described)
}

#[test]
fn a_wrong_time_is_mended_while_no_worker_lives() {
    let now = Described::As(of(ARN, 8));
    let rows = view(150, Some("w"), Some(of(ARN, 7)));
    let dead = judged(&rows, false, &now);
    assert_eq!((dead.len(), dead[0].kind, dead[0].repairs.len()), (1, "other-stream", 1));
    assert!(dead[0].found.contains("created 1970-01-01T00:00:07Z"), "{}", dead[0].found);
    assert!(dead[0].found.contains("created 1970-01-01T00:00:08Z"), "{}", dead[0].found);
    let alive = judged(&rows, true, &now);
    assert_eq!(alive[0].repairs, []);
    assert!(alive[0].advice.starts_with("stop the workers"), "{}", alive[0].advice);
}

#[test]
fn rows_of_another_stream_are_only_told() {
    let now = Described::As(of(ARN, 8));
    for (number, named) in [(150, of("returns", 8)), (99, of(ARN, 7))] {
        let found = judged(&view(number, None, Some(named)), false, &now);
        assert_eq!((found.len(), &found[0].repairs[..]), (1, &[][..]));
        assert!(found[0].advice.contains("another name"), "{}", found[0].advice);
    }
    for named in [None, Some(of(ARN, 8)), Some(of("orders", 8))] {
        assert_eq!(judged(&view(150, None, named), false, &now), []);
    }
}

#[test]
fn an_incomparable_table_is_told_where_rows_name_a_stream() {
    let not = Described::Not("AccessDenied".to_owned());
    assert_eq!(judged(&view(150, None, None), false, &not), []);
    let named = view(150, None, Some(of(ARN, 8)));
    let found = judged(&named, false, &not);
    assert_eq!((found[0].kind, found[0].found.as_str()), ("not-compared", "AccessDenied"));
    assert!(not_compared(&named, "denied").is_some_and(|said| said.contains("denied")));
    assert_eq!(not_compared(&view(150, None, None), "denied"), None);
}

#[test]
fn a_rewind_of_a_table_that_workers_refuse_is_refused() {
    let stream: NamedStream = "orders".into();
    let refused = |number, named| refusal(&view(number, None, Some(named)), &shards(), &of(ARN, 8), &stream);
    let mendable = refused(150, of(ARN, 7)).expect("a refusal");
    assert!(mendable.contains("doctor --stream orders --repair"), "{mendable}");
    let anew = refused(99, of(ARN, 7)).expect("a refusal");
    assert!(
        anew.contains("00:00:07Z") && anew.contains("00:00:08Z") && anew.contains("another name"),
        "{anew}"
    );
    assert_eq!(refused(99, of(ARN, 8)), None);
}
