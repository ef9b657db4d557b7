//! Texts of others, made fit for a line of a log or a terminal.
//!
//! Any program may write keys of rows, names of owners, values of attributes and sentences of services. A terminal
//! obeys control characters, a log takes a line break for the end of its line, and characters with another direction of
//! writing deceive a reader. A terminal or log therefore gets escapes, such as `\n`, `\u{1b}` and `\u{202e}`. All other
//! characters stay.
//!
//! `Display` of [`LeaseKey`](crate::ids::LeaseKey), [`ShardId`](crate::ids::ShardId), [`WorkerId`](crate::ids::WorkerId),
//! [`StreamId`](crate::stream_id::StreamId), [`Notice`](crate::notice::Notice) and [`Fatal`](crate::notice::Fatal) does this. What
//! is written to a table or a trace is the text itself.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// Whether a character could do more than be seen: a control character (C0, DELETE and C1), a separator of lines or
/// paragraphs, or a character for the direction of writing.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// The text with its hidden characters as escapes. Width and alignment of a format are kept to.
///
/// ```
/// use leasehold_engine::shown::Shown;
///
/// assert_eq!(Shown("a\nb\u{1b}[2J\u{202e}é").to_string(), "a\\nb\\u{1b}[2J\\u{202e}é");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown<'a>(pub &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&shown(self.0))
    }
}

/// The text as [`Shown`] shows it, without a copy if no character is hidden.
pub fn shown(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut escaped = Escaping(String::with_capacity(text.len() + 8));
    // Writing to a text cannot fail.
    let _ = escaped.write_str(text);
    Cow::Owned(escaped.0)
}

/// Passes on all written text, with hidden characters as escapes: no text written through this writer begins a line.
#[derive(Debug)]
pub struct Escaping<W>(pub W);

impl<W: Write> Write for Escaping<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| is_hidden(*c)) {
            self.0.write_str(&rest[..at])?;
            match c {
                '\n' => self.0.write_str("\\n")?,
                '\r' => self.0.write_str("\\r")?,
                '\t' => self.0.write_str("\\t")?,
                c => write!(self.0, "{}", c.escape_unicode())?,
            }
            rest = &rest[at + c.len_utf8()..];
        }
        self.0.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{LeaseKey, ShardId, WorkerId};
    use crate::notice::{Fatal, LossReason, Notice, TakeReason};
    use crate::position::Checkpoint;
    use crate::row::LeaseRow;
    use proptest::prelude::*;

    /// Text as an attacker would write it, and text that no person would write.
    fn hostile() -> impl Strategy<Value = String> {
        let bad = prop::sample::select(vec![
            "\n",
            "\r\n",
            "\u{1b}[2J",
            "\u{9b}31m",
            "\0",
            "\u{7f}",
            "\u{202e}",
            "\u{2066}",
            "\u{2028}",
            "\u{85}",
            "\t",
            "\u{61c}",
        ]);
        let piece = prop_oneof![bad.prop_map(str::to_owned), any::<String>(), "[a-z:-]{1,9}"];
        prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
    }

    #[test]
    fn ordinary_text_stays_as_it_is_whatever_its_script() {
        for text in ["", "shardId-000000000001", "größe", "名前", "עברית", "a\\nb", "👩‍👩‍👧", "e\u{301}"]
        {
            assert!(matches!(shown(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }

    #[test]
    fn hidden_characters_are_shown_and_widths_are_kept_to() {
        assert_eq!(
            Shown("\r\n\t\0\u{1b}\u{7f}\u{9b}\u{200f}\u{2029}\u{2069}").to_string(),
            "\\r\\n\\t\\u{0}\\u{1b}\\u{7f}\\u{9b}\\u{200f}\\u{2029}\\u{2069}"
        );
        assert_eq!(format!("{:>6}|{:4}|", LeaseKey::from("a\n"), WorkerId::from("w")), "   a\\n|w   |");
    }

    proptest! {
        #[test]
        fn names_and_notices_are_one_line_that_obeys_nobody(text in hostile(), other in hostile()) {
            let (key, owner) = (LeaseKey::from(text.as_str()), WorkerId::from(other.as_str()));
            let shard = ShardId::from(text.as_str());
            let lease = || key.clone();
            let row = Box::new(LeaseRow::new(key.clone(), Checkpoint::TrimHorizon));
            let notices = [
                Notice::Booted { worker: owner.clone(), hold: crate::time::Span::ZERO },
                Notice::Unreadable { key: lease(), detail: other.clone(), lasting: crate::time::Span::ZERO },
                Notice::Lost { lease: lease(), why: LossReason::Taken { by: Some(owner.clone()), row } },
                Notice::Took {
                    lease: lease(),
                    token: crate::ids::FencingToken(1),
                    why: TakeReason::Expired { owner: owner.clone(), idle: crate::time::Span::ZERO },
                },
                Notice::Trouble {
                    op: crate::ids::OpId { life: 1, n: 1 },
                    lease: None,
                    what: text.clone(),
                    how: other.clone(),
                    again_in: crate::time::Span::ZERO,
                },
                Notice::Blocked { lease: lease(), parents: vec![shard.clone()] },
                Notice::NotParents { lease: lease(), parents: vec![shard.clone()], listings: 3 },
                Notice::Fatal(Fatal::Denied { what: text.clone(), detail: other.clone() }),
                Notice::Stray { what: text.clone() },
            ];
            let fatal = Fatal::OtherStream { stream: text.clone(), table: other.clone(), lease: lease(), detail: text.clone() };
            let mut lines: Vec<String> = notices.iter().map(ToString::to_string).collect();
            lines.extend([key.to_string(), owner.to_string(), shard.to_string(), fatal.to_string()]);
            lines.extend([format!("{key:?}"), format!("{owner:?}"), format!("{shard:?}")]);
            for line in lines {
                prop_assert!(!line.chars().any(is_hidden), "{line:?}");
            }
            // What is written elsewhere is the text itself.
            prop_assert_eq!(key.as_str(), text.as_str());
            let spelled = serde_json::to_string(&key).unwrap();
            prop_assert_eq!(serde_json::from_str::<LeaseKey>(&spelled).unwrap(), key);
        }
    }
}
