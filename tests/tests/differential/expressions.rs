//! Conditions, filters and updates.

use super::{TABLE, case, compare, sample, tables};
use serde_json::{Map, Value, json};

/// Names used by the expressions below, as far as they are reserved or strange.
fn names_in(text: &str) -> Map<String, Value> {
    [
        ("#text", "text"),
        ("#row", "row"),
        ("#map", "map"),
        ("#number", "number"),
        ("#binary", "binary"),
        ("#dot", "with.dot"),
        ("#empty", "empty"),
        ("#unused", "zzz"),
    ]
    .into_iter()
    .filter(|(placeholder, _)| text.contains(placeholder))
    .map(|(placeholder, name)| (placeholder.to_owned(), json!(name)))
    .collect()
}

/// Values used by the expressions below.
fn values_in(text: &str) -> Map<String, Value> {
    [
        (":hello", json!({ "S": "hello" })),
        (":he", json!({ "S": "he" })),
        (":void", json!({ "S": "" })),
        (":five", json!({ "N": "5" })),
        (":5.0", json!({ "N": "5.0" })),
        (":five_again", json!({ "N": "5.00" })),
        (":nine", json!({ "N": "9" })),
        (":one", json!({ "N": "1" })),
        (":bin", json!({ "B": "AAEC" })),
        (":true", json!({ "BOOL": true })),
        (":null", json!({ "NULL": true })),
        (":set", json!({ "SS": ["b", "a"] })),
        (":other_set", json!({ "SS": ["b", "c"] })),
        (":nset", json!({ "NS": ["2.50", "7"] })),
        (":a", json!({ "S": "a" })),
        (":list", json!({ "L": [{ "S": "new" }] })),
        (":map_value", json!({ "M": { "k": { "S": "v" } } })),
        (":type_s", json!({ "S": "S" })),
        (":type_odd", json!({ "S": "STRING" })),
        (":huge", json!({ "N": "99999999999999999999999999999999999999" })),
    ]
    .into_iter()
    // A placeholder followed by more letters is part of a longer name.
    .filter(|(placeholder, _)| {
        text.match_indices(placeholder).any(|(at, _)| {
            let next = text[at + placeholder.len()..].chars().next();
            !next.is_some_and(|next| next.is_ascii_alphanumeric() || next == '_')
        })
    })
    .map(|(placeholder, value)| (placeholder.to_owned(), value))
    .collect()
}

fn with_placeholders(mut body: Value, text: &str) -> Value {
    let (names, values) = (names_in(text), values_in(text));
    if let Some(body) = body.as_object_mut() {
        if !names.is_empty() {
            body.insert("ExpressionAttributeNames".into(), Value::Object(names));
        }
        if !values.is_empty() {
            body.insert("ExpressionAttributeValues".into(), Value::Object(values));
        }
    }
    body
}

const CONDITIONS: &[&str] = &[
    "attribute_exists(leaseKey)",
    "attribute_not_exists(leaseKey)",
    "attribute_exists(#map.inside.leaf)",
    "attribute_exists(#map.nowhere.leaf)",
    "attribute_exists(#row[2][0])",
    "attribute_exists(#row[9])",
    "attribute_exists(#map.#dot)",
    "attribute_type(#text, :type_s)",
    "attribute_type(#number, :type_s)",
    "attribute_type(#text, :type_odd)",
    "begins_with(#text, :he)",
    "begins_with(#text, :void)",
    "begins_with(#number, :he)",
    "begins_with(#text, :five)",
    "begins_with(#binary, :bin)",
    "contains(#text, :he)",
    "contains(texts, :a)",
    "contains(texts, :five)",
    "contains(#row, :one)",
    "contains(#number, :five)",
    "size(#text) = :five",
    "size(#row) < :five",
    "size(#map) > :one",
    "size(texts) <> :one",
    "size(#number) = :one",
    "size(nowhere) = :one",
    "#number = :five",
    "#number = :five_again",
    "#number <> :five",
    "#number < :nine",
    "#number >= :nine",
    "#number = :hello",
    "#number < :hello",
    "#text > :he",
    "#empty = :void",
    "texts = :set",
    "texts = :other_set",
    "yes = :true",
    "nothing = :null",
    "yes < :true",
    "texts < :set",
    "nowhere = :five",
    "nowhere <> :five",
    ":five = #number",
    ":five = :five_again",
    "#number = #number",
    "#number BETWEEN :one AND :nine",
    "#number BETWEEN :nine AND :one",
    "#text BETWEEN :one AND :nine",
    "#number IN (:one, :five)",
    "#text IN (:one, :hello)",
    "#number IN (:one)",
    "NOT #number = :five",
    "NOT (#number = :nine OR #text = :he)",
    "#number = :nine OR #text = :hello AND yes = :true",
    "(#number = :nine OR #text = :hello) AND yes = :true",
    "#number = :nine AND #text = :hello OR yes = :true",
    "big > :huge",
    "small < :one",
    // Wrong ones.
    "",
    " ",
    "#number",
    "#number =",
    "#number == :five",
    "#number = :five AND",
    "AND #number = :five",
    "((#number = :five))",
    "(#number = :five",
    "#number = :undefined",
    "#undefined = :five",
    "text = :hello AND #number = :five",
    "size(#text, #number) = :five",
    "size(#text)",
    "begins_with(#text)",
    "attribute_exists(:five)",
    "attribute_type(#text, #number)",
    "unknown_function(#text)",
    "ATTRIBUTE_EXISTS(leaseKey)",
    "#row[-1] = :one",
    "#row[x] = :one",
    "#row[1 = :one",
    "#number IN ()",
    "#number BETWEEN :one, :nine",
    "contains(#text, #text)",
    "attribute_exists(leaseKey) = :true",
    "#number = :five; #text = :hello",
    "name = :hello",
    "size = :five",
];

