//! Any text as an expression of the in-memory DynamoDB: parsed or refused, and carried out on items of every shape.
//!
//! The first word is the kind (`condition`, `filter`, `key`, `update` or `projection`), the rest is the expression.
//! Placeholders: `#0` to `#9` and `:0` to `:9`, for attributes and values of every type.
#![no_main]

use leasehold_engine::table::{AttributeName, AttributeValue, Item};
use leasehold_local_aws::dynamo::expr::{
    Binder, Update, parse_condition, parse_filter, parse_key_condition, parse_projection, parse_update,
};
use libfuzzer_sys::fuzz_target;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// One attribute of every type: `a0` to `a9`.
static ITEM: LazyLock<Item> = LazyLock::new(|| {
    let inner = BTreeMap::from([
        ("a0".to_string(), AttributeValue::s("shardId-000000000001")),
        ("a8".to_string(), AttributeValue::L(vec![AttributeValue::n(1), AttributeValue::Null])),
    ]);
    let values = [
        AttributeValue::s("shardId-000000000000"),
        AttributeValue::n("99999999999999999999999999999999999999"),
        AttributeValue::B(vec![0, 255]),
        AttributeValue::Ss(BTreeSet::from(["a".to_string(), "b".to_string()])),
        AttributeValue::Ns(BTreeSet::from(["1".to_string(), "-2.5".to_string()])),
        AttributeValue::Bs(BTreeSet::from([vec![1], vec![2]])),
        AttributeValue::Bool(true),
        AttributeValue::n("-1E-130"),
        AttributeValue::L(vec![AttributeValue::n(7), AttributeValue::M(inner.clone())]),
        AttributeValue::M(inner),
    ];
    let name = |n| AttributeName::Owned(format!("a{n}"));
    values.into_iter().enumerate().map(|(n, value)| (name(n), value)).collect()
});

fn binder() -> Binder {
    let names = (0..10).map(|n| (format!("#{n}"), format!("a{n}"))).collect();
    let values = ITEM
        .values()
        .enumerate()
        .map(|(n, value)| (AttributeName::Owned(format!(":{n}")), value.clone()))
        .collect();
    Binder::new(Some(names), Some(values)).expect("good names and values")
}

fn updated(update: &Update, old: &Item) {
    let Ok(new) = update.apply(old) else {
        return;
    };
    assert_eq!(update.apply(old).as_ref(), Ok(&new), "an update that differs from itself");
    for (name, value) in old {
        let named = update.actions.iter().any(|action| action.path().head == *name);
        assert!(named || new.get(name) == Some(value), "{name} was changed unasked");
    }
}

fuzz_target!(|text: &str| {
    let Some((kind, text)) = text.split_once(' ') else {
        return;
    };
    let binder = &mut binder();
    let items = [&*ITEM, &Item::new()];
    match kind {
        "condition" | "filter" => {
            let parse = if kind == "filter" { parse_filter } else { parse_condition };
            if let Ok(condition) = parse(text, binder) {
                for item in items {
                    condition.holds(item);
                }
            }
        }
        "key" => {
            let _ = parse_key_condition(text, binder);
        }
        "update" => {
            if let Ok(update) = parse_update(text, binder) {
                for item in items {
                    updated(&update, item);
                }
            }
        }
        "projection" => {
            if let Ok(projection) = parse_projection(text, binder) {
                for item in items {
                    let part = projection.apply(item);
                    assert!(part.keys().all(|name| item.contains_key(name)));
                }
            }
        }
        _ => {}
    }
    // Whatever is left unused is named in a sentence.
    let _ = binder.finish();
});
