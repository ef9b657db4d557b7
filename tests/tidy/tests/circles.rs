//! The modules of a crate depend on each other in one direction: no top-level module imports, directly or through
//! further modules, a module that imports the first module. Tests within a module may import any module.
//!
//! The sources are read as text, line by line, as rustfmt lays them out.

use leasehold_tidy::spelled;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The crates, by the folder of their sources.
const CRATES: [&str; 7] = [
    "engine/src",
    "adapters/src",
    "sim/local-aws/src",
    "sim/src",
    "sim/full-stack/src",
    "sim/testing/src",
    "sim/cli/src",
];

/// A module and one that it names.
type Edge = (String, String);

/// Every pair of top-level modules with a name of the second in the first, and the first place of the name.
#[derive(Default)]
struct Imports(BTreeMap<Edge, String>);

impl Imports {
    /// Those of a crate.
    fn of(root: &Path, sources: &str) -> Self {
        let mut files = Vec::new();
        collect(&root.join(sources).join("lib.rs"), &[], &mut files);
        let tops: BTreeSet<&str> =
            files.iter().filter_map(|file| Some(file.path.first()?.as_str())).collect();
        let exported = exports(&files[0].lines, &tops);
        let mut imports = Self::default();
        for file in &files[1..] {
            for (line, name) in file.names() {
                let to = tops.get(&*name).copied().or(exported.get(&*name).copied());
                if let Some(to) = to.filter(|to| *to != file.path[0]) {
                    let shown = file.file.strip_prefix(root).unwrap_or(&file.file);
                    imports
                        .0
                        .entry((file.path[0].clone(), to.to_owned()))
                        .or_insert_with(|| format!("{}:{line}", shown.display()));
                }
            }
        }
        imports
    }

    /// The shortest circle, as its modules in order; the first module stands again at the end.
    fn circle(&self) -> Option<Vec<String>> {
        let from: BTreeSet<&String> = self.0.keys().map(|(from, _)| from).collect();
        from.into_iter().filter_map(|module| self.way(module, module)).min_by_key(Vec::len)
    }

    /// The shortest way along imports, of at least one import.
    fn way(&self, from: &str, to: &str) -> Option<Vec<String>> {
        let mut ways = vec![vec![from.to_owned()]];
        let mut seen = BTreeSet::new();
        while !ways.is_empty() {
            let mut longer = Vec::new();
            for way in ways {
                let last = way.last().map_or("", String::as_str);
                for (_, next) in self.0.keys().filter(|(from, _)| from == last) {
                    let mut way = way.clone();
                    way.push(next.clone());
                    if next == to {
                        return Some(way);
                    }
                    if seen.insert(next.clone()) {
                        longer.push(way);
                    }
                }
            }
            ways = longer;
        }
        None
    }

    /// The circle of a crate, as text; empty without a circle.
    fn judge(&self) -> String {
        let Some(circle) = self.circle() else {
            return String::new();
        };
        let mut wrong = format!(
            "expected no circle of imports, found {}; let what both need move into the lower module\n",
            circle.join(" -> ")
        );
        for pair in circle.windows(2) {
            let place = &self.0[&(pair[0].clone(), pair[1].clone())];
            let _ = writeln!(wrong, "  {} names {} in {place}", pair[0], pair[1]);
        }
        wrong
    }
}

/// A file of a crate.
struct File {
    file: PathBuf,
    /// Its module, from the root.
    path: Vec<String>,
    /// The file's lines without comments and tests, each with the number of surrounding modules within the file.
    lines: Vec<(usize, String)>,
}

impl File {
    fn read(file: &Path, path: &[String]) -> Self {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        Self { file: file.to_owned(), path: path.to_vec(), lines: code(&text) }
    }

    /// The names used right below the root of the crate, with the numbers of their lines.
    fn names(&self) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for (n, (inner, line)) in self.lines.iter().enumerate() {
            let root = "super::".repeat(self.path.len() + inner);
            for prefix in ["crate::", root.as_str()] {
                for (at, _) in line.match_indices(prefix) {
                    let before = line[..at].chars().next_back();
                    if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                        continue;
                    }
                    // A group in braces may go on in the lines that follow.
                    let following = self.lines[n + 1..].iter().map(|(_, line)| line.as_str());
                    let rest: String = [&line[at + prefix.len()..]].into_iter().chain(following).collect();
                    let mut names: Vec<String> = spelled(group(&rest)).map(|path| first(&path)).collect();
                    names.dedup();
                    found.extend(names.into_iter().map(|name| (n + 1, name)));
                }
            }
        }
        found
    }
}

