//! The rules. To add one, add a line to [`RULES`] and a function that finds what breaks it in one file.

use crate::function::functions;
use crate::source::{Source, lines_with};

/// The most lines of a file of Rust, its tests included.
const FILE_LINES: usize = 500;
/// The most lines of a function: what fits on a screen.
const FUNCTION_LINES: usize = 70;

/// A rule.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// A short name, which exceptions use.
    pub name: &'static str,
    /// What to do about a finding.
    pub advice: &'static str,
    /// Finds what breaks it in one file.
    pub find: fn(&Source) -> Vec<Finding>,
}

/// A place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The line, from 1.
    pub line: usize,
    /// What it is about, such as the name of a function; exceptions use it. Empty: the file as a whole.
    pub subject: String,
    /// What was found.
    pub found: String,
}

/// All rules.
pub const RULES: &[Rule] = &[
    Rule {
        name: "file-length",
        advice: "a file is one idea: take a part of it into a file of its own",
        find: file_length,
    },
    Rule {
        name: "function-length",
        advice: "a function fits on a screen: give a part of it a name",
        find: function_length,
    },
    Rule {
        name: "unsafe",
        advice: "nothing in this project is worth it",
        find: |source| forbidden(source, &["unsafe"]),
    },
    Rule {
        name: "unfinished",
        advice: "finish it, or leave it out",
        find: |source| forbidden(source, &["todo!", "unimplemented!", "dbg!"]),
    },
    Rule {
        name: "word",
        advice: "name the component that acts, with the words of the glossary",
        find: words,
    },
    Rule {
        name: "thread-local",
        advice: "give it as an argument: what a thread keeps, another run of the same world may not find",
        find: |source| only_in(source, "sim/src/", "thread_local!", &["deliberate/switch.rs"]),
    },
    Rule {
        name: "worker-behind-the-contract",
        advice: "go through `Engine::handle`: the rooms are the engine's own",
        find: |source| only_in(source, "engine/src/", "crate::worker", &["worker/", "engine.rs"]),
    },
    Rule {
        name: "router",
        advice: "a room is a struct of its own: only the files that know all rooms may add methods to the router",
        find: router,
    },
    Rule {
        name: "rooms",
        advice: "ask for it with a `Request`, or look at what all rooms stand on",
        find: rooms,
    },
    Rule {
        name: "private-fields",
        advice: "a room shows methods: what stands in it is its own",
        find: private_fields,
    },
];

/// Words that are not to be used anywhere, with those that exceptions name.
const WORDS: &[&str] = &[
    // A sentence has a subject that can be named.
    "whoever",
    "nobody who",
    "what came of it",
    "what is to come of it",
    "nobody lives",
    "is not sure",
    // What is left to do is written down elsewhere.
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

/// Finds code of one folder that uses a name or a path anywhere but in these of its files and folders.
fn only_in(source: &Source, folder: &str, name: &'static str, homes: &[&str]) -> Vec<Finding> {
    match source.path.strip_prefix(folder) {
        Some(path) if !homes.iter().any(|home| path.starts_with(home)) => forbidden(source, &[name]),
        _ => Vec::new(),
    }
}

/// A folder that is cut into rooms.
struct House {
    folder: &'static str,
    /// The module that the folder is.
    module: &'static str,
    /// The struct that has all rooms.
    router: &'static str,
    /// The files in which its methods stand.
    router_files: &'static [&'static str],
    /// The crate's sources, in which no other file may add methods to it.
    sources: &'static str,
    /// Each room, and which others its files may name.
    rooms: &'static [(&'static str, &'static [&'static str])],
    /// Files that no room is, and which rooms they may name.
    others: &'static [(&'static str, &'static [&'static str])],
    /// Files of plain data.
    open: &'static [&'static str],
}

