//! What the documents say is compared with the code.

use leasehold::Config;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The cells of every row of every table in a text.
fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"))
        .map(|line| line.split(" | ").map(str::trim).collect())
}

/// The default of an option as the page spells it, if it is spelled by its value.
fn spelled(option: &str, value: &Value) -> Option<String> {
    let times = [
        "_interval",
        "_duration",
        "_timeout",
        "_delay",
        "retry_min",
        "retry_max",
        "stall_after",
        "_backoff",
    ];
    match value {
        Value::Number(micros) if times.iter().any(|end| option.ends_with(end)) => {
            let micros = micros.as_u64()?;
            Some(match micros {
                0..1_000_000 => format!("{} ms", micros / 1_000),
                _ => format!("{} s", micros as f64 / 1e6),
            })
        }
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::String(text) if !text.is_empty() => Some(format!("`{text}`")),
        _ => None,
    }
}

#[test]
fn every_option_is_listed_with_its_default() {
    let page = read("adapters/OPTIONS.md");
    let listed: Vec<Vec<&str>> = rows(&page).collect();
    let mut config = serde_json::to_value(Config::default()).unwrap();
    // It is left out of traces where it is the default.
    config["members"] = serde_json::to_value(leasehold::MembersConfig::default()).unwrap();
    let mut options = Vec::new();
    for (name, value) in config.as_object().unwrap() {
        match (name.as_str(), value) {
            ("reader" | "members", Value::Object(fields)) => {
                options.extend(
                    fields
                        .iter()
                        .map(|(field, value)| (format!("{name}.{field}"), value)),
                );
            }
            _ => options.push((name.clone(), value)),
        }
    }
    let mut wrong = Vec::new();
    for (option, value) in options {
        let name = format!("`{option}`");
        let Some(row) = listed.iter().find(|row| row[0] == name) else {
            wrong.push(format!("{name} is missing"));
            continue;
        };
        if let Some(expected) = spelled(&option, value).filter(|expected| row[1] != expected) {
            wrong.push(format!(
                "{name}: expected the default {expected}, found {}",
                row[1]
            ));
        }
    }
    assert!(wrong.is_empty(), "adapters/OPTIONS.md: {}", wrong.join("; "));
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut wrong = Vec::new();
    for page in [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "adapters/OPTIONS.md",
        "adapters/METRICS.md",
    ] {
        let text = read(page);
        let folder = Path::new(page).parent().unwrap_or(Path::new(""));
        for rest in text.split("](").skip(1) {
            let link = rest.split(')').next().unwrap_or_default();
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            if link.contains("://") {
                continue;
            }
            let target = match path {
                "" => page.into(),
                _ => folder.join(path),
            };
            if !root().join(&target).exists() {
                wrong.push(format!("{page}: {link} does not exist"));
                continue;
            }
            let anchor = |line: &str| {
                let title = line.trim_start_matches('#').trim().to_lowercase();
                let kept = title
                    .chars()
                    .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
                kept.collect::<String>().replace(' ', "-")
            };
            if !heading.is_empty() {
                let text = read(target.to_str().unwrap());
                let found = text
                    .lines()
                    .filter(|line| line.starts_with('#'))
                    .any(|line| anchor(line) == heading);
                if !found {
                    wrong.push(format!("{page}: {link} names no heading"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("; "));
}

#[test]
fn every_metric_is_listed() {
    let path = root().join("adapters/METRICS.md");
    let page = read("adapters/METRICS.md");
    let mut table = String::from("| metric | kind | labels | what it says |\n|---|---|---|---|\n");
    for metric in leasehold::metrics::ALL {
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let kind = format!("{:?}", metric.kind).to_lowercase();
        table += &format!(
            "| `{}` | {kind} | {} | {} |\n",
            metric.name,
            labels.join(", "),
            metric.help
        );
    }
    const BEGIN: &str = "<!-- metrics -->\n";
    const END: &str = "<!-- end -->";
    let (before, rest) = page
        .split_once(BEGIN)
        .expect("the page has a place for the table");
    let (old, after) = rest.split_once(END).expect("and its end");
    if std::env::var_os("LEASEHOLD_BLESS").is_some_and(|value| value == "1") {
        fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
    } else {
        assert_eq!(
            old, table,
            "the table in adapters/METRICS.md (if that is as it should be: LEASEHOLD_BLESS=1)"
        );
    }
}
