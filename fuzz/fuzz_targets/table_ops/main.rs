//! Any bytes as requests to one table of the in-memory DynamoDB, each compared with the answer of a separately written
//! model.
//!
//! The table has a partition key, a sort key of numbers and an index of another attribute. Items are put, updated,
//! deleted, checked (alone and in transactions), read, queried and scanned page by page, with conditions, filters and
//! projections. Each answer, each refusal for a reason in the items, and the table after each write must equal the
//! model's (`model.rs`). `draw.rs` draws only requests within the grammar; the target `expression` covers texts refused
//! by the grammar.
#![no_main]

mod draw;
mod model;
mod say;
mod write;

use arbitrary::{Result, Unstructured};
use draw::Bytes;
use leasehold_local_aws::dynamo::{ApiError, Dynamo, DynamoConfig};
use libfuzzer_sys::fuzz_target;
use model::{Item, V, depth, item_json, projected};
use say::Saying;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use write::{Action, Why, Write, place, sorted};

const NOW_MS: i64 = 1_700_000_000_000;
/// The most requests of one run.
const MOST: usize = 24;
/// The longest item, as JSON. An update may double an item, and a longer item finds no more.
const LONGEST: usize = 6_000;
/// How deep values may be nested: less than the service allows.
const DEEPEST: usize = 20;

/// Items by partition and sort key, in the order of a query.
type Rows = BTreeMap<(String, i128), Item>;

fn why(error: &ApiError) -> Why {
    match error.code {
        "ConditionalCheckFailedException" => {
            Why::ConditionFailed(error.to_json().get("Item").map(|item| sorted(item.clone())))
        }
        "ValidationException" => Why::Refused,
        other => panic!("{other}: {error:?}"),
    }
}

struct World {
    dynamo: Dynamo,
    rows: Rows,
}

impl World {
    fn new() -> Self {
        let config = DynamoConfig { create_ms: 0, max_page_items: Some(3), ..DynamoConfig::default() };
        let mut dynamo = Dynamo::new(config);
        let attribute = |name, letter| json!({ "AttributeName": name, "AttributeType": letter });
        let key = |name, kind| json!({ "AttributeName": name, "KeyType": kind });
        let table = json!({
            "TableName": "table",
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [attribute("p", "S"), attribute("q", "N"), attribute("o", "S")],
            "KeySchema": [key("p", "HASH"), key("q", "RANGE")],
            "GlobalSecondaryIndexes": [
                { "IndexName": "by-o", "KeySchema": [key("o", "HASH")], "Projection": { "ProjectionType": "ALL" } },
            ],
        });
        dynamo.call(NOW_MS, "CreateTable", &table).expect("a good table");
        dynamo.advance(NOW_MS + 1);
        Self { dynamo, rows: Rows::new() }
    }

    fn call(&mut self, operation: &str, body: &Value) -> std::result::Result<Value, ApiError> {
        self.dynamo.call(NOW_MS + 1, operation, body)
    }

    fn write(&mut self, u: Bytes<'_, '_>) -> Result<()> {
        let write = Write::draw(u, false)?;
        let body = write.body(u, true)?;
        let at = write.place();
        let old = self.rows.get(&at).cloned();
        let answer = self.call(&format!("{}Item", write.name()), &body);
        match write.carried_out(old.as_ref()) {
            Ok(new) => {
                let answer = answer.unwrap_or_else(|error| panic!("{error:?} of {body} on {old:?}"));
                let shown = answer.get("Attributes").cloned().map(sorted);
                assert_eq!(shown, write.returned(old.as_ref(), new.as_ref()), "{body} on {old:?}");
                self.keep(at, new);
            }
            Err(expected) => {
                let error = answer.expect_err(&format!("{expected:?} of {body} on {old:?}"));
                assert_eq!(why(&error), expected, "{body} on {old:?}: {error:?}");
            }
        }
        self.get(&write.place());
        Ok(())
    }

    fn keep(&mut self, at: (String, i128), item: Option<Item>) {
        match item {
            Some(item) => drop(self.rows.insert(at, item)),
            None => drop(self.rows.remove(&at)),
        }
    }

