//! Types of a crate: where each is defined, and how many methods its `impl` blocks have.

use crate::function::functions;
use crate::source::Source;
use std::collections::{BTreeMap, BTreeSet};

/// A type that a file defines outside of functions and inline modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Definition {
    /// The index of the file.
    pub(crate) file: usize,
    /// The line, from 1.
    pub(crate) line: usize,
}

/// The methods of a type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// Methods of `impl` blocks that are of no trait.
    pub(crate) methods: usize,
    /// The indices of the files with such blocks.
    pub(crate) files: BTreeSet<usize>,
}

/// The types of each crate, by the crate's folder and the type's name.
pub(crate) fn definitions(sources: &[Source]) -> BTreeMap<(String, String), Vec<Definition>> {
    let crates = crates(sources);
    let mut types: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (file, source) in sources.iter().enumerate().filter(|(_, source)| source.is_rust()) {
        for (line, text) in (1..).zip(source.code.lines()) {
            if let Some(name) = defined(text) {
                let key = (crate_of(&crates, &source.path).to_owned(), name.to_owned());
                types.entry(key).or_default().push(Definition { file, line });
            }
        }
    }
    types
}

/// The size of each type, by the file and line of its definition. An `impl` block counts for the type of its name that is
/// defined nearest to the block.
pub(crate) fn sizes(sources: &[Source]) -> Vec<(String, Definition, Size)> {
    let crates = crates(sources);
    let types = definitions(sources);
    let mut sizes: BTreeMap<(usize, usize), (String, Size)> = BTreeMap::new();
    for (file, source) in sources.iter().enumerate().filter(|(_, source)| source.is_rust()) {
        for (name, methods) in blocks(source) {
            let key = (crate_of(&crates, &source.path).to_owned(), name.clone());
            let near = |definition: &&Definition| nearness(&sources[definition.file].path, &source.path);
            let Some(definition) = types.get(&key).and_then(|all| all.iter().max_by_key(near)) else {
                continue;
            };
            let entry = sizes.entry((definition.file, definition.line)).or_insert((name, Size::default()));
            entry.1.methods += methods;
            entry.1.files.insert(file);
        }
    }
    sizes.into_iter().map(|((file, line), (name, size))| (name, Definition { file, line }, size)).collect()
}

/// The folders of all crates, the deepest first.
fn crates(sources: &[Source]) -> Vec<String> {
    let manifests = sources.iter().filter_map(|source| source.path.strip_suffix("Cargo.toml"));
    let mut folders: Vec<String> = manifests.map(str::to_owned).collect();
    folders.sort_by_key(|folder| std::cmp::Reverse(folder.len()));
    folders
}

fn crate_of<'a>(crates: &'a [String], path: &str) -> &'a str {
    let folder = crates.iter().find(|folder| path.starts_with(folder.as_str()));
    folder.map_or("", |folder| folder.trim_end_matches('/'))
}

/// The name of the type that a line defines at the top of its file.
fn defined(line: &str) -> Option<&str> {
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.trim_start(),
        None => line,
    };
    let kinds = ["struct ", "enum ", "trait ", "type "];
    let rest = kinds.iter().find_map(|kind| line.strip_prefix(kind))?;
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    Some(&rest[..end])
}

/// The `impl` blocks of a file that are of no trait: the name of the type, and how many methods the block has.
fn blocks(source: &Source) -> Vec<(String, usize)> {
    let all = functions(source);
    let lines: Vec<&str> = source.code.lines().collect();
    let mut blocks = Vec::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("impl")) {
        let open = lines[at..].iter().position(|line| line.ends_with(['{', '}'])).unwrap_or(0);
        let header = lines[at..=at + open].join(" ");
        let end = lines[at..].iter().position(|line| *line == "}").map_or(lines.len(), |length| at + length);
        if !header.contains(" for ") {
            let indented =
                |line: usize| lines[line - 1].starts_with("    ") && !lines[line - 1].starts_with("     ");
            let inside = all
                .iter()
                .filter(|function| function.line > at && function.line <= end && indented(function.line));
            blocks.push((type_of(line).to_owned(), inside.count()));
        }
    }
    blocks
}

/// The type's name in the first line of an `impl` block.
fn type_of(line: &str) -> &str {
    let rest = line.trim_start_matches("impl");
    let (mut depth, mut before) = (0_usize, ' ');
    let generics = rest.char_indices().find(|(_, c)| {
        match c {
            '<' => depth += 1,
            // An arrow closes nothing.
            '>' if before != '-' => depth -= 1,
            _ => {}
        }
        before = *c;
        depth == 0
    });
    let rest = generics.map_or("", |(at, _)| rest[at..].trim_start_matches('>').trim_start());
    let path = rest.split(['<', ' ', '{']).next().unwrap_or_default();
    path.rsplit("::").next().unwrap_or_default()
}

/// How many characters two paths begin with alike: the longer, the nearer their modules.
fn nearness(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Vec<Source> {
        let held =
            "pub struct Held<'a> {}\nimpl<'a> Held<'a> {\n    fn a() {\n    }\n    pub fn b() {\n    }\n}\n";
        let more = "impl super::Held<'_> {\n    fn c() {\n        fn inner() {\n        }\n    }\n}\nimpl Clone for Held<'_> {\n    fn d() {\n    }\n}\n";
        vec![
            Source::new("a/Cargo.toml", ""),
            Source::new("a/src/held/mod.rs", held),
            Source::new("a/src/held/more.rs", more),
            Source::new("a/src/other.rs", "enum Held {\n}\n"),
        ]
    }

    #[test]
    fn methods_of_all_blocks_count_for_the_nearest_type() {
        let sizes = sizes(&tree());
        assert_eq!(sizes.len(), 1);
        let (name, definition, size) = &sizes[0];
        assert_eq!((name.as_str(), definition), ("Held", &Definition { file: 1, line: 1 }));
        assert_eq!(*size, Size { methods: 3, files: BTreeSet::from([1, 2]) });
    }

    #[test]
    fn a_name_is_found_at_each_definition_of_its_crate() {
        let types = definitions(&tree());
        let held = &types[&("a".to_owned(), "Held".to_owned())];
        assert_eq!(held, &[Definition { file: 1, line: 1 }, Definition { file: 3, line: 1 }]);
    }

    #[test]
    fn the_type_of_a_block_is_read() {
        for (line, name) in [
            ("impl A {", "A"),
            ("impl<T: Ord> A<T> {", "A"),
            ("impl<F: Fn(u8) -> Vec<u8>> a::B<F> {", "B"),
            ("impl A", "A"),
        ] {
            assert_eq!(type_of(line), name, "{line}");
        }
    }
}
