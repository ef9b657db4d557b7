//! The port's requests to the index of owners, and the port's reading of the answers.

use super::fake::{FakeHttp, Wire};
use super::tests::{last, ok, on_table};
use leasehold_engine::input::{Cause, Outcome, OwnedPage, Reply, Why};
use leasehold_engine::output::TableOp;
use serde_json::json;

/// Workers of KCL 3.x cannot look in an index that is still being filled.
#[tokio::test(start_paused = true)]
async fn the_index_of_owners_is_there_when_it_is_active() {
    let index = |name: &str, status: &str| json!([{"IndexName": name, "IndexStatus": status}]);
    for (indexes, expected) in [
        (json!([]), false),
        (index("another", "ACTIVE"), false),
        (index("LeaseOwnerToLeaseKeyIndex", "CREATING"), false),
        (index("LeaseOwnerToLeaseKeyIndex", "DELETING"), false),
        (index("LeaseOwnerToLeaseKeyIndex", "ACTIVE"), true),
    ] {
        let http = ok(&json!({"Table": {"TableStatus": "ACTIVE", "GlobalSecondaryIndexes": indexes}}));
        assert_eq!(
            on_table(http.clone(), TableOp::OwnerIndex).await,
            Outcome::Applied(Reply::OwnerIndex(expected)),
            "{indexes}"
        );
        assert_eq!(last(&http), ("DescribeTable".to_owned(), json!({"TableName": "app"})));
    }
    let missing = FakeHttp::new(|_, _| Wire::Answer(400, r#"{"__type":"ResourceNotFoundException"}"#.into()));
    let Outcome::Refused(refusal) = on_table(missing, TableOp::OwnerIndex).await else { panic!("refused") };
    assert_eq!(refusal.why, Why::NotFound);
}

#[tokio::test(start_paused = true)]
async fn the_index_of_owners_is_queried_page_by_page() {
    let entry = |key: &str| json!({"leaseKey": {"S": key}, "leaseOwner": {"S": "w 1"}});
    let owned = |after: Option<&str>| TableOp::Owned { owner: "w 1".into(), after: after.map(Into::into) };
    let http = ok(&json!({"Items": [entry("b"), entry("c")], "LastEvaluatedKey": entry("c")}));
    let keys = vec!["b".into(), "c".into()];
    assert_eq!(
        on_table(http.clone(), owned(Some("a"))).await,
        Outcome::Applied(Reply::Owned(OwnedPage { keys, next: Some("c".into()) }))
    );
    assert_eq!(
        last(&http),
        (
            "Query".to_owned(),
            json!({
                "TableName": "app",
                "IndexName": "LeaseOwnerToLeaseKeyIndex",
                "KeyConditionExpression": "#owner = :owner",
                "ExpressionAttributeNames": {"#owner": "leaseOwner"},
                "ExpressionAttributeValues": {":owner": {"S": "w 1"}},
                "ExclusiveStartKey": entry("a"),
                "ReturnConsumedCapacity": "TOTAL",
            })
        )
    );
    let empty = OwnedPage { keys: Vec::new(), next: None };
    assert_eq!(
        on_table(ok(&json!({"Items": [], "Count": 0})), owned(None)).await,
        Outcome::Applied(Reply::Owned(empty))
    );
    let garbled = ok(&json!({"Items": [{"leaseOwner": {"S": "w 1"}}]}));
    assert_eq!(on_table(garbled, owned(None)).await, Outcome::Unknown(Cause::Garbled));
}
