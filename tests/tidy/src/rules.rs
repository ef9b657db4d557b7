//! The rules. To add a rule, add a line to [`RULES`] and a function that finds the rule's breaches in one file.

use crate::function::{Function, functions};
use crate::names::NAMES;
use crate::rooms::{private_fields, rooms, router};
use crate::shapes::{definitions, sizes};
use crate::source::{Source, lines_with};
use std::collections::BTreeMap;

/// The most lines of a file of Rust, its tests included.
const FILE_LINES: usize = 500;
/// The most lines of a function: what fits on a screen.
const FUNCTION_LINES: usize = 70;
/// The most characters of a test's name.
const TEST_NAME: usize = 60;
/// The most bytes of a file of any kind.
const FILE_BYTES: u64 = 100_000;
/// The most methods of a type, and the most files that they stand in.
const TYPE_METHODS: usize = 40;
const TYPE_FILES: usize = 4;

/// A rule.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// A short name, which exceptions use.
    pub name: &'static str,
    /// What to do about a finding.
    pub advice: &'static str,
    /// Finds the places that break the rule.
    pub find: Find,
}

/// Where a rule looks.
#[derive(Clone, Copy, Debug)]
pub enum Find {
    /// In one file after the other.
    InFile(fn(&Source) -> Vec<Finding>),
    /// In all files together. Each finding has the index of its file.
    InTree(fn(&[Source]) -> Vec<(usize, Finding)>),
}

impl Rule {
    /// The places of the workspace that break the rule, each with its file.
    pub fn find<'a>(&self, sources: &'a [Source]) -> Vec<(&'a Source, Finding)> {
        match self.find {
            Find::InFile(find) => {
                let each =
                    sources.iter().flat_map(|source| find(source).into_iter().map(move |one| (source, one)));
                each.collect()
            }
            Find::InTree(find) => {
                find(sources).into_iter().map(|(file, one)| (&sources[file], one)).collect()
            }
        }
    }
}

/// A place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The line, from 1.
    pub line: usize,
    /// The subject of the finding, such as the name of a function; exceptions use the subject. Empty: the file as a
    /// whole.
    pub subject: String,
    /// What was found.
    pub found: String,
}

/// All rules.
pub const RULES: &[Rule] = &[
    Rule {
        name: "file-length",
        advice: "a file is one idea: take a part of it into a file of its own",
        find: Find::InFile(file_length),
    },
    Rule {
        name: "function-length",
        advice: "a function fits on a screen: give a part of it a name",
        find: Find::InFile(function_length),
    },
    Rule {
        name: "test-name",
        advice: "a test's name says the condition and the result in 60 characters, and names its subject: not `what_`",
        find: Find::InFile(test_name),
    },
    Rule {
        name: "unsafe",
        advice: "nothing in this project is worth it",
        find: Find::InFile(|source| forbidden(source, &["unsafe"])),
    },
    Rule {
        name: "unfinished",
        advice: "finish it, or leave it out",
        find: Find::InFile(|source| forbidden(source, &["todo!", "unimplemented!", "dbg!"])),
    },
    Rule {
        name: "word",
        advice: "name the component that acts, with the words of the glossary",
        find: Find::InFile(words),
    },
    Rule {
        name: "thread-local",
        advice: "give it as an argument: what a thread keeps, another run of the same world may not find",
        find: Find::InFile(|source| only_in(source, "sim/src/", "thread_local!", &["deliberate/switch.rs"])),
    },
    Rule {
        name: "worker-behind-the-contract",
        advice: "go through `Engine::handle`: the rooms are the engine's own",
        find: Find::InFile(|source| {
            only_in(source, "engine/src/", "crate::worker", &["worker/", "engine.rs"])
        }),
    },
    Rule {
        name: "router",
        advice: "a room is a struct of its own: only the files that know all rooms may add methods to the router",
        find: Find::InFile(router),
    },
    Rule {
        name: "rooms",
        advice: "ask for it with a `Request`, or look at what all rooms stand on",
        find: Find::InFile(rooms),
    },
    Rule {
        name: "private-fields",
        advice: "a room shows methods: what stands in it is its own",
        find: Find::InFile(private_fields),
    },
    Rule {
        name: "file-size",
        advice: "keep what a test needs in fewer bytes, or make it when the test runs",
        find: Find::InFile(file_size),
    },
    Rule {
        name: "type-size",
        advice: "a type with many methods is a hall: give a part of its fields a type of their own",
        find: Find::InTree(type_size),
    },
    Rule {
        name: "type-name",
        advice: "a name means one type in its crate: take a name that says more",
        find: Find::InTree(type_name),
    },
];

