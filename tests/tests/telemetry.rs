//! The dashboard and the alert rules use existing metrics and labels.

use super::metrics::metric;
use leasehold::metrics::{ALL, COMMON};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Words of PromQL that stand in the place of a label.
const WORDS: [&str; 2] = ["by", "without"];

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../adapters/telemetry").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All texts under these keys, at any depth.
fn texts(value: &Value, keys: &[&str], into: &mut Vec<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| texts(value, keys, into)),
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(text) if keys.contains(&key.as_str()) => into.push(text.clone()),
                    _ => texts(value, keys, into),
                }
            }
        }
        _ => {}
    }
}

/// The words of an expression: what may be a name.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// The labels that an expression names: between braces before `=`, and in the lists of `by`.
fn labels(expression: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for inner in expression.split('{').skip(1) {
        let inner = inner.split('}').next().unwrap_or_default();
        for matcher in inner.split(',') {
            let name = matcher.split(['=', '!']).next().unwrap_or_default();
            found.insert(name.trim().to_owned());
        }
    }
    for word in WORDS {
        for list in expression.split(&format!(" {word} (")).skip(1) {
            let list = list.split(')').next().unwrap_or_default();
            found.extend(list.split(',').map(|label| label.trim().to_owned()));
        }
    }
    found.remove("");
    found
}

/// What is wrong with an expression.
fn wrong(expression: &str) -> Vec<String> {
    let series: Vec<&str> = words(expression).filter(|word| word.starts_with("leasehold_")).collect();
    let mut wrong = Vec::new();
    if series.is_empty() {
        wrong.push("no metric".to_owned());
    }
    let mut known: BTreeSet<&str> = COMMON.into_iter().collect();
    for name in series {
        match metric(name) {
            Some(metric) => known.extend(metric.labels),
            None => wrong.push(format!("{name} is not in the table of metrics")),
        }
    }
    for label in labels(expression) {
        if !known.contains(label.as_str()) {
            wrong.push(format!("no metric of it has the label {label}"));
        }
    }
    let depth = |open, close| expression.matches(open).count() == expression.matches(close).count();
    if !depth('(', ')') || !depth('{', '}') || !depth('[', ']') {
        wrong.push("brackets that are not closed".to_owned());
    }
    wrong
}

fn check(name: &str, expressions: &[String], least: usize) {
    assert!(expressions.len() >= least, "{name}: {} expressions", expressions.len());
    for expression in expressions {
        let wrong = wrong(expression);
        assert!(wrong.is_empty(), "{name}: {expression}: {}", wrong.join("; "));
    }
}

#[test]
fn the_dashboard_shows_metrics_that_there_are() {
    let dashboard: Value = serde_json::from_str(&read("dashboard.json")).expect("a dashboard is JSON");
    let mut expressions = Vec::new();
    texts(&dashboard["panels"], &["expr"], &mut expressions);
    check("dashboard.json", &expressions, 20);
    let mut variables = Vec::new();
    texts(&dashboard["templating"], &["query"], &mut variables);
    for variable in variables.iter().filter(|text| text.starts_with("label_values(")) {
        let name = words(variable).find(|word| word.starts_with("leasehold_"));
        assert!(name.and_then(metric).is_some(), "{variable}");
    }
    // Legends name labels, too.
    let mut legends = Vec::new();
    texts(&dashboard["panels"], &["legendFormat"], &mut legends);
    let known: BTreeSet<&str> = ALL.iter().flat_map(|metric| metric.labels).chain(&COMMON).copied().collect();
    for legend in legends {
        for label in legend.split("{{").skip(1) {
            let label = label.split("}}").next().unwrap_or_default();
            assert!(known.contains(label), "{legend}");
        }
    }
}

#[test]
fn alerts_are_about_metrics_that_there_are() {
    let text = read("alerts.yaml");
    let expressions = text.lines().filter_map(|line| line.trim().strip_prefix("expr: "));
    let expressions: Vec<String> = expressions.map(str::to_owned).collect();
    assert_eq!(expressions.len(), text.matches("- alert: ").count(), "an expression each");
    check("alerts.yaml", &expressions, 10);
}

#[test]
fn the_check_sees_what_is_wrong() {
    for (expression, expected) in [
        ("sum by (shard) (leasehold_shard_behind_seconds) > 3", None),
        ("leasehold_handler_seconds_sum{result=\"ok\"}", None),
        ("up", Some("no metric")),
        ("leasehold_nothing", Some("leasehold_nothing is not in the table of metrics")),
        ("leasehold_handler_seconds > 1", Some("leasehold_handler_seconds is not in the table of metrics")),
        ("leasehold_leases_held{shard=\"1\"}", Some("no metric of it has the label shard")),
        ("sum by (operation) (leasehold_leases_held)", Some("no metric of it has the label operation")),
        ("sum(leasehold_leases_held", Some("brackets that are not closed")),
    ] {
        let wrong = wrong(expression);
        assert_eq!(wrong.first().map(String::as_str), expected, "{expression}");
    }
}
