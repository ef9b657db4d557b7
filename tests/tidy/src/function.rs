//! The begins and ends of functions, in code formatted by `rustfmt`: a function ends at the first line with a closing
//! brace and the indentation of its `fn`.

use crate::source::Source;

/// A function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The line of its `fn`, from 1.
    pub line: usize,
    /// The number of lines, from the function's `fn` to its last brace.
    pub lines: usize,
}

/// The functions of a file, in the order of their begins. A function within another function is in the list, too.
pub fn functions(source: &Source) -> Vec<Function> {
    let lines: Vec<&str> = source.code.lines().collect();
    let mut functions = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = name(line) else { continue };
        let indent = line.len() - line.trim_start().len();
        if let Some(end) = end(&lines, at, indent) {
            functions.push(Function { name: name.to_owned(), line: at + 1, lines: end - at + 1 });
        }
    }
    functions
}

/// The name of the function begun on a line.
fn name(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let is_qualifier = |word: &str| {
        matches!(word, "pub" | "const" | "async" | "unsafe" | "extern" | "default" | "\"")
            || word.starts_with("pub(")
            || word.starts_with('"')
            || matches!(word, "super)" | "crate)")
    };
    if !before.split_whitespace().all(is_qualifier) {
        return None;
    }
    let end = after.find(|c: char| !(c.is_alphanumeric() || c == '_'))?;
    (end > 0).then(|| &after[..end])
}

/// The last line of the function begun on line `at`; absent: the function has no body.
fn end(lines: &[&str], at: usize, indent: usize) -> Option<usize> {
    let mut opened = false;
    for (n, line) in lines.iter().enumerate().skip(at) {
        let text = line.trim_end();
        let depth = text.len() - text.trim_start().len();
        if opened || n > at {
            let closes = depth == indent && text.trim_start().starts_with('}');
            if closes {
                return Some(n);
            }
        }
        if !opened {
            if text.ends_with('}') {
                return Some(n);
            }
            if text.ends_with(';') {
                return None;
            }
            opened = text.ends_with('{');
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, usize, usize)> {
        let source = Source::new("a.rs", text);
        let all = functions(&source).into_iter();
        all.map(|function| (function.name, function.line, function.lines)).collect()
    }

    #[test]
    fn a_function_ends_with_the_brace_below_its_fn() {
        let text = "\
impl A {
    /// fn in_a_comment() {
    pub(crate) async fn one(
        &self,
    ) -> u32 {
        if true {
            \"}\"
        }
    }

    fn two() {}
}

const fn three() -> u32 {
    fn inner() {
        a();
    }
    1
}
";
        assert_eq!(
            found(text),
            [
                ("one".to_owned(), 3, 7),
                ("two".to_owned(), 11, 1),
                ("three".to_owned(), 14, 6),
                ("inner".to_owned(), 15, 3),
            ]
        );
    }

    #[test]
    fn a_signature_without_a_body_is_no_function() {
        let text = "\
trait A {
    fn one(&self) -> u32;
    fn two(
        &self,
        each: &mut dyn FnMut(u32),
    );
    fn three(&self, each: fn(u32) -> bool) -> bool
    where
        Self: Sized,
    {
        each(1)
    }
}
type B = fn(u32);
";
        assert_eq!(found(text), [("three".to_owned(), 7, 6)]);
    }
}