/// Forbidden words, with the words allowed by exceptions.
const WORDS: &[&str] = &[
    // A sentence has a subject with a name.
    "whoever",
    "nobody who",
    "what came of it",
    "what is to come of it",
    "nobody lives",
    "is not sure",
    // Remaining work is written down outside the sources.
    "TODO",
    "FIXME",
    "XXX",
];

fn file_length(source: &Source) -> Vec<Finding> {
    let lines = source.text.lines().count();
    let too_long = source.is_rust() && lines > FILE_LINES;
    let finding = too_long.then(|| Finding {
        line: FILE_LINES + 1,
        subject: String::new(),
        found: format!("expected at most {FILE_LINES} lines, found {lines}"),
    });
    finding.into_iter().collect()
}

fn file_size(source: &Source) -> Vec<Finding> {
    let finding = (source.bytes > FILE_BYTES).then(|| Finding {
        line: 1,
        subject: String::new(),
        found: format!("expected at most {FILE_BYTES} bytes, found {}", source.bytes),
    });
    finding.into_iter().collect()
}

fn type_size(sources: &[Source]) -> Vec<(usize, Finding)> {
    let all = sizes(sources).into_iter();
    let large = all.filter(|(_, _, size)| size.methods > TYPE_METHODS || size.files.len() > TYPE_FILES);
    large
        .map(|(name, definition, size)| {
            let (methods, files) = (size.methods, size.files.len());
            let found = format!(
                "expected `{name}` to have at most {TYPE_METHODS} methods in {TYPE_FILES} files, found {methods} in {files}"
            );
            (definition.file, Finding { line: definition.line, subject: name, found })
        })
        .collect()
}

/// Finds names with more definitions in a crate than the list of names allows, and lines of that list that allow too many.
fn type_name(sources: &[Source]) -> Vec<(usize, Finding)> {
    let mut allowed: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (folder, names) in NAMES {
        allowed.extend(names.iter().map(|(name, most)| (((*folder).to_owned(), (*name).to_owned()), *most)));
    }
    let mut findings = Vec::new();
    for (key, all) in definitions(sources) {
        let most = allowed.remove(&key).unwrap_or(1);
        let (folder, name) = key;
        let last = &all[all.len() - 1];
        if all.len() != most {
            let found = format!("expected {most} types named `{name}` in {folder}, found {}", all.len());
            findings.push((last.file, Finding { line: last.line, subject: name, found }));
        }
    }
    let list = sources.iter().position(|source| source.path.ends_with("tidy/src/names.rs"));
    for ((folder, name), most) in allowed {
        let found = format!("expected {most} types named `{name}` in {folder}, found none");
        findings.extend(list.map(|file| (file, Finding { line: 1, subject: name.to_owned(), found })));
    }
    findings
}

