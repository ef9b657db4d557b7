//! The common parts of all expression parsers: names and values, the cursor over tokens, paths; and the entry points.

use super::super::error::{ApiError, DynamoResult};
use super::super::value::normalize;
use super::condition_parser::condition;
use super::key_condition::KeyCondition;
use super::lexer::{Kind, Token, tokens};
use super::path::{Clash, Path, Projection, Segment};
use super::reserved::is_reserved;
use super::update_parser::update;
use super::{Condition, Update};
use crate::constraint::refuse_if;
use leasehold_engine::table::{AttributeName, AttributeValue, Item};
use std::collections::{BTreeMap, BTreeSet};

/// The longest expression text.
const MAX_TEXT: usize = 4096;
/// The deepest nesting of parentheses and functions; DynamoDB's 300 operators allow no more in practice.
const MAX_NESTING: usize = 100;

/// Parses a `ConditionExpression`.
pub fn parse_condition(text: &str, binder: &mut Binder) -> DynamoResult<Condition> {
    run("ConditionExpression", text, binder, condition)
}

/// Parses a `FilterExpression`.
pub fn parse_filter(text: &str, binder: &mut Binder) -> DynamoResult<Condition> {
    run("FilterExpression", text, binder, condition)
}

/// Parses a `KeyConditionExpression`.
pub fn parse_key_condition(text: &str, binder: &mut Binder) -> DynamoResult<KeyCondition> {
    KeyCondition::from_condition(run("KeyConditionExpression", text, binder, condition)?)
}

/// Parses an `UpdateExpression`.
pub fn parse_update(text: &str, binder: &mut Binder) -> DynamoResult<Update> {
    run("UpdateExpression", text, binder, update)
}

/// Parses a `ProjectionExpression`.
pub fn parse_projection(text: &str, binder: &mut Binder) -> DynamoResult<Projection> {
    run("ProjectionExpression", text, binder, projection)
}

