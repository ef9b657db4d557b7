//! Paging, segments, indexes and the past.

use super::expr::{Comparator, Condition, KeyCondition, Projection, SortCondition};
use super::testing::*;
use super::*;
use leasehold_engine::table::AttributeValue;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn config() -> DynamoConfig {
    DynamoConfig { keep_versions: 8, ..DynamoConfig::default() }
}

/// Every page of a scan, one after the other.
fn scan_all(dynamo: &mut Dynamo, first: Scan) -> (Vec<Arc<Item>>, usize) {
    let (mut items, mut pages, mut request) = (Vec::new(), 0, first);
    loop {
        let page = dynamo.scan(NOW, &request).unwrap();
        assert!(request.limit.is_none_or(|limit| page.scanned <= limit));
        items.extend(page.items);
        pages += 1;
        match page.last_key {
            Some(key) => request.start = Some(key),
            None => return (items, pages),
        }
    }
}

fn query_all(dynamo: &mut Dynamo, first: Query) -> Vec<i64> {
    let (mut ranks, mut request) = (Vec::new(), first);
    loop {
        let page = dynamo.query(NOW, &request).unwrap();
        let name = if request.index.is_some() { "rank" } else { "s" };
        ranks.extend(page.items.iter().map(|item| item[name].as_n().unwrap().parse::<i64>().unwrap()));
        match page.last_key {
            Some(key) => request.start = Some(key),
            None => return ranks,
        }
    }
}

fn names(items: &[Arc<Item>]) -> Vec<String> {
    items.iter().map(|item| item["p"].as_s().unwrap().to_owned()).collect()
}

proptest! {
    #[test]
    fn pages_and_segments_cover_the_table_exactly_once(
        keys in prop::collection::btree_set("[a-f]{1,4}", 0..60),
        limit in prop::option::of(1_usize..20),
        page_items in prop::option::of(1_usize..20),
        page_bytes in 1_usize..200,
        segments in 1_u32..6,
    ) {
        let settings = DynamoConfig { max_page_items: page_items, page_bytes, ..config() };
        let mut dynamo = with_table(settings, false, vec![index("by-owner", false, IndexProjection::All)]);
        for key in &keys {
            // A third has no owner, and so no place in the index.
            let mut entry = item([("p", s(key))]);
            if key.len() % 3 != 0 {
                entry.insert("owner".into(), s(&key[..1]));
            }
            put(&mut dynamo, entry);
        }
        for (index, expected) in [
            (None, keys.clone()),
            (Some("by-owner".to_owned()), keys.iter().filter(|key| key.len() % 3 != 0).cloned().collect::<BTreeSet<_>>()),
        ] {
            let mut found = Vec::new();
            for segment in 0..segments {
                let segment = Some((segment, segments));
                let first = Scan { index: index.clone(), limit, segment, ..scan() };
                found.extend(names(&scan_all(&mut dynamo, first).0));
            }
            prop_assert_eq!(found.len(), expected.len());
            prop_assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);
        }
    }

    #[test]
    fn queries_page_in_order_both_ways(
        ranks in prop::collection::btree_set(-50_i64..50, 0..40),
        limit in prop::option::of(1_usize..10),
        backward in any::<bool>(),
        bound in -50_i64..50,
        indexed in any::<bool>(),
    ) {
        let mut dynamo = with_table(config(), true, vec![index("ranked", true, IndexProjection::All)]);
        for rank in &ranks {
            for partition in ["a", "b"] {
                put(&mut dynamo, item([("p", s(partition)), ("s", n(*rank)), ("owner", s(partition)), ("rank", n(*rank))]));
            }
        }
        let (partition, sort) = if indexed { ("owner", "rank") } else { ("p", "s") };
        let condition = SortCondition::Compare(Comparator::Ge, n(bound));
                let key = KeyCondition::partition(partition, s("a")).and(sort, condition);
        let request = Query { limit, backward, ..query(indexed.then_some("ranked"), key) };
        let mut expected: Vec<i64> = ranks.into_iter().filter(|rank| *rank >= bound).collect();
        if backward {
            expected.reverse();
        }
        prop_assert_eq!(query_all(&mut dynamo, request), expected);
    }
}