const HOUSES: &[House] = &[
    // `lease_table` is not a room: all rooms stand on it, as on the context. It keeps what the room of leases does with each; so
    // what the tests of all rooms stand on fills that table with held leases.
    House {
        folder: "engine/src/worker/",
        module: "worker",
        router: "impl Worker",
        router_files: &["mod.rs", "calls.rs"],
        sources: "engine/src/",
        rooms: &[
            ("assignment", &[]),
            ("leadership", &[]),
            ("lease", &[]),
            ("row_writes", &[]),
            ("shard_sync", &[]),
            ("startup", &[]),
            ("stream_watch", &[]),
            ("streams", &["shard_sync", "stream_watch"]),
        ],
        others: &[("lease_table", &["lease"]), ("testing", &["lease"])],
        open: &[],
    },
    // The parts of a simulated world stand on each other, in one direction.
    House {
        folder: "sim/src/world/",
        module: "world",
        router: "impl World",
        router_files: &["mod.rs", "perform.rs"],
        sources: "sim/src/world/",
        rooms: &[
            ("services", &[]),
            ("chances", &[]),
            ("script", &[]),
            ("fleet", &["services", "chances"]),
            ("net", &["services", "chances", "fleet"]),
            ("judge", &["services", "chances", "fleet"]),
        ],
        others: &[],
        open: &["found.rs"],
    },
];

impl House {
    /// The house that a file is of, and where in it the file is.
    fn of(source: &Source) -> Option<(&'static Self, &str)> {
        let mut houses = HOUSES.iter();
        houses.find_map(|house| Some((house, source.path.strip_prefix(house.folder)?)))
    }

    /// The rooms that a file or a folder may name besides its own.
    fn may_name(&self, own: &str) -> &'static [&'static str] {
        let mut all = self.rooms.iter().chain(self.others);
        all.find(|(room, _)| *room == own).map_or(&[], |(_, known)| known)
    }
}

/// Finds methods of a router outside its file.
fn router(source: &Source) -> Vec<Finding> {
    let each = HOUSES.iter().flat_map(|house| {
        let path = source.path.strip_prefix(house.sources);
        let home = source.path.strip_prefix(house.folder);
        let home = home.is_some_and(|path| house.router_files.contains(&path));
        let lines = source.code_lines_with(house.router);
        let wrong = path.is_some() && !home;
        let finding = |line| Finding {
            line,
            subject: house.router.to_owned(),
            found: format!("found `{}`", house.router),
        };
        lines.filter(move |_| wrong).map(finding)
    });
    each.collect()
}

/// Finds code of a room, or of what they stand on, that names another room.
fn rooms(source: &Source) -> Vec<Finding> {
    let Some((house, path)) = House::of(source) else {
        return Vec::new();
    };
    let own = path.split('/').next().unwrap_or_default().trim_end_matches(".rs");
    // The router knows all rooms.
    if house.router_files.contains(&path) {
        return Vec::new();
    }
    let known = house.may_name(own);
    let rooms = house.rooms.iter().map(|(room, _)| *room);
    let others = rooms.filter(|room| *room != own && !known.contains(room));
    others
        .flat_map(|room| {
            let names = [format!("{}::{room}::", house.module), format!("super::{room}::")];
            names.into_iter().flat_map(move |name| {
                let lines: Vec<usize> = source.code_lines_with(&name).collect();
                lines.into_iter().map(move |line| Finding {
                    line,
                    subject: room.to_owned(),
                    found: format!("found `{name}`"),
                })
            })
        })
        .collect()
}

