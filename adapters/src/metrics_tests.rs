//! That the table and the code agree, and how series look in an exporter.

use super::*;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn recorder() -> PrometheusRecorder {
    PrometheusBuilder::new().build_recorder()
}

/// The sources of this crate as one text, without the metrics table and without tests.
fn sources(folder: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            text += &sources(&path);
        } else if name != "metrics.rs" && !name.ends_with("_tests.rs") {
            text += &fs::read_to_string(&path).unwrap();
        }
    }
    text
}

/// The constants of the table, with their metrics.
fn constants() -> Vec<(String, Metric)> {
    let table = include_str!("metrics.rs").split("\ntable! {\n").nth(1).unwrap();
    let lines = table.split("\n}\n").next().unwrap().lines();
    let mut found = Vec::new();
    for line in lines.filter(|line| {
        ["    Gauge ", "    Counter ", "    Histogram "].iter().any(|kind| line.starts_with(kind))
    }) {
        let mut words = line.split_whitespace().skip(1);
        let (id, name) = (words.next().unwrap(), words.next().unwrap().trim_matches('"'));
        let metric = ALL.iter().find(|metric| metric.name == name).unwrap();
        found.push((id.to_owned(), *metric));
    }
    assert_eq!(found.len(), ALL.len());
    found
}

#[test]
fn every_metric_of_the_table_is_set_somewhere_and_no_other_is() {
    let sources = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    // The facade is `::metrics`; this table is `crate::metrics`.
    let sources = sources.replace("crate::metrics::", "");
    for (id, metric) in constants() {
        assert!(sources.contains(&format!("&metrics::{id},")), "nothing sets {metric:?}");
    }
    for other in [
        "counter!(",
        "gauge!(",
        "histogram!(",
        "::metrics::",
        "register_counter",
        "register_gauge",
        "register_histogram",
        "\"leasehold_",
    ] {
        assert!(
            !sources.contains(other),
            "expected that metrics are set by the table in metrics.rs only, found {other}"
        );
    }
}

#[test]
fn names_are_as_prometheus_advises() {
    let mut names = BTreeSet::new();
    for metric in ALL {
        let Metric { name, kind, unit, .. } = metric;
        assert!(names.insert(name), "{name} is there twice");
        assert!(name.starts_with("leasehold_"), "{name}");
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        assert_eq!(name.ends_with("_total"), *kind == Kind::Counter, "{name}");
        let suffix = match unit {
            Unit::Seconds => "_seconds",
            Unit::Bytes => "_bytes",
            Unit::Count => "",
            other => panic!("{name} is in {other:?}, which is no base unit"),
        };
        assert!(name.trim_end_matches("_total").ends_with(suffix), "{name}");
        assert!(metric.help.ends_with('.'), "{name}: {}", metric.help);
        let common = metric.labels.iter().any(|label| COMMON.contains(label));
        assert!(!common, "{name} names a common label once more");
    }
}

#[test]
fn series_have_the_common_labels_from_the_beginning() {
    let recorder = recorder();
    ::metrics::with_local_recorder(&recorder, || {
        let meter = Meter::new("billing", "orders", "w:1f");
        meter.begin();
        meter.set(&SHARD_WAITING, ["s-1".into()], 7.0);
        meter.count(&OUTCOMES, ["table".into(), "applied".into()], 2);
        meter.count(&OUTCOMES, ["table".into(), "applied".into()], 3);
        meter.count_to(&MISPLACED, [], 4);
        Meter::new("billing", "orders", "w:20").set(&LEASES_HELD, [], 9.0);
    });
    let text = recorder.handle().render();
    let common = r#"application="billing",stream="orders",worker="w:1f""#;
    for line in [
        format!("leasehold_leases_held{{{common}}} 0"),
        format!("leasehold_processed_records_total{{{common}}} 0"),
        format!(r#"leasehold_shard_waiting_records{{{common},shard="s-1"}} 7"#),
        format!(r#"leasehold_outcomes_total{{{common},kind="table",result="applied"}} 5"#),
        format!("leasehold_misplaced_aggregates_total{{{common}}} 4"),
        format!(r#"leasehold_misplaced_parts_total{{{common},result="dropped"}} 0"#),
        r#"leasehold_leases_held{application="billing",stream="orders",worker="w:20"} 9"#.to_owned(),
        "# HELP leasehold_leases_held Leases this worker holds.".to_owned(),
        "# TYPE leasehold_leases_held gauge".to_owned(),
        "# TYPE leasehold_fetched_bytes_total counter".to_owned(),
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\nis not in\n{text}");
    }
}