#[test]
fn a_scan_is_in_no_key_order_but_always_in_the_same() {
    let mut dynamo = simple();
    for number in 0..100 {
        put(&mut dynamo, item([("p", s(&format!("k{number:03}")))]));
    }
    let mut clone = dynamo.clone();
    let (items, pages) = scan_all(&mut dynamo, scan());
    assert_eq!(pages, 1);
    assert!(!names(&items).is_sorted());
    assert_eq!(scan_all(&mut clone, Scan { limit: Some(7), ..scan() }).0, items);
}

#[test]
fn a_limit_reached_at_the_very_end_still_gives_a_key() {
    let mut dynamo = simple();
    put(&mut dynamo, item([("p", s("a"))]));
    let mut request = Scan { limit: Some(1), ..scan() };
    let page = dynamo.scan(NOW, &request).unwrap();
    assert_eq!(page.last_key, Some(item([("p", s("a"))])));
    request.start = page.last_key;
    let page = dynamo.scan(NOW, &request).unwrap();
    assert_eq!((page.scanned, page.last_key), (0, None));
}

#[test]
fn filters_come_after_limits_and_are_paid_for() {
    let mut dynamo = simple();
    for number in 0..10 {
        put(&mut dynamo, item([("p", s(&format!("k{number}"))), ("x", n(number))]));
    }
    let request = Scan {
        filter: Some(Condition::compare("x", Comparator::Lt, n(3))),
        limit: Some(5),
        consistent: true,
        ..scan()
    };
    let page = dynamo.scan(NOW, &request).unwrap();
    assert_eq!(page.scanned, 5);
    assert_eq!((page.count, page.items.len()), (page.items.len(), page.count));
    assert_eq!(page.consumed, Consumed::table(2));
    let (items, pages) = scan_all(&mut dynamo, request.clone());
    assert_eq!((items.len(), pages), (3, 3));
    let counted = dynamo.scan(NOW, &Scan { select: Select::Count, limit: None, ..request }).unwrap();
    assert_eq!((counted.count, counted.scanned, counted.items.len()), (3, 10, 0));
}

#[test]
fn an_eventual_read_may_show_the_past_and_a_consistent_never() {
    let mut dynamo = with_table(config(), false, vec![index("by-owner", false, IndexProjection::All)]);
    let write = |dynamo: &mut Dynamo, at: i64, owner: &str| {
        let item = item([("p", s("a")), ("owner", s(owner))]);
        dynamo.put_item(at, &put_of(item)).unwrap();
    };
    write(&mut dynamo, NOW, "one");
    write(&mut dynamo, NOW + 10, "two");
    dynamo.operator_delete(NOW + 20, "tab", &item([("p", s("a"))])).unwrap();
    let mut owner = |as_of: Option<i64>, consistent: bool| {
        let key = item([("p", s("a"))]);
        let get = GetItem { consistent, as_of, ..get_of(key) };
        let got = dynamo.get_item(NOW + 30, &get).unwrap().item;
        let scan = Scan { consistent, as_of, ..scan() };
        let scanned = dynamo.scan(NOW + 30, &scan).unwrap().items.pop();
        assert_eq!(got, scanned);
        got.map(|item| item["owner"].as_s().unwrap().to_owned())
    };
    assert_eq!(owner(Some(NOW - 1), false), None);
    assert_eq!(owner(Some(NOW + 9), false).as_deref(), Some("one"));
    assert_eq!(owner(Some(NOW + 10), false).as_deref(), Some("two"));
    assert_eq!(owner(Some(NOW + 20), false), None);
    assert_eq!(owner(Some(NOW + 9), true), None);
    let one = query(Some("by-owner"), KeyCondition::partition("owner", s("one")));
    let stale = Query { as_of: Some(NOW + 5), ..one };
    assert_eq!(dynamo.query(NOW + 30, &stale).unwrap().count, 1);
    assert_eq!(dynamo.query(NOW + 30, &Query { as_of: None, ..stale }).unwrap().count, 0);
}

