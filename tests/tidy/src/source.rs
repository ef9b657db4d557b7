//! The files of the workspace.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A file of the workspace.
#[derive(Clone, Debug)]
pub struct Source {
    /// The file's path from the root of the workspace, with `/`.
    pub path: String,
    /// All of it.
    pub text: String,
    /// For a file of Rust: the same text with every comment and the inside of every text blanked out, character by
    /// character: lines and columns stay those of `text`. Otherwise empty.
    pub code: String,
    /// How many bytes the file has, also if no rule reads its text.
    pub bytes: u64,
}

impl Source {
    /// A file of this path and text.
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        let (path, text) = (path.into(), text.into());
        let code = if path.ends_with(".rs") { code_of(&text) } else { String::new() };
        let bytes = text.len() as u64;
        Self { path, text, code, bytes }
    }

    /// Whether it is a file of Rust.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The lines of code with `word` as a whole word, numbered from 1.
    pub fn code_lines_with<'a>(&'a self, word: &'a str) -> impl Iterator<Item = usize> + 'a {
        lines_with(&self.code, word)
    }
}

/// The lines of a text with `word` as a whole word, numbered from 1.
pub(crate) fn lines_with<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let numbered = text.lines().zip(1..);
    numbered.filter_map(move |(line, number)| holds_word(line, word).then_some(number))
}

fn holds_word(line: &str, word: &str) -> bool {
    let of_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let (first, last) = (word.chars().next(), word.chars().next_back());
        let parted = |inner: Option<char>, outer: Option<char>| {
            !(inner.is_some_and(of_word) && outer.is_some_and(of_word))
        };
        parted(first, before) && parted(last, after)
    })
}

/// All files of the workspace, in the order of their paths: sources and pages with their text, other files with their size only.
/// Hidden folders and folders that programs generate are left out.
///
/// # Errors
/// If a file or folder cannot be read.
pub fn workspace() -> io::Result<Vec<Source>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut sources = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = folder.join(&name);
            let is_folder = entry.file_type()?.is_dir();
            if is_folder && !name.starts_with('.') && !GENERATED.contains(&&*name) {
                folders.push(path);
            } else if !is_folder {
                let read = is_read(&name);
                let text = if read { fs::read_to_string(root.join(&path))? } else { String::new() };
                let path = path.to_string_lossy().replace('\\', "/");
                let bytes = entry.metadata()?.len();
                sources.push(Source { bytes, ..Source::new(path, text) });
            }
        }
    }
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(sources)
}

/// Folders that programs write, of which version control keeps nothing.
const GENERATED: &[&str] = &["target", "node_modules", "__pycache__", "artifacts", "leasehold-failures"];

fn is_read(name: &str) -> bool {
    let end = name.rsplit('.').next().unwrap_or_default();
    matches!(end, "rs" | "md" | "toml" | "js" | "css" | "py")
}

/// Where the scanner of [`code_of`] is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum In {
    Code,
    LineComment,
    /// So deep: these nest.
    BlockComment(usize),
    /// A text with escapes.
    Text,
    /// A raw text that ends with `"` and this number of `#`.
    RawText(usize),
}

/// A text of Rust with every comment and the inside of every text blanked out.
fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let (mut state, mut rest) = (In::Code, text);
    while let Some(next) = rest.chars().next() {
        let (taken, keep, then) = step(state, rest, next, code.chars().next_back());
        let (chunk, after) = rest.split_at(taken);
        for c in chunk.chars() {
            let blank = if c == '\n' { '\n' } else { ' ' };
            code.push(if keep { c } else { blank });
        }
        (state, rest) = (then, after);
    }
    code
}

