//! Expression text to tokens.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An attribute or function name, or a keyword.
    Word,
    /// `#name`
    Name,
    /// `:value`
    Value,
    /// Digits.
    Number,
    /// `(`, `)`, `[`, `]`, `.`, `,`, `+`, `-`, or a comparator.
    Symbol,
    /// A character foreign to all expressions.
    Stray,
    /// The end of the text.
    End,
}

/// A token and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// What it is.
    pub kind: Kind,
    /// Its first byte.
    pub start: usize,
    /// The byte after the token's last byte.
    pub end: usize,
}

/// All tokens of a text, with [`Kind::End`] at the end. Never fails: a foreign character becomes [`Kind::Stray`].
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&first) = bytes.get(at) {
        let run = |from: usize, belongs: fn(u8) -> bool| {
            from + bytes.iter().skip(from).take_while(|byte| belongs(**byte)).count()
        };
        let (kind, end) = match first {
            b' ' | b'\t' | b'\r' | b'\n' => {
                at += 1;
                continue;
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => (Kind::Word, run(at, is_word)),
            b'#' | b':' => {
                let end = run(at + 1, is_word);
                let kind = if first == b'#' { Kind::Name } else { Kind::Value };
                (if end == at + 1 { Kind::Stray } else { kind }, end)
            }
            b'0'..=b'9' => (Kind::Number, run(at, |byte| byte.is_ascii_digit())),
            b'<' if matches!(bytes.get(at + 1), Some(b'=' | b'>')) => (Kind::Symbol, at + 2),
            b'>' if bytes.get(at + 1) == Some(&b'=') => (Kind::Symbol, at + 2),
            b'(' | b')' | b'[' | b']' | b'.' | b',' | b'+' | b'-' | b'=' | b'<' | b'>' => {
                (Kind::Symbol, at + 1)
            }
            // A whole character, to keep slices on character borders.
            _ => (Kind::Stray, at + text[at..].chars().next().map_or(1, char::len_utf8)),
        };
        tokens.push(Token { kind, start: at, end });
        at = end;
    }
    tokens.push(Token { kind: Kind::End, start: at, end: at });
    tokens
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fall_into_tokens() {
        let text = "#a.b[0]<>:v AND x>=2é";
        let parts: Vec<_> =
            tokens(text).iter().map(|token| (token.kind, &text[token.start..token.end])).collect();
        let expected = [
            (Kind::Name, "#a"),
            (Kind::Symbol, "."),
            (Kind::Word, "b"),
            (Kind::Symbol, "["),
            (Kind::Number, "0"),
            (Kind::Symbol, "]"),
            (Kind::Symbol, "<>"),
            (Kind::Value, ":v"),
            (Kind::Word, "AND"),
            (Kind::Word, "x"),
            (Kind::Symbol, ">="),
            (Kind::Number, "2"),
            (Kind::Stray, "é"),
            (Kind::End, ""),
        ];
        assert_eq!(parts, expected);
    }
}
