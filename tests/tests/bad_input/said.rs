//! What a service says of a refusal, and of a clock that is wrong, reaches the log, the notices and the errors of a worker.

use super::account::{Orders, STREAM, TABLE, payloads};
use super::assert_says;
use leasehold::{Error, Fatal, Notice, Span, Stall};
use leasehold_tests::local::Refusal;
use leasehold_tests::probe::{Probe, quick};

const ELSEWHERE: Refusal = Refusal {
    code: "InvalidArgumentException",
    message: "StartingSequenceNumber 49 used in GetShardIterator on shard shardId-000000000000 is invalid because it did not come \
              from this stream.\nERROR forged\u{1b}[2J",
};
const OLD: Refusal = Refusal {
    code: "InvalidSignatureException",
    message: "Signature expired: 20251127T014500Z is now earlier than 20251127T015500Z (20251127T020000Z - 5 min.)",
};

/// The sentence names the cause, which the class of the refusal does not.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_told_in_the_services_words_with_its_shard() {
    let account = Orders::with_records(10).await;
    account.local.refuse(|target| target.ends_with(".GetShardIterator").then_some(ELSEWHERE));
    let builder = account.worker_of(STREAM, TABLE);
    let mut probe = Probe::of(builder.config(|config| quick(config).with_stall_after(Span::from_secs(1))));
    let words = "it did not come from this stream.";
    probe
        .told(
            "the words of the service in a warning",
            |notice| matches!(notice, Notice::Trouble { how, .. } if how.contains(words)),
        )
        .await;
    probe
        .told("the words of the service in what stands still", |notice| {
            let told = notice.to_string();
            assert!(!told.contains(['\n', '\u{1b}']), "{told:?}");
            let reads = matches!(notice, Notice::Stalled { why: Stall::ReadsFail { .. }, .. });
            reads && told.contains(words) && told.contains("\\nERROR forged\\u{1b}[2J")
        })
        .await;
    let stalled = |status: leasehold::Status| {
        let mut leases = status.leases.into_iter();
        leases.find_map(|lease| lease.stalled.map(|stalled| stalled.waits_for))
    };
    let told = stalled(probe.control().status()).expect("a lease that stands still");
    assert!(told.contains(words) && !told.contains('\n'), "{told:?}");
    account.local.refuse_nothing();
    probe.processed(10).await;
    probe.shutdown().await;
    assert_eq!(probe.seen().payloads(), payloads(0..10));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_clock_at_the_start_is_named_and_ends_the_worker() {
    let skewed = Refusal {
        code: "RequestTimeTooSkewed",
        message: "The difference between the request time and the current time is too large.",
    };
    for refusal in [OLD, skewed] {
        let account = Orders::with_stream().await;
        account.local.refuse(move |_| Some(refusal));
        let error = account.probe().failed().await;
        assert!(matches!(error, Error::Fatal(Fatal::WrongClock { .. })), "{error:?}");
        assert_says(
            &error,
            &[
                "expected the clock of this host to be right, but the service refused to describe the stream: Kinesis at http://",
                &format!("{}: {}", refusal.code, refusal.message),
                "; the answer is dated 20",
                "and the clock of this host said 20",
                // In this test, the clock is right.
                "the two agree now",
                "set the clock right",
            ],
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_wrong_for_a_while_costs_nothing() {
    let (account, mut probe) = Orders::consumed(10).await;
    // The producer has a clock of its own.
    account.local.refuse(|target| (!target.ends_with(".PutRecord")).then_some(OLD));
    account.put(10..20).await;
    probe
        .told("the clock to be named", |notice| {
            matches!(notice, Notice::Trouble { how, .. }
                if how.contains("the clock of this host is wrong (InvalidSignatureException: Signature expired"))
        })
        .await;
    account.local.refuse_nothing();
    probe.processed(20).await;
    probe.shutdown().await;
    assert_eq!(probe.seen().payloads(), payloads(0..20));
    account.assert_released(&probe).await;
}
