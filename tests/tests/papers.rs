//! Compares the statements of the documents with the code.

use leasehold::Config;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the repository is, as the documents say.
const REPOSITORY: &str = "https://github.com/leasehold/leasehold";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Compares the table between two marks of a page with the code's table. With `LEASEHOLD_BLESS=1`, writes the code's
/// table.
fn is_up_to_date(page: &str, what: &str, table: &str) {
    let (begin, end) = (format!("<!-- {what} -->\n"), "<!-- end -->");
    let text = read(page);
    let (before, rest) = text
        .split_once(&begin)
        .unwrap_or_else(|| panic!("{page}: expected the mark {begin:?} before the table, found none"));
    let (old, after) = rest
        .split_once(end)
        .unwrap_or_else(|| panic!("{page}: expected the mark {end:?} after the table of {what}, found none"));
    if std::env::var_os("LEASEHOLD_BLESS").is_some_and(|value| value == "1") {
        fs::write(root().join(page), format!("{before}{begin}{table}{end}{after}")).unwrap();
    } else {
        assert_eq!(old, table, "the table of {what} in {page} (if it is to change: LEASEHOLD_BLESS=1)");
    }
}

#[test]
fn every_option_is_listed() {
    let mut table =
        String::from("| option | default | range | what it does, and what it costs |\n|---|---|---|---|\n");
    for option in Config::options() {
        let (name, about) = (option.name, option.about());
        table += &format!("| `{name}` | {} | {} | {about} |\n", option.default, option.range);
    }
    is_up_to_date("adapters/OPTIONS.md", "options", &table);
}

/// The block of code of the README after this first line.
fn block_of_readme(fence: &str) -> String {
    let text = read("README.md");
    let begin = format!("\n{fence}\n");
    let (_, rest) = text
        .split_once(&begin)
        .unwrap_or_else(|| panic!("README.md: expected a block that begins with {fence}, found none"));
    let (block, _) = rest.split_once("\n```\n").expect("a block that has an end");
    format!("{block}\n")
}

/// The README's is compiled as a test, with crates that `leasehold` itself does not depend on.
#[test]
fn the_guide_begins_with_the_consumer_of_the_readme() {
    let page = "adapters/src/guide/start.md";
    let (dependencies, consumer) = (block_of_readme("```toml"), block_of_readme("```rust,no_run"));
    is_up_to_date(page, "dependencies", &format!("```toml\n{dependencies}```\n"));
    is_up_to_date(page, "consumer", &format!("```rust,ignore\n{consumer}```\n"));
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
        "adapters/src/guide/overview.md",
        "adapters/src/guide/operations.md",
        "adapters/src/guide/testing.md",
        "adapters/src/guide/upgrades.md",
    ] {
        let text = read(page);
        let folder = Path::new(page).parent().unwrap_or(Path::new(""));
        for rest in text.split("](").skip(1) {
            let link = rest.split(')').next().unwrap_or_default();
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            // Pages of the API documentation name files of the repository by their addresses there.
            let in_repository = ["blob", "tree"]
                .iter()
                .find_map(|kind| path.strip_prefix(&format!("{REPOSITORY}/{kind}/main/")));
            // The names of items are checked by rustdoc.
            let is_item =
                !path.is_empty() && path.chars().all(|c| c.is_alphanumeric() || "_:@()".contains(c));
            if in_repository.is_none() && (link.contains("://") || is_item) {
                continue;
            }
            let target = match (in_repository, path) {
                (Some(path), _) => path.into(),
                (None, "") => page.into(),
                (None, _) => folder.join(path),
            };
            if !root().join(&target).exists() {
                wrong.push(format!("{page}: {link} does not exist"));
                continue;
            }
            let anchor = |line: &str| {
                let title = line.trim_start_matches('#').trim().to_lowercase();
                let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
                kept.collect::<String>().replace(' ', "-")
            };
            if !heading.is_empty() {
                let text = read(target.to_str().unwrap());
                let found =
                    text.lines().filter(|line| line.starts_with('#')).any(|line| anchor(line) == heading);
                if !found {
                    wrong.push(format!("{page}: {link} names no heading"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("; "));
}

#[test]
fn the_consumer_of_the_readme_is_the_smallest_example() {
    let (readme, example) = (read("README.md"), read("adapters/examples/minimal.rs"));
    let code = readme.split("```rust,no_run\n").nth(1);
    let code = code.and_then(|rest| rest.split("```").next()).expect("a block of code in README.md");
    let (_, shown) = example.split_once("\n\n").expect("a comment, and then the code");
    assert_eq!(code, shown, "README.md and adapters/examples/minimal.rs: change both");
}

#[test]
fn every_metric_is_listed() {
    let mut table = String::from("| metric | kind | unit | labels | what it says |\n|---|---|---|---|---|\n");
    for metric in leasehold::metrics::ALL {
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let kind = format!("{:?}", metric.kind).to_lowercase();
        table += &format!(
            "| `{}` | {kind} | {} | {} | {} |\n",
            metric.name,
            metric.unit.as_str(),
            labels.join(", "),
            metric.help
        );
    }
    is_up_to_date("adapters/METRICS.md", "metrics", &table);
}