    /// All writes, or none.
    fn transact(&mut self, u: Bytes<'_, '_>) -> Result<()> {
        let writes: Vec<Write> =
            (0..u.int_in_range(1..=3)?).map(|_| Write::draw(u, true)).collect::<Result<_>>()?;
        let actions: Vec<Value> = writes
            .iter()
            .map(|write| Ok(json!({ write.name(): write.body(u, false)? })))
            .collect::<Result<_>>()?;
        // In a transaction, an update has to change an attribute.
        if writes
            .iter()
            .any(|write| matches!(&write.action, Action::Update(_, changes) if changes.is_empty()))
        {
            return Ok(());
        }
        let body = json!({ "TransactItems": actions });
        let answer = self.call("TransactWriteItems", &body);
        let mut places: Vec<_> = writes.iter().map(Write::place).collect();
        places.sort();
        if places.windows(2).any(|two| two[0] == two[1]) {
            assert_eq!(answer.expect_err("an item twice").code, "ValidationException", "{body}");
            return Ok(());
        }
        let outcomes: Vec<_> =
            writes.iter().map(|write| write.carried_out(self.rows.get(&write.place()))).collect();
        if outcomes.iter().all(std::result::Result::is_ok) {
            answer.unwrap_or_else(|error| panic!("{error:?} of {body} on {:?}", self.rows));
            for (write, outcome) in writes.iter().zip(outcomes) {
                self.keep(write.place(), outcome.unwrap_or_default());
            }
        } else {
            let error = answer.expect_err(&format!("{outcomes:?} of {body} on {:?}", self.rows));
            assert_eq!(error.code, "TransactionCanceledException", "{body}: {error:?}");
            let codes: Vec<&str> = error.cancellation_reasons.iter().map(|reason| reason.code).collect();
            let expected: Vec<&str> = outcomes
                .iter()
                .map(|outcome| match outcome {
                    Ok(_) => "None",
                    Err(Why::ConditionFailed(_)) => "ConditionalCheckFailed",
                    Err(Why::Refused) => "ValidationError",
                })
                .collect();
            assert_eq!(codes, expected, "{body} on {:?}", self.rows);
        }
        places.iter().for_each(|at| self.get(at));
        Ok(())
    }

    /// One whole item.
    fn get(&mut self, at: &(String, i128)) {
        let key = Item::from([("p".to_owned(), V::S(at.0.clone())), ("q".to_owned(), V::N(at.1))]);
        let body = json!({ "TableName": "table", "Key": item_json(&key, 0) });
        let answer = self.call("GetItem", &body).expect("a good key");
        let expected = self.rows.get(at).map(|item| sorted(item_json(item, 0)));
        assert_eq!(answer.get("Item").cloned().map(sorted), expected);
    }

    /// A part of an item.
    fn get_part(&mut self, u: Bytes<'_, '_>) -> Result<()> {
        let key = draw::key(u)?;
        let paths = draw::paths(u)?;
        let mut saying = Saying::new(0);
        let mut body = json!({ "TableName": "table", "Key": item_json(&key, 0), "ProjectionExpression": saying.paths(&paths) });
        saying.finish(&mut body);
        let answer = self.call("GetItem", &body).unwrap_or_else(|error| panic!("{error:?} of {body}"));
        let old = self.rows.get(&place(&key));
        let expected = old.map(|item| sorted(item_json(&projected(item, &paths), 0)));
        assert_eq!(answer.get("Item").cloned().map(sorted), expected, "{body} of {old:?}");
        Ok(())
    }

    /// All pages of a query or scan. A page tells the number of its examined items, and examines no more than its
    /// limit.
    fn pages(&mut self, operation: &str, mut body: Value) -> (Vec<Value>, u64) {
        let (mut items, mut scanned) = (Vec::new(), 0);
        let most = body.get("Limit").and_then(Value::as_u64).unwrap_or(3).min(3);
        loop {
            let page =
                self.call(operation, &body).unwrap_or_else(|error| panic!("{error:?} of {operation} {body}"));
            let found = page["Items"].as_array().expect("a list");
            assert_eq!(page["Count"], json!(found.len()), "{body}");
            let looked = page["ScannedCount"].as_u64().expect("a number");
            assert!(looked <= most, "{looked} items on a page of {body}");
            items.extend(found.iter().cloned().map(sorted));
            scanned += looked;
            match page.get("LastEvaluatedKey") {
                None => return (items, scanned),
                Some(key) => body["ExclusiveStartKey"] = key.clone(),
            }
            assert!(looked > 0, "a page of nothing that is not the last: {body}");
        }
    }