/// The group in braces at a text's beginning, or the text's first path.
fn group(text: &str) -> &str {
    let mut deep = 0_usize;
    let ends = |c: char| match c {
        '{' => {
            deep += 1;
            false
        }
        '}' => {
            deep = deep.saturating_sub(1);
            deep == 0
        }
        c => deep == 0 && !(c.is_alphanumeric() || c == '_'),
    };
    let end = text.find(ends).unwrap_or(text.len());
    &text[..end + usize::from(text[end..].starts_with('}'))]
}

/// The first segment of a path.
fn first(path: &str) -> String {
    path.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The lines of a text outside of comments and tests. Comments and tests become empty lines: all lines keep their
/// numbers.
fn code(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    // The indentation of each module around the line, and whether it is of tests.
    let mut around: Vec<(usize, bool)> = Vec::new();
    let mut of_tests = false;
    for line in text.lines() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        if code == "}" && around.last().is_some_and(|(of, _)| *of == indent) {
            around.pop();
        }
        let hidden = of_tests || code.starts_with("//") || around.iter().any(|(_, tests)| *tests);
        lines.push((around.len(), if hidden { String::new() } else { code.to_owned() }));
        if module(code).is_some() && code.ends_with('{') {
            around.push((indent, of_tests));
        }
        let tests_begin = code.starts_with("#[cfg(test)]") || code.starts_with("#[cfg(all(test,");
        of_tests = tests_begin || of_tests && code.starts_with('#');
    }
    lines
}

/// The name of the module declared on a line.
fn module(code: &str) -> Option<&str> {
    let (before, after) = code.split_once("mod ")?;
    let declares = before.is_empty() || before.starts_with("pub") && before.ends_with(' ');
    declares.then(|| after.trim_end_matches([' ', '{', ';']))
}

/// A module's file, and those of its modules.
fn collect(file: &Path, path: &[String], files: &mut Vec<File>) {
    let read = File::read(file, path);
    let declared: Vec<String> = read
        .lines
        .iter()
        .filter(|(_, code)| code.ends_with(';'))
        .filter_map(|(_, code)| module(code).map(str::to_owned))
        .collect();
    files.push(read);
    let folder = match file.file_name().and_then(|name| name.to_str()) {
        Some("lib.rs" | "mod.rs") => file.with_file_name(""),
        _ => file.with_extension(""),
    };
    for name in declared {
        let alone = folder.join(format!("{name}.rs"));
        let file = if alone.exists() { alone } else { folder.join(&name).join("mod.rs") };
        collect(&file, &[path, &[name]].concat(), files);
    }
}

/// The names exported by the root, with their modules.
fn exports<'a>(root: &[(usize, String)], tops: &BTreeSet<&'a str>) -> BTreeMap<String, &'a str> {
    let text: String = root.iter().map(|(_, line)| line.as_str()).collect();
    let used = text
        .split(';')
        .filter_map(|statement| statement.split_once("use "))
        .flat_map(|(_, path)| spelled(path));
    let exported = used.filter_map(|path| {
        let (top, name) = (tops.get(&*first(&path))?, path.rsplit("::").next()?);
        Some((name.to_owned(), *top))
    });
    exported.collect()
}

#[test]
fn top_level_modules_import_in_one_direction() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut wrong = String::new();
    for sources in CRATES {
        let told = Imports::of(&root, sources).judge();
        if !told.is_empty() {
            let _ = write!(wrong, "\nin {sources}: {told}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Imports between modules, as `a-b` if a imports b.
fn imports(edges: &[&str]) -> Imports {
    let pair = |edge: &&str| {
        let (from, to) = edge.split_once('-').expect("a pair");
        ((from.to_owned(), to.to_owned()), format!("{from}.rs:1"))
    };
    Imports(edges.iter().map(pair).collect())
}

#[test]
fn a_circle_is_named_with_the_places_that_close_it() {
    assert_eq!(imports(&["a-b", "b-c", "a-c"]).judge(), "");
    let told = imports(&["a-b", "b-c", "c-a", "d-a"]).judge();
    assert!(told.contains("found a -> b -> c -> a;"), "{told}");
    assert!(told.contains("c names a in c.rs:1"), "{told}");
}

#[test]
fn names_are_found_in_groups_and_not_in_comments_or_tests() {
    let text = "\
use crate::{one::{A, B}, two};
use crate::{
    three::C,
    four,
};
// use crate::five;
fn f() -> super::six::D {
    other_crate::seven()
}
mod inner {
    use super::eight;
    use super::super::nine;
}
#[cfg(test)]
mod tests {
    use crate::ten;
}
#[cfg(all(test, unix))]
#[path = \"m_tests.rs\"]
mod more_tests {
    use crate::eleven;
}
";
    let file = File { file: PathBuf::new(), path: vec!["m".to_owned()], lines: code(text) };
    let mut names: Vec<String> = file.names().into_iter().map(|(_, name)| name).collect();
    names.retain(|name| !name.is_empty());
    assert_eq!(names, ["one", "two", "three", "four", "six", "nine"]);
}
