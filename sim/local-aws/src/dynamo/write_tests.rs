//! Put, update and delete: conditions, answers, refusals, capacity.

use super::expr::{Comparator, Condition, Update};
use super::testing::*;
use super::value::MAX_ITEM_BYTES;
use super::*;
use leasehold_engine::table::AttributeValue;

fn update(update: Update) -> UpdateItem {
    UpdateItem { table: "tab".into(), key: item([("p", s("a"))]), update, ..UpdateItem::default() }
}

#[test]
fn puts_replace_and_answer_with_what_was_there() {
    let mut dynamo = simple();
    put(&mut dynamo, item([("p", s("a")), ("x", n(1))]));
    let request = PutItem {
        return_values: ReturnValues::AllOld,
        ..put_of(item([("p", s("a")), ("y", AttributeValue::n("2.50"))]))
    };
    let reply = dynamo.put_item(NOW, &request).unwrap();
    assert_eq!(*reply.attributes.unwrap(), item([("p", s("a")), ("x", n(1))]));
    let stored = dynamo.peek("tab", &item([("p", s("a"))])).unwrap();
    assert_eq!(**stored, item([("p", s("a")), ("y", AttributeValue::n("2.5"))]));
}

#[test]
fn a_failed_condition_shows_the_item_only_if_asked() {
    let mut dynamo = simple();
    put(&mut dynamo, item([("p", s("a")), ("counter", n(7))]));
    let mut request = update(Update::new().set("owner", s("me")));
    request.condition = Some(Condition::equals("counter", n(6)));
    let error = refused(dynamo.update_item(NOW, &request), "ConditionalCheckFailedException", "conditional");
    assert_eq!(error.item, None);
    request.old_on_failure = true;
    let error = dynamo.update_item(NOW, &request).unwrap_err();
    assert_eq!(error.item.unwrap()["counter"], n(7));
    request.condition = Some(Condition::compare("counter", Comparator::Gt, n(6)));
    dynamo.update_item(NOW, &request).unwrap();
    assert_eq!(dynamo.peek("tab", &request.key).unwrap()["owner"], s("me"));
    // An absent item has no attributes, and the answer shows no item.
    let absent = DeleteItem {
        table: "tab".into(),
        key: item([("p", s("zz"))]),
        condition: Some(Condition::exists("p")),
        old_on_failure: true,
        ..DeleteItem::default()
    };
    assert_eq!(dynamo.delete_item(NOW, &absent).unwrap_err().item, None);
}

#[test]
fn updates_answer_with_all_five_return_values() {
    for (wanted, expected) in [
        (ReturnValues::None, None),
        (ReturnValues::AllOld, Some(item([("p", s("a")), ("x", n(1)), ("y", n(1))]))),
        (ReturnValues::UpdatedOld, Some(item([("x", n(1))]))),
        (ReturnValues::AllNew, Some(item([("p", s("a")), ("x", n(2)), ("y", n(1)), ("z", n(3))]))),
        (ReturnValues::UpdatedNew, Some(item([("x", n(2)), ("z", n(3))]))),
    ] {
        let mut dynamo = simple();
        put(&mut dynamo, item([("p", s("a")), ("x", n(1)), ("y", n(1))]));
        let mut request = update(Update::new().set("x", n(2)).set("z", n(3)));
        request.return_values = wanted;
        let reply = dynamo.update_item(NOW, &request).unwrap();
        assert_eq!(reply.attributes.map(|item| (*item).clone()), expected, "{wanted:?}");
    }
}

#[test]
fn an_update_creates_unless_it_only_removes() {
    let mut dynamo = simple();
    dynamo.update_item(NOW, &update(Update::new().remove("x"))).unwrap();
    assert!(dynamo.table("tab").unwrap().is_empty());
    dynamo.update_item(NOW, &update(Update::new())).unwrap();
    assert_eq!(**dynamo.peek("tab", &item([("p", s("a"))])).unwrap(), item([("p", s("a"))]));
}