fn test_name(source: &Source) -> Vec<Finding> {
    let lines: Vec<&str> = source.code.lines().collect();
    let is_test = |function: &Function| {
        let above = lines[..function.line - 1].iter().rev().map(|line| line.trim());
        let mut attributes = above.take_while(|line| line.is_empty() || line.starts_with("#["));
        attributes.any(|line| line.starts_with("#[test]") || line.contains("::test"))
    };
    let is_bad = |name: &str| name.len() > TEST_NAME || name.starts_with("what_");
    let tests = functions(source).into_iter().filter(|function| is_bad(&function.name) && is_test(function));
    let finding = |test: Function| Finding {
        line: test.line,
        found: format!("`{}` with {} characters", test.name, test.name.len()),
        subject: test.name,
    };
    tests.map(finding).collect()
}

fn function_length(source: &Source) -> Vec<Finding> {
    let long = functions(source).into_iter().filter(|function| function.lines > FUNCTION_LINES);
    long.map(|function| Finding {
        line: function.line,
        found: format!(
            "expected `{}` to have at most {FUNCTION_LINES} lines, found {}",
            function.name, function.lines
        ),
        subject: function.name,
    })
    .collect()
}

/// Finds code that uses one of these words.
fn forbidden(source: &Source, words: &[&'static str]) -> Vec<Finding> {
    let each = words.iter().flat_map(|&word| {
        source.code_lines_with(word).map(move |line| Finding {
            line,
            subject: word.to_owned(),
            found: format!("found `{word}`"),
        })
    });
    each.collect()
}

/// Finds code in one folder, outside of the homes, that uses a name or a path. `homes` lists files and folders.
fn only_in(source: &Source, folder: &str, name: &'static str, homes: &[&str]) -> Vec<Finding> {
    match source.path.strip_prefix(folder) {
        Some(path) if !homes.iter().any(|home| path.starts_with(home)) => forbidden(source, &[name]),
        _ => Vec::new(),
    }
}

fn words(source: &Source) -> Vec<Finding> {
    // Here they are spelled.
    if source.path.starts_with("tests/tidy/") {
        return Vec::new();
    }
    let text = source.text.to_lowercase();
    let mut findings = Vec::new();
    for &word in WORDS {
        let sought = word.to_lowercase();
        findings.extend(lines_with(&text, &sought).map(|line| Finding {
            line,
            subject: word.to_owned(),
            found: format!("found {word:?}"),
        }));
    }
    findings
}

/// The paths forbidden by a `clippy.toml`, with the names of their lists.
///
/// # Panics
/// If a line of a list does not have the form of these files.
pub fn clippy_lists(text: &str) -> Vec<(String, String)> {
    let mut list = String::new();
    let mut paths = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_suffix(" = [") {
            list = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("  { path = \"") {
            let (path, rest) = rest.split_once('"').expect("a path in quotes");
            assert!(rest.contains("reason = \""), "{path} is forbidden without a reason");
            paths.push((list.clone(), path.to_owned()));
        }
    }
    paths
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn found_by(rule: &str, path: &str, text: &str) -> Vec<(usize, String)> {
        let rule = RULES.iter().find(|known| known.name == rule).unwrap();
        let sources = [Source::new(path, text)];
        rule.find(&sources).into_iter().map(|(_, finding)| (finding.line, finding.subject)).collect()
    }

    pub(crate) fn one(line: usize, subject: &str) -> Vec<(usize, String)> {
        vec![(line, subject.to_owned())]
    }

    #[test]
    fn a_file_and_a_function_of_just_the_right_length_pass() {
        assert_eq!(found_by("file-length", "a.rs", &"\n".repeat(500)), []);
        assert_eq!(found_by("file-length", "a.rs", &"\n".repeat(501)), one(501, ""));
        assert_eq!(found_by("file-length", "a.md", &"\n".repeat(501)), []);
        let function = |lines: usize| format!("\nfn a() {{\n{}}}\n", "    b();\n".repeat(lines - 2));
        assert_eq!(found_by("function-length", "a.rs", &function(70)), []);
        assert_eq!(found_by("function-length", "a.rs", &function(71)), one(2, "a"));
    }

    #[test]
    fn a_large_file_is_found_whatever_its_kind() {
        let sources = [Source { bytes: 100_001, ..Source::new("a.png", "") }];
        let rule = RULES.iter().find(|known| known.name == "file-size").unwrap();
        assert_eq!(rule.find(&sources).len(), 1);
        assert_eq!(found_by("file-size", "a.rs", &" ".repeat(100_000)), []);
    }

    #[test]
    fn a_type_with_too_many_methods_is_found() {
        let text =
            |methods: usize| format!("struct A;\nimpl A {{\n{}}}\n", "    fn a() {\n    }\n".repeat(methods));
        assert_eq!(found_by("type-size", "a.rs", &text(40)), []);
        assert_eq!(found_by("type-size", "a.rs", &text(41)), one(1, "A"));
    }

    #[test]
    fn a_name_of_two_types_is_found_at_the_second_one() {
        let sources = [
            Source::new("a/Cargo.toml", ""),
            Source::new("a/b.rs", "struct A;\n"),
            Source::new("a/c.rs", "\nenum A {}\n"),
            Source::new("d/Cargo.toml", ""),
            Source::new("d/e.rs", "trait A {}\n"),
        ];
        let rule = RULES.iter().find(|known| known.name == "type-name").unwrap();
        let found: Vec<_> = rule
            .find(&sources)
            .into_iter()
            .map(|(source, one)| (source.path.as_str(), one.line, one.subject))
            .collect();
        assert_eq!(found, [("a/c.rs", 2, "A".to_owned())]);
    }

    #[test]
    fn words_of_code_count_in_code_only() {
        assert_eq!(found_by("unsafe", "a.rs", "// unsafe\nunsafe { a() }"), one(2, "unsafe"));
        assert_eq!(found_by("unsafe", "a.rs", "#![forbid(unsafe_code)]"), []);
        assert_eq!(found_by("unfinished", "a.rs", "\"todo!\";\n    todo!()"), one(2, "todo!"));
        assert_eq!(found_by("unfinished", "a.rs", "dbg!(a)"), one(1, "dbg!"));
    }

    #[test]
    fn a_tests_name_is_short_and_names_its_subject() {
        let file = |attribute: &str, name: &str| format!("#[{attribute}]\n\nfn {name}() {{\n}}\n");
        assert_eq!(found_by("test-name", "a.rs", &file("test", "what_is_free_is_taken")).len(), 1);
        assert_eq!(found_by("test-name", "a.rs", &file("tokio::test", &"a".repeat(61))).len(), 1);
        assert_eq!(found_by("test-name", "a.rs", &file("test", &"a".repeat(60))), []);
        assert_eq!(found_by("test-name", "a.rs", &file("inline", "what_is_free")), []);
    }

    #[test]
    fn words_of_people_count_everywhere() {
        assert_eq!(found_by("word", "a.md", "So\nWhoever comes"), one(2, "whoever"));
        assert_eq!(found_by("word", "a.rs", "// fixme"), one(1, "FIXME"));
        assert_eq!(found_by("word", "a.rs", "// mastodon"), []);
    }

    #[test]
    fn a_path_may_be_kept_to_its_home() {
        let text = "use crate::worker::Core;";
        let rule = "worker-behind-the-contract";
        assert_eq!(found_by(rule, "engine/src/worker/take.rs", text), []);
        assert_eq!(found_by(rule, "engine/src/rank.rs", text), one(1, "crate::worker"));
        assert_eq!(found_by(rule, "engine/src/rank.rs", "// crate::worker"), []);
        assert_eq!(found_by(rule, "adapters/src/driver.rs", text), []);
    }

    #[test]
    fn lists_of_clippy_are_read() {
        let text = "# a\ndisallowed-methods = [\n  { path = \"a::b\", reason = \"c\" },\n]\n";
        assert_eq!(clippy_lists(text), [("disallowed-methods".to_owned(), "a::b".to_owned())]);
    }
}
