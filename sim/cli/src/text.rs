//! Safe output of names from outside: printed lines hold no control character but their own ends.
//!
//! A row's key, an owner's name or a sentence of a service may hold escape codes and line breaks. A [`Text`] shows
//! control characters as escapes, and only the command ends a line.

use clap::error::ContextValue;
use leasehold_engine::shown::{Escaping, is_hidden, shown};
use std::error::Error;
use std::fmt::{self, Write as _};
use std::ops::Deref;

/// Lines, one after another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Text(String);

impl Text {
    /// Adds a whole line, or the rest of a begun line.
    pub(super) fn line(&mut self, line: fmt::Arguments<'_>) {
        self.part(line);
        self.0.push('\n');
    }

    /// Adds to the begun line.
    pub(super) fn part(&mut self, part: fmt::Arguments<'_>) {
        // Writing to a text cannot fail.
        let _ = Escaping(&mut self.0).write_fmt(part);
    }

    /// Adds finished lines.
    pub(super) fn add(&mut self, lines: &Text) {
        self.0.push_str(&lines.0);
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// Adds a line to a [`Text`], as `writeln!` does.
macro_rules! put_line {
    ($text:expr, $($part:tt)+) => {
        $text.line(format_args!($($part)+))
    };
}

/// Adds to the present line of a [`Text`], as `write!` does.
macro_rules! put {
    ($text:expr, $($part:tt)+) => {
        $text.part(format_args!($($part)+))
    };
}

pub(super) use {put, put_line};

/// A count with a noun: the noun gets an `s`, except after the count 1.
pub(super) fn counted(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// Shows control characters other than line breaks as escapes.
pub(super) fn lines(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for (n, line) in text.split('\n').enumerate() {
        if n > 0 {
            shown.push('\n');
        }
        let _ = Escaping(&mut shown).write_str(line);
    }
    shown
}

/// Shows control characters in JSON texts as escapes. JSON itself allows C1 characters and marks of writing direction
/// without escapes.
pub(super) fn json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        // A document has line breaks of its own between its texts.
        match c {
            '\n' => escaped.push(c),
            // All hidden characters are of the basic plane.
            c if is_hidden(c) => escaped.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => escaped.push(c),
        }
    }
    escaped
}

/// The message of clap about a command line that clap refuses. The message repeats the operator's arguments, and so do the errors of our
/// parsers. Hidden characters of the arguments are shown as escapes, line breaks among them.
pub(super) fn usage(error: &clap::Error) -> String {
    let mut said = error.render().ansi().to_string();
    let mut show = |text: &str| {
        if text.chars().any(is_hidden) {
            said = said.replace(text, &shown(text));
        }
    };
    for (_, value) in error.context() {
        match value {
            ContextValue::String(text) => show(text),
            ContextValue::Strings(texts) => texts.iter().for_each(|text| show(text)),
            // Numbers, and clap's own names of the command's parts.
            _ => {}
        }
    }
    if let Some(source) = error.source() {
        show(&source.to_string());
    }
    lines(said.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_where_the_command_ends_it() {
        let mut text = Text::default();
        put!(text, "{} ", "a\nforged: line\n");
        put_line!(text, "{:>3}", "\u{1b}[2J");
        put!(text, "end");
        assert_eq!(&*text, "a\\nforged: line\\n \\u{1b}[2J\nend");
        assert_eq!(lines("a\nb\u{9b}\r\n"), "a\nb\\u{9b}\\r\n");
    }

    #[test]
    fn json_says_the_same_without_hidden_characters() {
        let told = "a\n\u{1b}[2J\u{9b}\u{202e}\u{85}é\u{7f}";
        let shown = json(&serde_json::to_string_pretty(&vec![told]).expect("JSON"));
        assert!(shown.chars().all(|c| c == '\n' || !is_hidden(c)), "{shown:?}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&shown).expect("JSON"), [told]);
    }

    /// A parser whose error repeats its input.
    fn parrot(text: &str) -> Result<String, String> {
        Err(format!("expected a word, found {text}"))
    }

    #[test]
    fn a_usage_error_shows_arguments_as_escapes_wherever_they_stand() {
        let evil = "\u{1b}[31mRED\u{1b}[0m\nerror: forged\r\u{7}\u{9b}31m\u{202e}OVR\u{2028}X\u{7f}";
        let command = clap::Command::new("leasehold")
            .styles(clap::builder::Styles::plain())
            .arg(clap::Arg::new("word").long("word").value_parser(parrot))
            .arg(clap::Arg::new("kind").long("kind").value_parser(["one", "two"]))
            .subcommand(clap::Command::new("sim"));
        for args in [
            vec!["--word".to_owned(), evil.to_owned()],
            vec![format!("--word={evil}")],
            vec!["--kind".to_owned(), evil.to_owned()],
            vec![format!("--{evil}")],
            vec![format!("--kind={evil}")],
            vec![evil.to_owned()],
        ] {
            let args = std::iter::once("leasehold".to_owned()).chain(args.clone());
            let error = command.clone().try_get_matches_from(args).expect_err("wrong usage");
            let said = usage(&error);
            assert!(said.chars().all(|c| c == '\n' || !is_hidden(c)), "{said:?}");
            assert!(said.lines().skip(1).all(|line| !line.starts_with("error")), "{said:?}");
            assert!(said.contains("RED\\u{1b}[0m\\nerror: forged"), "{said}");
        }
    }
}