const UPDATES: &[&str] = &[
    "SET #number = :nine",
    "SET #number = #number + :one",
    "SET #number = #number - :nine",
    "SET #number = :one - #number",
    "SET fresh = if_not_exists(fresh, :five)",
    "SET #number = if_not_exists(#number, :five) + :one",
    "SET #row = list_append(#row, :list)",
    "SET #row = list_append(:list, #row)",
    "SET fresh = list_append(if_not_exists(fresh, :list), :list)",
    "SET #row[0] = :hello",
    "SET #row[7] = :hello",
    "SET #map.inside.leaf = :hello",
    "SET #map.fresh = :map_value",
    "SET #map.#dot = :five",
    "SET #map.nowhere.leaf = :hello",
    "SET #text.leaf = :hello",
    "SET #text = #number, #number = #text",
    "SET fresh = nowhere",
    "SET #text = :void",
    "REMOVE #text, #number",
    "REMOVE #row[0], #row[2]",
    "REMOVE #map.inside.leaf",
    "REMOVE #map.nowhere.leaf",
    "REMOVE nowhere",
    "REMOVE #row[9]",
    "ADD #number :one",
    "ADD fresh :one",
    "ADD texts :other_set",
    "ADD numbers :nset",
    "ADD fresh :set",
    "ADD texts :nset",
    "ADD #text :one",
    "ADD #row :list",
    "ADD #map.inside.leaf :one",
    "DELETE texts :other_set",
    "DELETE texts :set",
    "DELETE numbers :nset",
    "DELETE fresh :set",
    "DELETE #text :set",
    "DELETE #number :one",
    "SET #number = :nine REMOVE #text ADD fresh :one DELETE texts :other_set",
    "set #number = :nine remove #text",
    // Wrong ones.
    "",
    "SET",
    "SET #number",
    "SET #number = ",
    "SET #number = :nine,",
    "SET #number = :nine SET #text = :hello",
    "SET #number = :nine, #number = :five",
    "SET #map = :map_value, #map.inside = :five",
    "SET #row[0] = :one, #row[0] = :five",
    "SET leaseKey = :hello",
    "REMOVE leaseKey",
    "SET #number = :undefined",
    "SET #undefined = :five",
    "SET #number = #text + :one",
    "SET #number = #number + :hello",
    "SET #number = #number * :nine",
    "SET #number = #number + :one + :one",
    "SET #number = nowhere + :one",
    "SET #row = list_append(#text, :list)",
    "SET #row = list_append(#row)",
    "SET fresh = unknown_function(:one)",
    "SET fresh = size(#text)",
    "ADD #number :hello",
    "ADD #number #text",
    "DELETE #row[0]",
    "REMOVE #number :five",
    "UPDATE #number = :five",
    "SET name = :hello",
    "SET fresh = :five, text = :hello, #number = :nine, zone = :one",
];

#[tokio::test(flavor = "multi_thread")]
async fn conditions() {
    let mut cases = tables();
    cases.push(case("the item", "PutItem", json!({ "TableName": TABLE, "Item": sample() })));
    for text in CONDITIONS {
        let body = json!({
            "TableName": TABLE, "Item": sample(), "ConditionExpression": text,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        });
        cases.push(case(format!("condition {text:?}"), "PutItem", with_placeholders(body, text)));
        let filter = json!({ "TableName": TABLE, "FilterExpression": text });
        cases.push(case(format!("filter {text:?}"), "Scan", with_placeholders(filter, text)));
    }
    compare(cases).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn updates() {
    let mut cases = tables();
    let key = json!({ "leaseKey": { "S": "x" } });
    for text in UPDATES {
        for (state, item) in [("a full item", sample()), ("no item", Value::Null)] {
            let reset = match &item {
                Value::Null => ("DeleteItem", json!({ "TableName": TABLE, "Key": key })),
                item => ("PutItem", json!({ "TableName": TABLE, "Item": item })),
            };
            cases.push(case(format!("before {text:?} on {state}"), reset.0, reset.1));
            for values in ["UPDATED_OLD", "UPDATED_NEW"] {
                let body = json!({ "TableName": TABLE, "Key": key, "UpdateExpression": text, "ReturnValues": values });
                cases.push(case(
                    format!("update {text:?} on {state}, {values}"),
                    "UpdateItem",
                    with_placeholders(body, text),
                ));
            }
            let get = json!({ "TableName": TABLE, "Key": key });
            cases.push(case(format!("after {text:?} on {state}"), "GetItem", get));
        }
    }
    compare(cases).await;
}