    /// One partition, or a range within the partition, in either order.
    fn query(&mut self, u: Bytes<'_, '_>) -> Result<()> {
        let V::S(partition) = draw::key(u)?["p"].clone() else {
            return Ok(());
        };
        let mut saying = Saying::new(u.int_in_range(0..=3)?);
        let mut text = format!("p = {}", saying.value(&V::S(partition.clone())));
        let bound =
            |u: Bytes<'_, '_>| -> Result<i128> { Ok(if let V::N(n) = draw::key(u)?["q"] { n } else { 0 }) };
        let (one, other) = (bound(u)?, bound(u)?);
        let (low, high) = (one.min(other), one.max(other));
        let operator = *u.choose(&["", "=", "<", "<=", ">", ">=", "BETWEEN"])?;
        match operator {
            "" => {}
            "BETWEEN" => {
                text +=
                    &format!(" AND q BETWEEN {} AND {}", saying.value(&V::N(low)), saying.value(&V::N(high)));
            }
            operator => text = format!("q {operator} {} AND {text}", saying.value(&V::N(low))),
        }
        let within = |sort: i128| match operator {
            "" => true,
            "=" => sort == low,
            "<" => sort < low,
            "<=" => sort <= low,
            ">" => sort > low,
            ">=" => sort >= low,
            _ => low <= sort && sort <= high,
        };
        let mut expected: Vec<Item> = self
            .rows
            .iter()
            .filter(|((p, sort), _)| *p == partition && within(*sort))
            .map(|(_, item)| item.clone())
            .collect();
        let backward: bool = u.arbitrary()?;
        if backward {
            expected.reverse();
        }
        let body =
            json!({ "TableName": "table", "KeyConditionExpression": text, "ScanIndexForward": !backward });
        let (found, expected) = self.found(u, "Query", body, saying, &draw::NO_KEY, expected)?;
        assert_eq!(found, expected, "{text}");
        Ok(())
    }

    /// Runs a query or a scan, perhaps with a filter and a limit; returns the found and the expected items.
    fn found(
        &mut self, u: Bytes<'_, '_>, operation: &str, mut body: Value, mut saying: Saying,
        heads: &[&'static str], expected: Vec<Item>,
    ) -> Result<(Vec<Value>, Vec<Value>)> {
        let looked_at = expected.len() as u64;
        let filter = if u.arbitrary()? { Some(draw::condition(u, heads, 1)?) } else { None };
        if let Some(filter) = &filter {
            body["FilterExpression"] = json!(saying.condition(filter));
        }
        if u.arbitrary()? {
            body["Limit"] = json!(u.int_in_range(1..=4)?);
        }
        saying.finish(&mut body);
        let (found, scanned) = self.pages(operation, body.clone());
        assert_eq!(scanned, looked_at, "{body}");
        let expected = expected.iter().filter(|item| filter.as_ref().is_none_or(|filter| filter.holds(item)));
        Ok((found, expected.map(|item| sorted(item_json(item, 0))).collect()))
    }

    /// All items, or the items of an index, in no order; whole or in segments.
    fn scan(&mut self, u: Bytes<'_, '_>) -> Result<()> {
        let mut expected: Vec<Item> = self.rows.values().cloned().collect();
        let mut body = json!({ "TableName": "table" });
        let mut saying = Saying::new(0);
        let mut operation = "Scan";
        let kind = u.int_in_range(0..=3)?;
        if kind >= 2 {
            body["IndexName"] = json!("by-o");
            expected.retain(|item| item.contains_key("o"));
        }
        let mut heads: &[&'static str] = &draw::ALL;
        if kind == 3 {
            let owner = V::S("a".to_owned());
            operation = "Query";
            expected.retain(|item| item["o"] == owner);
            body["KeyConditionExpression"] = json!(format!("o = {}", saying.value(&owner)));
            heads = &["a", "b", "l", "m", "s", "p", "q"];
        }
        if kind == 1 {
            let mut found = Vec::new();
            for segment in 0..3 {
                body["Segment"] = json!(segment);
                body["TotalSegments"] = json!(3);
                found.extend(self.pages(operation, body.clone()).0);
            }
            self.same(found, expected.iter().map(|item| sorted(item_json(item, 0))).collect());
            return Ok(());
        }
        let (found, expected) = self.found(u, operation, body, saying, heads, expected)?;
        self.same(found, expected);
        Ok(())
    }

    fn same(&self, mut found: Vec<Value>, mut expected: Vec<Value>) {
        found.sort_by_key(ToString::to_string);
        expected.sort_by_key(ToString::to_string);
        assert_eq!(found, expected, "a scan of {:?}", self.rows);
    }

    fn run(&mut self, u: Bytes<'_, '_>) -> Result<()> {
        for _ in 0..MOST {
            let large = |item: &Item| depth(item) > DEEPEST || item_json(item, 0).to_string().len() > LONGEST;
            if u.is_empty() || self.rows.values().any(large) {
                break;
            }
            match u.int_in_range(0..=9)? {
                0..=4 => self.write(u)?,
                5 => self.transact(u)?,
                6 => self.get_part(u)?,
                7 | 8 => self.query(u)?,
                _ => self.scan(u)?,
            }
        }
        Ok(())
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut world = World::new();
    // Bytes that end in the middle of a request end the run.
    let _ = world.run(&mut Unstructured::new(bytes));
    let (found, _) = world.pages("Scan", json!({ "TableName": "table" }));
    world.same(found, world.rows.values().map(|item| sorted(item_json(item, 0))).collect());
});