fn run<T>(
    parameter: &str, text: &str, binder: &mut Binder, rule: fn(&mut Cursor<'_>) -> Result<T, String>,
) -> DynamoResult<T> {
    let parsed = if text.is_empty() {
        Err("The expression can not be empty;".to_owned())
    } else if text.len() > MAX_TEXT {
        Err(format!("Expression size has exceeded the maximum allowed size; expression size: {}", text.len()))
    } else {
        let mut cursor = Cursor { text, tokens: tokens(text), at: 0, nesting: 0, binder };
        rule(&mut cursor).and_then(|parsed| match cursor.peek().kind {
            Kind::End => Ok(parsed),
            _ => Err(cursor.syntax_error()),
        })
    };
    parsed.map_err(|message| ApiError::validation(format!("Invalid {parameter}: {message}")))
}

fn projection(cursor: &mut Cursor<'_>) -> Result<Projection, String> {
    let mut paths = vec![cursor.path()?];
    while cursor.accept(",") {
        paths.push(cursor.path()?);
    }
    check_clashes(&paths.iter().collect::<Vec<_>>())?;
    Ok(Projection { paths })
}

/// Refuses two paths if one path holds the other.
pub(super) fn check_clashes(paths: &[&Path]) -> Result<(), String> {
    for (index, path) in paths.iter().enumerate() {
        for earlier in &paths[..index] {
            let kind = match earlier.clash(path) {
                None => continue,
                Some(Clash::Overlap) => "overlap",
                Some(Clash::Conflict) => "conflict",
            };
            return Err(format!(
                "Two document paths {kind} with each other; must remove or rewrite one of these paths; \
                 path one: {earlier}, path two: {path}"
            ));
        }
    }
    Ok(())
}

/// The names and values of a request's expressions, with marks for the used ones.
#[derive(Clone, Debug, Default)]
pub struct Binder {
    names: BTreeMap<String, String>,
    values: Item,
    used: BTreeSet<String>,
}

impl Binder {
    /// Checks `ExpressionAttributeNames` and `ExpressionAttributeValues` by themselves.
    pub fn new(names: Option<BTreeMap<String, String>>, values: Option<Item>) -> DynamoResult<Self> {
        if names.as_ref().is_some_and(BTreeMap::is_empty) {
            return Err(ApiError::validation("ExpressionAttributeNames must not be empty"));
        }
        if values.as_ref().is_some_and(Item::is_empty) {
            return Err(ApiError::validation("ExpressionAttributeValues must not be empty"));
        }
        let mut binder = Self::unchecked(names.unwrap_or_default(), values.unwrap_or_default());
        if let Some(name) = binder.names.keys().find(|name| !is_placeholder(name, '#')) {
            return Err(ApiError::validation(format!(
                "ExpressionAttributeNames contains invalid key: Syntax error; key: \"{name}\""
            )));
        }
        for (name, value) in &mut binder.values {
            if !is_placeholder(name, ':') {
                return Err(ApiError::validation(format!(
                    "ExpressionAttributeValues contains invalid key: Syntax error; key: \"{name}\""
                )));
            }
            normalize(value).map_err(|error| {
                ApiError::validation(format!(
                    "ExpressionAttributeValues contains invalid value: {} for key {name}",
                    error.message
                ))
            })?;
        }
        Ok(binder)
    }

    /// Takes names (`#n`) and values (`:v`) that are known to be good.
    pub fn unchecked(names: BTreeMap<String, String>, values: Item) -> Self {
        Self { names, values, ..Self::default() }
    }

    /// Refuses names and values without a use in any expression.
    pub fn finish(&self) -> DynamoResult<()> {
        let names: Vec<&str> = self.names.keys().map(String::as_str).collect();
        let values: Vec<&str> = self.values.keys().map(AsRef::as_ref).collect();
        for (parameter, given) in [("ExpressionAttributeNames", names), ("ExpressionAttributeValues", values)]
        {
            let unused: Vec<&str> = given.into_iter().filter(|name| !self.used.contains(*name)).collect();
            if !unused.is_empty() {
                return Err(ApiError::validation(format!(
                    "Value provided in {parameter} unused in expressions: keys: {{{}}}",
                    unused.join(", ")
                )));
            }
        }
        Ok(())
    }

    fn name(&mut self, placeholder: &str) -> Result<String, String> {
        self.used.insert(placeholder.to_owned());
        self.names.get(placeholder).cloned().ok_or_else(|| {
            format!(
                "An expression attribute name used in the document path is not defined; \
                 attribute name: {placeholder}"
            )
        })
    }

    fn value(&mut self, placeholder: &str) -> Result<AttributeValue, String> {
        self.used.insert(placeholder.to_owned());
        self.values.get(placeholder).cloned().ok_or_else(|| {
            format!(
                "An expression attribute value used in expression is not defined; \
                 attribute value: {placeholder}"
            )
        })
    }
}

fn is_placeholder(text: &str, sign: char) -> bool {
    text.strip_prefix(sign).is_some_and(|rest| {
        !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

/// A position in the tokens of one expression.
pub(super) struct Cursor<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    at: usize,
    nesting: usize,
    binder: &'a mut Binder,
}

impl<'a> Cursor<'a> {
    /// The token ahead.
    pub(super) fn peek(&self) -> Token {
        self.look(0)
    }

    fn look(&self, ahead: usize) -> Token {
        let end = Token { kind: Kind::End, start: self.text.len(), end: self.text.len() };
        self.tokens.get(self.at + ahead).copied().unwrap_or(end)
    }

    /// The text of a token.
    pub(super) fn slice(&self, token: Token) -> &'a str {
        &self.text[token.start..token.end]
    }

    /// Goes past the token ahead.
    pub(super) fn advance(&mut self) -> Token {
        let token = self.peek();
        if token.kind != Kind::End {
            self.at += 1;
        }
        token
    }

    /// Goes past the token ahead if the token is this symbol.
    pub(super) fn accept(&mut self, symbol: &str) -> bool {
        let found = self.peek().kind == Kind::Symbol && self.slice(self.peek()) == symbol;
        self.at += usize::from(found);
        found
    }

    /// Goes past a symbol or fails.
    pub(super) fn expect(&mut self, symbol: &str) -> Result<(), String> {
        if self.accept(symbol) { Ok(()) } else { Err(self.syntax_error()) }
    }

    /// Goes past a keyword, in any case, if it is the token ahead.
    pub(super) fn accept_keyword(&mut self, keyword: &str) -> bool {
        let found = self.peek().kind == Kind::Word && self.slice(self.peek()).eq_ignore_ascii_case(keyword);
        self.at += usize::from(found);
        found
    }

    /// Whether a function call is ahead.
    pub(super) fn at_function(&self) -> bool {
        self.peek().kind == Kind::Word && self.look(1).kind == Kind::Symbol && self.slice(self.look(1)) == "("
    }

    /// Runs a nested rule, refusing absurd depth before the stack does.
    pub(super) fn nested<T>(
        &mut self, rule: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        if self.nesting >= MAX_NESTING {
            return Err("The expression contains too many nested operators or functions;".to_owned());
        }
        self.nesting += 1;
        let result = rule(self);
        self.nesting -= 1;
        result
    }

    /// DynamoDB's message about a misplaced token ahead.
    pub(super) fn syntax_error(&self) -> String {
        let token = self.peek();
        let shown = if token.kind == Kind::End { "<EOF>" } else { self.slice(token) };
        let from = self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).map_or(token.start, |t| t.start);
        let to = self.look(1).end.max(token.end);
        format!("Syntax error; token: \"{shown}\", near: \"{}\"", &self.text[from..to])
    }

    /// A given value.
    pub(super) fn value(&mut self) -> Result<AttributeValue, String> {
        let token = self.peek();
        refuse_if(token.kind != Kind::Value, || self.syntax_error())?;
        self.advance();
        let name = self.slice(token);
        self.binder.value(name)
    }

    /// A document path.
    pub(super) fn path(&mut self) -> Result<Path, String> {
        let head = self.path_name()?;
        let mut rest = Vec::new();
        loop {
            if self.accept(".") {
                rest.push(Segment::Key(self.path_name()?));
            } else if self.accept("[") {
                let token = self.peek();
                let index = match (token.kind, self.slice(token).parse::<usize>()) {
                    (Kind::Number, Ok(index)) => index,
                    (Kind::Number, Err(_)) => {
                        return Err(format!(
                            "List index is not within the allowable range; index: [{}]",
                            self.slice(token)
                        ));
                    }
                    _ => return Err(self.syntax_error()),
                };
                self.advance();
                self.expect("]")?;
                rest.push(Segment::Index(index));
            } else {
                return Ok(Path { head: AttributeName::Owned(head), rest });
            }
        }
    }

    fn path_name(&mut self) -> Result<String, String> {
        let token = self.peek();
        let text = self.slice(token);
        match token.kind {
            Kind::Word if is_operator(text) => Err(self.syntax_error()),
            Kind::Word if is_reserved(text) => {
                Err(format!("Attribute name is a reserved keyword; reserved keyword: {text}"))
            }
            Kind::Word => {
                self.advance();
                Ok(text.to_owned())
            }
            Kind::Name => {
                self.advance();
                self.binder.name(text)
            }
            _ => Err(self.syntax_error()),
        }
    }
}

/// Whether a word is an operator, whatever its case.
pub(super) fn is_operator(word: &str) -> bool {
    ["AND", "OR", "NOT", "IN", "BETWEEN"].iter().any(|operator| word.eq_ignore_ascii_case(operator))
}

/// The message about a wrong number of operands.
pub(super) fn wrong_count(function: &str, count: usize) -> String {
    format!(
        "Incorrect number of operands for operator or function; \
         operator or function: {function}, number of operands: {count}"
    )
}

/// The message about a value in the place of a path.
pub(super) fn needs_path(function: &str) -> String {
    format!("Operator or function requires a document path; operator or function: {function}")
}

/// An operand of a type that the operator does not take.
pub(super) fn wrong_operand(operator: &str, type_name: &str) -> String {
    format!(
        "Incorrect operand type for operator or function; operator: {operator}, operand type: {type_name}"
    )
}

/// An operand of a type that the function does not take.
pub(super) fn wrong_type(function: &str, type_name: &str) -> String {
    format!(
        "Incorrect operand type for operator or function; \
         operator or function: {function}, operand type: {type_name}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn binder() -> Binder {
        let names = [("#n".to_owned(), "name".to_owned())].into();
        Binder::new(Some(names), Some([(":v".into(), AttributeValue::n("1"))].into())).unwrap()
    }

    #[test]
    fn projections_resolve_names_and_refuse_overlaps() {
        let parsed = parse_projection("#n, a.b[0].#n", &mut binder()).unwrap();
        assert_eq!(parsed.paths[0], Path::attribute("name"));
        assert_eq!(parsed.paths[1].to_string(), "[a, b, [0], name]");
        for (text, part) in [
            (
                "a, a.b",
                "overlap with each other; must remove or rewrite one of these paths; path one: [a], path two: [a, b]",
            ),
            ("a[0], a.b", "conflict"),
            ("name", "reserved keyword; reserved keyword: name"),
            ("#x", "is not defined; attribute name: #x"),
            ("a,", "Syntax error; token: \"<EOF>\", near: \",\""),
            ("a b", "Syntax error; token: \"b\", near: \"a b\""),
            ("a[x]", "Syntax error"),
            ("a[99999999999999999999999]", "List index"),
            ("1a", "Syntax error"),
            ("", "can not be empty"),
        ] {
            let error = parse_projection(text, &mut binder()).unwrap_err();
            assert!(error.message.starts_with("Invalid ProjectionExpression: "), "{error}");
            assert!(error.message.contains(part), "{text}: {error}");
        }
        assert!(parse_projection(&"a".repeat(5000), &mut binder()).unwrap_err().message.contains("size"));
    }

    #[test]
    fn given_names_and_values_must_be_used_and_well_named() {
        let error = binder().finish().unwrap_err();
        assert!(
            error.message.contains("ExpressionAttributeNames unused in expressions: keys: {#n}"),
            "{error}"
        );
        let mut used = binder();
        parse_condition("#n = :v", &mut used).unwrap();
        used.finish().unwrap();
        assert!(Binder::new(Some([("n".to_owned(), "x".to_owned())].into()), None).is_err());
        assert!(Binder::new(None, Some([("#v".into(), AttributeValue::Null)].into())).is_err());
        assert!(Binder::new(None, Some([(":v".into(), AttributeValue::n("x"))].into())).is_err());
        assert!(Binder::new(Some(BTreeMap::new()), None).is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(
            text in prop_oneof![".{0,40}", "[ab#n:v()\\[\\].,=<>+\\-0 ANDORTIESZ_]{0,60}"]
        ) {
            let _ = parse_condition(&text, &mut binder());
            let _ = parse_key_condition(&text, &mut binder());
            let _ = parse_update(&text, &mut binder());
            let _ = parse_projection(&text, &mut binder());
        }

        #[test]
        fn depth_is_refused_before_the_stack_is(depth in 0_usize..2000) {
            for text in ["(".repeat(depth), "NOT ".repeat(depth / 2), "size(".repeat(depth / 3)] {
                let (condition, update) = (format!("{text}a"), format!("SET a = {text}"));
                prop_assert!(parse_condition(&condition, &mut binder()).is_err());
                prop_assert!(parse_update(&update, &mut binder()).is_err());
            }
        }
    }
}