/// The number of bytes in the next step, whether the bytes are code, and the state afterwards.
fn step(state: In, rest: &str, next: char, before: Option<char>) -> (usize, bool, In) {
    let one = next.len_utf8();
    match state {
        In::Code if rest.starts_with("//") => (2, false, In::LineComment),
        In::Code if rest.starts_with("/*") => (2, false, In::BlockComment(1)),
        In::Code if next == '"' => (1, true, In::Text),
        In::Code if next == '\'' => (char_literal(rest), true, In::Code),
        In::Code if !before.is_some_and(|c| c.is_alphanumeric() || c == '_') => match raw_text(rest) {
            Some((length, hashes)) => (length, true, In::RawText(hashes)),
            None => (one, true, In::Code),
        },
        In::Code => (one, true, In::Code),
        In::LineComment if next == '\n' => (1, true, In::Code),
        In::BlockComment(deep) if rest.starts_with("/*") => (2, false, In::BlockComment(deep + 1)),
        In::BlockComment(1) if rest.starts_with("*/") => (2, false, In::Code),
        In::BlockComment(deep) if rest.starts_with("*/") => (2, false, In::BlockComment(deep - 1)),
        In::Text if next == '\\' => {
            let escaped = rest.chars().nth(1).map_or(0, char::len_utf8);
            (1 + escaped, false, In::Text)
        }
        In::Text if next == '"' => (1, true, In::Code),
        In::RawText(hashes) if ends_raw(rest, hashes) => (1 + hashes, true, In::Code),
        state => (one, false, state),
    }
}

/// The length of a literal such as `'"'`; 1 for the apostrophe of a lifetime.
fn char_literal(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((at, escaped))) => {
            let from = at + escaped.len_utf8();
            rest[from..].find('\'').map_or(1, |end| from + end + 1)
        }
        (Some((_, c)), Some((at, '\''))) if c != '\'' => at + 1,
        _ => 1,
    }
}

/// If a raw text begins here: the length of its beginning, and its number of `#`.
fn raw_text(rest: &str) -> Option<(usize, usize)> {
    let prefix = ["r", "br", "cr"].into_iter().find(|prefix| rest.starts_with(prefix))?;
    let after = &rest[prefix.len()..];
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].starts_with('"').then_some((prefix.len() + hashes + 1, hashes))
}

fn ends_raw(rest: &str, hashes: usize) -> bool {
    rest.strip_prefix('"')
        .is_some_and(|after| after.bytes().take_while(|&byte| byte == b'#').count() >= hashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_texts_are_blank_and_code_stays_in_its_place() {
        for (text, code) in [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            ("f(\"unsafe\")", "f(\"      \")"),
            (r#"f("a\"b", c)"#, r#"f("    ", c)"#),
            (r##"r#"a"b"# c"##, r##"r#"   "# c"##),
            ("br\"a\" b", "br\" \" b"),
            ("'\"' a", "'\"' a"),
            ("'\\'' \"b\"", "'\\'' \" \""),
            ("fn f<'a>(x: &'a str) // c", "fn f<'a>(x: &'a str)     "),
            ("xr\"a\"", "xr\" \""),
            ("\"ä\" b", "\" \" b"),
            ("\"a\nb\" c", "\" \n \" c"),
        ] {
            assert_eq!(code_of(text), code, "{text}");
        }
    }

    #[test]
    fn a_word_is_found_where_it_is_no_part_of_another() {
        let found = |text: &str, word: &str| lines_with(text, word).collect::<Vec<_>>();
        assert_eq!(found("a\nunsafe {\nunsafe_code\nnot_unsafe", "unsafe"), [2]);
        assert_eq!(found("todo!()\nmytodo!()", "todo!"), [1]);
        assert_eq!(found("crate::machine::x\ncrate::machines", "crate::machine"), [1]);
    }

    #[test]
    fn every_kind_of_file_of_the_workspace_is_read() {
        let sources = workspace().unwrap();
        for path in ["Cargo.toml", "README.md", "engine/src/lib.rs", "tests/tidy/src/source.rs"] {
            assert!(sources.iter().any(|source| source.path == path), "{path}");
        }
        assert!(sources.iter().all(|source| !source.path.starts_with("target/")));
    }
}
