//! The output of `deregister`, and its refusal.

use super::*;
use leasehold::{Span, WorkerId};
use serde_json::json;

fn arn(stream: &str) -> String {
    format!("arn:aws:kinesis:eu-west-1:123456789012:stream/{stream}/consumer/billing:7")
}

fn found(stream: &str, workers: Vec<Reader>) -> Found {
    let consumer = json!({"name": "billing", "arn": arn(stream), "stream_arn": "", "status": "ACTIVE"});
    Found {
        stream: stream.into(),
        sought: "billing".to_owned(),
        consumer: Some(serde_json::from_value(consumer).expect("a consumer")),
        workers,
    }
}

fn worker(name: &str, leases: u32, alive: bool) -> Reader {
    Reader { worker: WorkerId::from(name), leases, alive }
}

fn ended(stream: &str, how: Deregistered) -> Ended {
    Ended { arn: arn(stream), how }
}

#[test]
fn a_refusal_names_each_worker_with_its_stream() {
    let report = TableReport { watched: Span::from_secs(5), ..TableReport::default() };
    let refused = |found: &[Found]| refusal(found, &report, 30);
    assert_eq!(refused(&[found("orders", Vec::new())]), None);
    let alive = [found("orders", vec![worker("anna", 2, true)]), found("returns", Vec::new())];
    let told = refused(&alive).expect("a refusal");
    assert!(
        told.starts_with(
            "expected no live owner of unfinished leases, found anna (2 leases, alive) of orders; "
        ),
        "{told}"
    );
    assert!(!told.contains("--watch"), "{told}");
    let both = [
        found("orders", vec![worker("anna", 2, true), worker("bert", 1, false)]),
        found("returns", vec![worker("carl", 1, false)]),
    ];
    let told = refused(&both).expect("a refusal");
    let names = "anna (2 leases, alive) and bert (1 lease, silent for 5.000s) of orders, carl (1 lease, silent for 5.000s) of returns";
    assert!(told.contains(names) && told.contains("with --watch 30"), "{told}");
}

#[test]
fn each_consumer_is_told_with_its_end() {
    let both = [found("orders", Vec::new()), found("returns", Vec::new())];
    let shown = told(&both, false, false, &[]);
    assert!(
        shown.ends_with("nothing was deregistered; say --apply to deregister 2 consumers"),
        "{}",
        &*shown
    );
    assert!(told(&both, true, true, &[]).ends_with("\nnothing was deregistered"));
    for (how, said) in [
        (Deregistered::Gone, "ACTIVE: deregistered\n"),
        (
            Deregistered::Remains("DELETING".to_owned()),
            "still describes the consumer as DELETING; look again later\n",
        ),
        (Deregistered::Anew("arn:new".to_owned()), "a worker registered arn:new meanwhile; stop the workers"),
    ] {
        let gone = usize::from(how == Deregistered::Gone);
        let shown = told(&both, true, false, &[ended("orders", how)]);
        assert!(shown.contains(said), "{}", &*shown);
        assert!(shown.contains("of returns, arn:"), "{}", &*shown);
        assert!(shown.ends_with(&format!("{gone} of 2 consumers deregistered")), "{}", &*shown);
    }
}

#[test]
fn a_stream_without_a_consumer_does_not_shift_the_results() {
    let none = Found { consumer: None, ..found("orders", Vec::new()) };
    let shown =
        told(&[none, found("returns", Vec::new())], true, false, &[ended("returns", Deregistered::Gone)]);
    assert!(
        shown.starts_with("orders has no consumer billing\nderegister the consumer billing of returns"),
        "{}",
        &*shown
    );
    assert!(shown.ends_with("1 of 1 consumer deregistered"), "{}", &*shown);
    let none = Found { consumer: None, ..found("orders", Vec::new()) };
    assert_eq!(
        &*told(&[none], true, false, &[]),
        "orders has no consumer billing\nthere is nothing to deregister"
    );
}