#[test]
fn an_index_holds_what_it_projects() {
    let include = IndexProjection::Include(vec!["x".to_owned()]);
    let indexes = vec![index("keys", false, IndexProjection::KeysOnly), index("some", false, include)];
    let mut dynamo = with_table(config(), false, indexes);
    put(&mut dynamo, item([("p", s("a")), ("owner", s("w")), ("x", n(1)), ("y", n(2))]));
    put(&mut dynamo, item([("p", s("b")), ("x", n(1))]));
    let mut query = |index: &str, change: fn(&mut Query)| {
        let key = KeyCondition::partition("owner", s("w"));
        let mut request = super::testing::query(Some(index), key);
        change(&mut request);
        dynamo.query(NOW, &request)
    };
    assert_eq!(*query("keys", |_| {}).unwrap().items[0], item([("p", s("a")), ("owner", s("w"))]));
    assert_eq!(
        *query("some", |_| {}).unwrap().items[0],
        item([("p", s("a")), ("owner", s("w")), ("x", n(1))])
    );
    let projected = |request: &mut Query| request.projection = Some(Projection::of_attributes(["y"]));
    invalid(query("some", projected), "does not project [y]");
    invalid(query("some", |request| request.consistent = true), "Consistent reads are not");
    invalid(query("some", |request| request.select = Select::AllAttributes), "ALL_ATTRIBUTES");
    invalid(query("none", |_| {}), "does not have the specified index: none");
    let filtered = |request: &mut Query| request.filter = Some(Condition::equals("owner", s("w")));
    invalid(query("some", filtered), "Primary key attribute: owner");
}

#[test]
fn wrong_starting_keys_are_refused() {
    let mut dynamo = with_table(config(), true, vec![index("ranked", true, IndexProjection::All)]);
    put(&mut dynamo, item([("p", s("a")), ("s", n(1)), ("owner", s("w")), ("rank", n(1))]));
    let from = |start: Item, segment| Scan { start: Some(start), segment, ..scan() };
    let result = dynamo.scan(NOW, &from(item([("p", s("a"))]), None));
    invalid(result, "The provided starting key is invalid: The provided key element");
    let key = item([("p", s("a")), ("s", n(1))]);
    let outcomes: Vec<bool> =
        (0..4).map(|part| dynamo.scan(NOW, &from(key.clone(), Some((part, 4)))).is_ok()).collect();
    assert_eq!(outcomes.iter().filter(|fits| **fits).count(), 1);
    let start = Some(item([("p", s("b")), ("s", n(1))]));
    let query = Query { start, ..query(None, KeyCondition::partition("p", s("a"))) };
    invalid(dynamo.query(NOW, &query), "outside query boundaries");
    let request = Scan { index: Some("ranked".into()), ..from(key, None) };
    invalid(dynamo.scan(NOW, &request), "The provided starting key is invalid");
    let beyond = Scan { segment: Some((4, 4)), ..scan() };
    invalid(dynamo.scan(NOW, &beyond), "Segment: 4 is not less than TotalSegments: 4");
}

#[test]
fn reads_are_projected_and_charged_by_size() {
    let mut dynamo = simple();
    put(&mut dynamo, item([("p", s("a")), ("x", s(&"y".repeat(5000))), ("z", AttributeValue::Null)]));
    let key = item([("p", s("a"))]);
    let projection = Some(Projection::of_attributes(["z", "none"]));
    let mut get = GetItem { projection, ..get_of(key) };
    let reply = dynamo.get_item(NOW, &get).unwrap();
    assert_eq!(*reply.item.unwrap(), item([("z", AttributeValue::Null)]));
    assert_eq!(reply.consumed, Consumed::table(2));
    get.consistent = true;
    assert_eq!(dynamo.get_item(NOW, &get).unwrap().consumed, Consumed::table(4));
    get.key = item([("p", s("none"))]);
    let reply = dynamo.get_item(NOW, &get).unwrap();
    assert_eq!((reply.item, reply.consumed), (None, Consumed::table(2)));
}
