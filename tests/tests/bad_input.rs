//! What goes wrong around a worker: each case ends in a clear error or in a stated recovery, and nothing is lost.

mod account;
mod said;

use account::{Orders, STREAM, TABLE, payloads};
use leasehold::{Error, Fatal, Notice};
use leasehold_tests::account::{SHARDS, n, s};
use leasehold_tests::local::Refusal;
use leasehold_tests::wait::until;
use std::collections::HashMap;
use std::time::Duration;

pub(super) const DENIED: Refusal = Refusal {
    code: "AccessDeniedException",
    message: "User: arn:aws:iam::000000000000:user/test is not authorized to perform this action",
};
const EXPIRED: Refusal = Refusal {
    code: "ExpiredTokenException",
    message: "The security token included in the request is expired",
};

/// Checks the error's sentence for the expectation, the finding, and the remedy.
pub(super) fn assert_says(error: &Error, parts: &[&str]) {
    let sentence = error.to_string();
    for part in parts {
        assert!(sentence.contains(part), "expected {part:?} in: {sentence}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_of_another_application_is_left_alone() {
    let account = Orders::with_stream().await;
    account.create_table("orderId").await;
    account.put_row(&[("orderId", s("o-1")), ("amount", n("5"))]).await;
    let error = account.probe().failed().await;
    assert!(matches!(error, Error::Fatal(Fatal::TableIncompatible { .. })), "{error:?}");
    assert_says(
        &error,
        &[
            "expected table \"billing\" to have the primary key of this lease format, a string",
            "belongs to another application",
            "choose another table name",
        ],
    );
    let left = account.dynamodb.scan().table_name(TABLE).send().await.expect("the rows");
    assert_eq!(
        left.items(),
        [HashMap::from([("orderId".to_owned(), s("o-1")), ("amount".to_owned(), n("5"))])]
    );
}

/// A policy that is changed while workers run: what is refused is tried again, with the reason in the log.
#[tokio::test(flavor = "multi_thread")]
async fn a_permission_that_is_missing_for_a_while_costs_nothing() {
    for operation in [
        "Kinesis_20131202.GetRecords",
        "Kinesis_20131202.GetShardIterator",
        "Kinesis_20131202.ListShards",
        "DynamoDB_20120810.UpdateItem",
        "DynamoDB_20120810.PutItem",
        "DynamoDB_20120810.Scan",
    ] {
        let account = Orders::with_records(10).await;
        account.local.refuse(move |target| (target == operation).then_some(DENIED));
        let mut probe = account.probe();
        probe
            .told(&format!("trouble over {operation} to be told"), |notice| {
                matches!(notice, Notice::Trouble { how, .. }
                    if how.contains("AccessDeniedException") || how.contains("access was denied; grant the permission"))
            })
            .await;
        assert_eq!(probe.seen().count(), 0, "{operation}");
        account.local.refuse_nothing();
        probe.processed(10).await;
        probe.shutdown().await;
        assert_eq!(probe.seen().payloads(), payloads(0..10), "{operation}");
        account.assert_released(&probe).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_deleted_under_way_ends_the_worker_with_all_progress() {
    let (account, mut probe) = Orders::consumed(20).await;
    account.delete(STREAM).await;
    let error = probe.failed().await;
    assert!(matches!(error, Error::Fatal(Fatal::StreamGone { .. })), "{error:?}");
    assert_says(
        &error,
        &[
            "stream \"orders\" was deleted",
            "its checkpoints stay in the lease table",
            "use a new application name for a new stream",
        ],
    );
    assert_eq!(probe.seen().payloads(), payloads(0..20));
    account.assert_released(&probe).await;
}

/// A new stream of the old name has other records: checkpoints of the old stream have no meaning in the new stream.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_created_again_is_not_taken_for_the_old_one() {
    let (account, mut probe) = Orders::consumed(20).await;
    account.delete(STREAM).await;
    account.create_stream().await;
    let error = probe.failed().await;
    assert!(matches!(error, Error::Fatal(Fatal::StreamGone { .. })), "{error:?}");
    assert_says(&error, &["deleted and created again", "use a new application name"]);
    account.assert_released(&probe).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_deleted_under_way_ends_the_worker_and_is_not_remade() {
    let (account, mut probe) = Orders::consumed(20).await;
    account.dynamodb.delete_table().table_name(TABLE).send().await.expect("a deletion");
    let error = probe.failed().await;
    assert!(matches!(error, Error::Fatal(Fatal::TableGone { .. })), "{error:?}");
    assert_says(
        &error,
        &[
            "expected table \"billing\" to be there, found that it was deleted while in use, and with it all checkpoints",
            "restore it from a backup, or start again to create it anew and read from the initial position",
        ],
    );
    let tables = account.dynamodb.list_tables().send().await.expect("the tables");
    assert!(tables.table_names().is_empty(), "{tables:?}");
    // As the sentence says: a new start reads from the initial position, and no record is lost.
    let mut again = account.probe();
    again.processed(20).await;
    again.shutdown().await;
    account.assert_released(&again).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_credentials_at_the_start_are_told() {
    let account = Orders::with_stream().await;
    account.local.refuse(|_| Some(EXPIRED));
    let error = account.probe().failed().await;
    assert!(matches!(error, Error::Fatal(Fatal::Denied { .. })), "{error:?}");
    assert_says(
        &error,
        &[
            "ExpiredTokenException: The security token included in the request is expired",
            "renew the credentials, then start again",
        ],
    );
}

/// Longer than leases last: the worker stops delivering, and goes on where it was when the credentials are renewed.
#[tokio::test(flavor = "multi_thread")]
async fn credentials_renewed_under_way_lose_nothing() {
    let (account, mut probe) = Orders::consumed(20).await;
    // The producer has credentials of its own.
    account.local.refuse(|target| (!target.ends_with(".PutRecord")).then_some(EXPIRED));
    account.put(20..40).await;
    probe.told("the leases to be doubted", |notice| matches!(notice, Notice::Fenced { .. })).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(probe.seen().count(), 20, "nothing is delivered without a lease");
    account.local.refuse_nothing();
    probe.processed(40).await;
    probe.shutdown().await;
    assert_eq!(probe.seen().payloads(), payloads(0..40));
    account.assert_released(&probe).await;
    assert!(account.local.refused().values().sum::<u64>() > 0);
}

/// A lease with a failed release is not reported as released: the lease expires, and the next worker goes on from the
/// checkpoints.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_that_can_release_nothing_is_an_error_that_says_so() {
    let (account, mut probe) = Orders::consumed(20).await;
    account.local.refuse(|target| (target == "DynamoDB_20120810.UpdateItem").then_some(DENIED));
    probe.ask_to_stop();
    let error = probe.failed().await;
    let Error::Unclean(report) = &error else { panic!("{error:?}") };
    let summary = &report.stop;
    assert_eq!((summary.released, summary.left, summary.aborted), (0, 2, 0));
    assert_says(
        &error,
        &[
            "0 leases were released, 2 leases were left to expire",
            "its release failed",
            "another worker takes what was left once it was not renewed for 1.500s",
            "no record is lost: what was not checkpointed is processed again",
            "see the warnings in the log before this",
        ],
    );
    let rows = account.rows().await;
    assert!(rows.values().all(|row| row.contains_key("leaseOwner")), "{rows:?}");
    // As the sentence says.
    account.local.refuse_nothing();
    account.put(20..22).await;
    let mut next = account.probe();
    // Records after the checkpoint come again, before the new records of their shard.
    let new = payloads(20..22);
    until("the new records of both shards", Duration::from_secs(60), || async {
        let seen = next.seen().payloads();
        new.iter().all(|payload| seen.contains(payload))
    })
    .await;
    next.shutdown().await;
    account.assert_released(&next).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_rows_are_told_and_the_rest_is_processed() {
    let account = Orders::with_records(20).await;
    account.create_table("leaseKey").await;
    // A shard's own row with a counter that is no number; and a row without any meaning.
    let broken = [
        ("leaseKey", s(SHARDS[0])),
        ("leaseCounter", s("seven")),
        ("checkpoint", s("TRIM_HORIZON")),
        ("ownerSwitchesSinceCheckpoint", n("0")),
    ];
    let strange = [("leaseKey", s("note")), ("checkpoint", s("not a position")), ("leaseCounter", n("-1"))];
    account.put_row(&broken).await;
    account.put_row(&strange).await;
    let mut probe = account.probe();
    for (key, detail) in [
        (SHARDS[0], "leaseCounter: expected a whole number from 0 to 2^64 - 1, found the string \"seven\""),
        ("note", "leaseCounter: expected a whole number from 0 to 2^64 - 1, found the number -1"),
    ] {
        probe
            .told(&format!("{key} to be reported"), |notice| {
                matches!(notice, Notice::Unreadable { key: found, detail: said, .. }
                    if found.as_str() == key && said == detail)
            })
            .await;
    }
    // The other shard has the odd numbers.
    probe.processed(10).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(probe.seen().payloads(), payloads(0..20).into_iter().skip(1).step_by(2).collect::<Vec<_>>());
    for row in [&broken[..], &strange[..]] {
        let expected: HashMap<_, _> =
            row.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let key = expected["leaseKey"].as_s().expect("a string");
        assert_eq!(account.rows().await[key], expected, "left as it was");
    }
    // After the repair of the row, the shard is processed from its checkpoint, without a restart.
    account
        .put_row(&[
            ("leaseKey", s(SHARDS[0])),
            ("leaseCounter", n("7")),
            ("checkpoint", s("TRIM_HORIZON")),
            ("checkpointSubSequenceNumber", n("0")),
            ("ownerSwitchesSinceCheckpoint", n("0")),
        ])
        .await;
    probe.processed(20).await;
    probe.shutdown().await;
    assert_eq!(probe.seen().payloads(), payloads(0..20));
    account.assert_released(&probe).await;
}