#[test]
fn an_unstorable_item_is_refused() {
    let indexes = vec![index("by-owner", false, IndexProjection::All)];
    let mut dynamo = with_table(DynamoConfig::default(), false, indexes);
    let mut try_put = |item: Item, part: &str| {
        let request = put_of(item);
        invalid(dynamo.put_item(NOW, &request), part);
    };
    try_put(item([("x", n(1))]), "Missing the key p in the item");
    try_put(item([("p", n(1))]), "Type mismatch for key p expected: S actual: N");
    try_put(item([("p", s(""))]), "empty string value. Key: p");
    try_put(item([("p", s("a")), ("x", s(&"y".repeat(MAX_ITEM_BYTES)))]), "maximum allowed size");
    try_put(
        item([("p", s("a")), ("owner", n(1))]),
        "Type mismatch for Index Key owner Expected: S Actual: N",
    );
    try_put(item([("p", s("a")), ("owner", s(""))]), "IndexName: by-owner, IndexKey: owner");
    let wrong = UpdateItem { key: item([("q", s("a"))]), ..update(Update::new()) };
    invalid(dynamo.update_item(NOW, &wrong), "key element does not match the schema");
    let result = dynamo.update_item(NOW, &update(Update::new().set("p", s("b"))));
    invalid(result, "Cannot update attribute p. This attribute is part of the key");
    let result = dynamo.update_item(NOW, &update(Update::new().set("owner", n(5))));
    invalid(result, "Index Key owner");
    put(&mut dynamo, item([("p", s("a")), ("x", s(&"y".repeat(300 * 1024)))]));
    let result = dynamo.update_item(NOW, &update(Update::new().set("z", s(&"y".repeat(150 * 1024)))));
    invalid(result, "Item size to update has exceeded");
    let request = PutItem { table: "nope".into(), item: item([("p", s("a"))]), ..PutItem::default() };
    refused(dynamo.put_item(NOW, &request), "ResourceNotFoundException", "Requested resource not found");
}

#[test]
fn writes_cost_the_larger_of_before_and_after_and_their_indexes() {
    let indexes = vec![index("by-owner", false, IndexProjection::KeysOnly)];
    let mut dynamo = with_table(DynamoConfig::default(), false, indexes);
    let big = item([("p", s("a")), ("x", s(&"y".repeat(2500))), ("owner", s("w"))]);
    put(&mut dynamo, big);
    let reply = dynamo.update_item(NOW, &update(Update::new().remove("x"))).unwrap();
    // Three blocks of 1 KB at the table; the index does not hold `x`.
    assert_eq!(reply.consumed, Consumed::table(6));
    let reply = dynamo.update_item(NOW, &update(Update::new().set("owner", s("v")))).unwrap();
    assert_eq!(reply.consumed, Consumed { table: 2, indexes: vec![("by-owner".into(), 4)] });
}

#[test]
fn provisioned_capacity_is_enforced_where_asked_for() {
    let mut dynamo = Dynamo::new(DynamoConfig { throttle: true, ..DynamoConfig::default() });
    let throughput = Throughput { read: 1, write: 2 };
    let billing = Billing::Provisioned(throughput);
    dynamo.create_table(0, &CreateTable { billing, ..creation("tab", false, Vec::new()) }).unwrap();
    let request = put_of(item([("p", s("a"))]));
    let mut passed = |at: i64| (0..10).filter(|_| dynamo.put_item(at, &request).is_ok()).count();
    assert_eq!(passed(NOW), 2);
    assert_eq!(passed(NOW + 1_000), 2);
    assert_eq!(passed(NOW + 11_000), 10);
    // Validation comes before capacity, capacity before the condition.
    while dynamo.put_item(NOW + 11_000, &request).is_ok() {}
    let unmet = PutItem { condition: Some(Condition::not_exists("p")), ..request.clone() };
    refused(dynamo.put_item(NOW + 11_000, &unmet), "ProvisionedThroughputExceededException", "level");
    let keyless = PutItem { item: Item::new(), ..request };
    invalid(dynamo.put_item(NOW + 11_000, &keyless), "Missing the key");
    dynamo.operator_put(NOW + 11_000, "tab", &item([("p", s("b"))])).unwrap();
    assert_eq!(dynamo.table("tab").unwrap().len(), 2);
}

#[test]
fn a_clone_is_another_world() {
    let mut dynamo = simple();
    put(&mut dynamo, item([("p", s("a")), ("x", n(1))]));
    let mut other = dynamo.clone();
    other.update_item(NOW, &update(Update::new().set("x", n(2)))).unwrap();
    assert_eq!(dynamo.peek("tab", &item([("p", s("a"))])).unwrap()["x"], n(1));
    assert_eq!(other.peek("tab", &item([("p", s("a"))])).unwrap()["x"], n(2));
}