/// Finds a field of a room that can be seen from outside its folder.
fn private_fields(source: &Source) -> Vec<Finding> {
    let Some((house, path)) = House::of(source) else {
        return Vec::new();
    };
    if house.open.contains(&path) {
        return Vec::new();
    }
    // In a file beside the others, `super` is the router.
    let inside = path.contains('/') && !path.ends_with("/mod.rs");
    let shown = match inside {
        true => format!("pub(in crate::{}) ", house.module),
        false => "pub(super) ".to_owned(),
    };
    let outside = [shown.as_str(), "pub(crate) ", "pub "];
    let field = |line: &str| {
        let line = line.trim_start();
        let name = outside.iter().find_map(|start| line.strip_prefix(start));
        name.and_then(|name| name.split_once(": "))
            .is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
    };
    let lines = source.text.lines().zip(1..).filter(|(line, _)| field(line));
    lines
        .map(|(line, number)| Finding {
            line: number,
            subject: line.trim().trim_end_matches(',').to_owned(),
            found: format!("found `{}`", line.trim()),
        })
        .collect()
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

/// The paths that a `clippy.toml` forbids, by the list they are in.
///
/// # Panics
/// If a line of a list is not as these files have it.
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
mod tests {
    use super::*;

    fn found_by(rule: &str, path: &str, text: &str) -> Vec<(usize, String)> {
        let rule = RULES.iter().find(|known| known.name == rule).unwrap();
        let findings = (rule.find)(&Source::new(path, text));
        findings.into_iter().map(|finding| (finding.line, finding.subject)).collect()
    }

    fn one(line: usize, subject: &str) -> Vec<(usize, String)> {
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
    fn a_room_names_no_other_room() {
        let text = "use crate::worker::lease::HeldLease;\nuse crate::worker::lease_table::Lease;\n";
        assert_eq!(found_by("rooms", "engine/src/worker/startup.rs", text), one(1, "lease"));
        assert_eq!(found_by("rooms", "engine/src/worker/lease/lane.rs", text), []);
        assert_eq!(found_by("rooms", "engine/src/worker/lease_table/mod.rs", text), []);
        let text = "use super::startup::Startup;\n";
        assert_eq!(found_by("rooms", "engine/src/worker/mod.rs", text), []);
        assert_eq!(found_by("rooms", "engine/src/worker/leadership.rs", text), one(1, "startup"));
    }

    #[test]
    fn a_part_of_a_world_names_only_what_it_stands_on() {
        let text = "use crate::world::fleet::Fleet;\nuse crate::world::context::Context;\n";
        assert_eq!(found_by("rooms", "sim/src/world/net/send.rs", text), []);
        for path in ["services/truth.rs", "chances.rs", "script.rs", "context.rs"] {
            let path = format!("sim/src/world/{path}");
            assert_eq!(found_by("rooms", &path, text), one(1, "fleet"), "{path}");
        }
        let text = "use super::judge::Judge;\n";
        assert_eq!(found_by("rooms", "sim/src/world/mod.rs", text), []);
        assert_eq!(found_by("rooms", "sim/src/world/fleet/mod.rs", text), one(1, "judge"));
    }

    #[test]
    fn a_room_hides_its_fields() {
        let rule = "private-fields";
        let text = "    pub(super) now: Mono,\n    pub(super) fn a(&self) {}\n    b: u32,\n";
        assert_eq!(found_by(rule, "engine/src/worker/startup.rs", text).len(), 1);
        assert_eq!(found_by(rule, "engine/src/worker/shard_sync/mod.rs", text).len(), 1);
        assert_eq!(found_by(rule, "engine/src/worker/lease/lane.rs", text), []);
        let text = "    pub(in crate::worker) now: Mono,\n";
        assert_eq!(found_by(rule, "engine/src/worker/lease/lane.rs", text).len(), 1);
        let text = "    pub(in crate::world) now: Time,\n    pub(super) at: Time,\n";
        assert_eq!(found_by(rule, "sim/src/world/fleet/worker.rs", text).len(), 1);
        assert_eq!(found_by(rule, "sim/src/world/context.rs", text).len(), 1);
        assert_eq!(found_by(rule, "sim/src/world/found.rs", "    pub now: Time,\n"), []);
    }

    #[test]
    fn only_the_files_of_a_router_add_methods_to_it() {
        let text = "impl Worker {\n}\n";
        assert_eq!(found_by("router", "engine/src/worker/mod.rs", text), []);
        assert_eq!(found_by("router", "engine/src/worker/calls.rs", text), []);
        assert_eq!(found_by("router", "engine/src/worker/context.rs", text).len(), 1);
        assert_eq!(found_by("router", "engine/src/worker/lease/mod.rs", text).len(), 1);
        let text = "impl World {\n}\n";
        assert_eq!(found_by("router", "sim/src/world/mod.rs", text), []);
        assert_eq!(found_by("router", "sim/src/world/judge/mod.rs", text).len(), 1);
        assert_eq!(found_by("router", "sim/src/exhaust/step.rs", text), []);
    }

    #[test]
    fn words_of_code_count_in_code_only() {
        assert_eq!(found_by("unsafe", "a.rs", "// unsafe\nunsafe { a() }"), one(2, "unsafe"));
        assert_eq!(found_by("unsafe", "a.rs", "#![forbid(unsafe_code)]"), []);
        assert_eq!(found_by("unfinished", "a.rs", "\"todo!\";\n    todo!()"), one(2, "todo!"));
        assert_eq!(found_by("unfinished", "a.rs", "dbg!(a)"), one(1, "dbg!"));
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
