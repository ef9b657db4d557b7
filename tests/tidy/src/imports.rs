//! The paths that a file imports, with every group spelled out: `use a::{b, c::d};` imports `a::b` and `a::c::d`.

use crate::source::Source;

/// The imported paths of a file, each with its line, from 1.
pub(crate) fn imports(source: &Source) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut offset = 0;
    for line in source.code.split_inclusive('\n') {
        let begins = line.trim_start().trim_start_matches("pub ").trim_start_matches("pub(crate) ");
        if let Some(rest) = begins.strip_prefix("use ") {
            let begin = offset + line.len() - rest.len();
            let length = source.code[begin..].find(';').unwrap_or(0);
            let first = source.code[..begin].matches('\n').count() + 1;
            Tree { text: &source.code[begin..begin + length], line: first }.spell("", &mut found);
        }
        offset += line.len();
    }
    found
}

/// The paths of a `use` without its line, such as `a::{b, c}`.
pub fn spelled(paths: &str) -> impl Iterator<Item = String> {
    let mut found = Vec::new();
    Tree { text: paths, line: 1 }.spell("", &mut found);
    found.into_iter().map(|(_, path)| path)
}

/// What stands between `use` and `;`, or a part of a group.
struct Tree<'a> {
    text: &'a str,
    line: usize,
}

impl Tree<'_> {
    fn spell(&self, before: &str, found: &mut Vec<(usize, String)>) {
        let Some(open) = self.text.find('{') else {
            let blank = self.text.len() - self.text.trim_start().len();
            let line = self.line + self.text[..blank].matches('\n').count();
            let path = self.text.split(" as ").next().unwrap_or_default().trim();
            if !path.is_empty() {
                found.push((line, format!("{before}{path}")));
            }
            return;
        };
        let before = format!("{before}{}", self.text[..open].trim());
        let close = self.text.rfind('}').unwrap_or(self.text.len());
        let (mut depth, mut from) = (0_usize, open + 1);
        for (at, c) in self.text.char_indices().filter(|(at, _)| *at > open && *at <= close) {
            match c {
                ',' if depth == 0 => from = self.part(from, at, &before, found),
                '{' => depth += 1,
                '}' if depth == 0 => from = self.part(from, at, &before, found),
                '}' => depth -= 1,
                _ => {}
            }
        }
    }

    /// Spells one member of a group. Gives where the next member begins.
    fn part(&self, from: usize, to: usize, before: &str, found: &mut Vec<(usize, String)>) -> usize {
        let line = self.line + self.text[..from].matches('\n').count();
        Tree { text: &self.text[from..to], line }.spell(before, found);
        to + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_spelled_out_with_the_line_of_each_member() {
        let text = "use a::{b, c::{d, e as f},\n    g};\npub use h;\nfn x() {}\n";
        let found = imports(&Source::new("a.rs", text));
        let found: Vec<(usize, &str)> = found.iter().map(|(line, path)| (*line, path.as_str())).collect();
        assert_eq!(found, [(1, "a::b"), (1, "a::c::d"), (1, "a::c::e"), (2, "a::g"), (3, "h")]);
    }
}
