//! The grammar of conditions: `OR`, `AND`, `NOT`, comparisons and functions, in rising order of binding.

use super::super::value::order;
use super::lexer::Kind;
use super::parser::{Cursor, is_operator, needs_path, wrong_count, wrong_operand, wrong_type};
use super::{Comparator, Condition, Operand};
use crate::constraint::refuse_if;
use leasehold_engine::table::AttributeValue;
use std::cmp::Ordering;

const MAX_IN: usize = 100;
const TYPE_NAMES: [&str; 10] = ["B", "NULL", "SS", "BOOL", "L", "BS", "N", "NS", "S", "M"];

/// What has been read: a parenthesis may turn out to hold an operand or a condition.
enum Node<'a> {
    Operand(Operand),
    Condition(Condition),
    /// A function with the answer yes or no: such a function cannot be an operand.
    Function(Condition, &'a str),
}

/// A node, and whether it stands in parentheses as a whole.
struct Read<'a> {
    node: Node<'a>,
    grouped: bool,
}

impl Read<'_> {
    fn condition(node: Condition) -> Self {
        Self { node: Node::Condition(node), grouped: false }
    }
}

/// A whole condition.
pub(super) fn condition(cursor: &mut Cursor<'_>) -> Result<Condition, String> {
    let read = disjunction(cursor)?;
    as_condition(cursor, read)
}

fn as_condition(cursor: &Cursor<'_>, read: Read<'_>) -> Result<Condition, String> {
    match read.node {
        Node::Condition(condition) | Node::Function(condition, _) => Ok(condition),
        Node::Operand(Operand::Size(_)) => Err(misused("size")),
        Node::Operand(_) => Err(cursor.syntax_error()),
    }
}

fn as_operand(cursor: &Cursor<'_>, read: Read<'_>) -> Result<Operand, String> {
    match read.node {
        Node::Operand(operand) => Ok(operand),
        Node::Function(_, name) => Err(misused(name)),
        Node::Condition(_) => Err(cursor.syntax_error()),
    }
}

fn misused(function: &str) -> String {
    format!("The function is not allowed to be used this way in an expression; function: {function}")
}

fn disjunction<'a>(cursor: &mut Cursor<'a>) -> Result<Read<'a>, String> {
    joined(cursor, "OR", conjunction, Condition::Or)
}

fn conjunction<'a>(cursor: &mut Cursor<'a>) -> Result<Read<'a>, String> {
    joined(cursor, "AND", negation, Condition::And)
}

fn joined<'a>(
    cursor: &mut Cursor<'a>, keyword: &str, part: fn(&mut Cursor<'a>) -> Result<Read<'a>, String>,
    join: fn(Vec<Condition>) -> Condition,
) -> Result<Read<'a>, String> {
    let first = part(cursor)?;
    if !cursor.accept_keyword(keyword) {
        return Ok(first);
    }
    let mut parts = vec![as_condition(cursor, first)?];
    loop {
        let next = part(cursor)?;
        parts.push(as_condition(cursor, next)?);
        if !cursor.accept_keyword(keyword) {
            return Ok(Read::condition(join(parts)));
        }
    }
}

fn negation<'a>(cursor: &mut Cursor<'a>) -> Result<Read<'a>, String> {
    if cursor.accept_keyword("NOT") {
        let read = cursor.nested(negation)?;
        return Ok(Read::condition(Condition::Not(Box::new(as_condition(cursor, read)?))));
    }
    comparison(cursor)
}

fn comparison<'a>(cursor: &mut Cursor<'a>) -> Result<Read<'a>, String> {
    let left = primary(cursor)?;
    if let Some((symbol, comparator)) = comparator(cursor) {
        cursor.advance();
        let (left, right) = (as_operand(cursor, left)?, operand(cursor)?);
        check_distinct(symbol, &left, &right)?;
        if !matches!(comparator, Comparator::Eq | Comparator::Ne) {
            check_ordered(symbol, &left)?;
            check_ordered(symbol, &right)?;
        }
        return Ok(Read::condition(Condition::Compare(comparator, left, right)));
    }
    if cursor.accept_keyword("BETWEEN") {
        let (value, low) = (as_operand(cursor, left)?, operand(cursor)?);
        refuse_if(!cursor.accept_keyword("AND"), || cursor.syntax_error())?;
        let high = operand(cursor)?;
        check_bounds(&low, &high)?;
        return Ok(Read::condition(Condition::Between(value, low, high)));
    }
    if cursor.accept_keyword("IN") {
        let value = as_operand(cursor, left)?;
        cursor.expect("(")?;
        let list = operands(cursor)?;
        if list.len() > MAX_IN {
            let count = list.len();
            return Err(format!(
                "The IN operator is provided with too many operands; number of operands: {count}"
            ));
        }
        return Ok(Read::condition(Condition::In(value, list)));
    }
    Ok(left)
}

fn comparator(cursor: &Cursor<'_>) -> Option<(&'static str, Comparator)> {
    let token = cursor.peek();
    if token.kind != Kind::Symbol {
        return None;
    }
    Comparator::SYMBOLS.into_iter().find(|(symbol, _)| *symbol == cursor.slice(token))
}

fn primary<'a>(cursor: &mut Cursor<'a>) -> Result<Read<'a>, String> {
    if cursor.accept("(") {
        let inner = cursor.nested(disjunction)?;
        cursor.expect(")")?;
        refuse_if(inner.grouped, || "The expression has redundant parentheses;".to_owned())?;
        return Ok(Read { grouped: true, ..inner });
    }
    let node = match cursor.peek().kind {
        Kind::Value => Node::Operand(Operand::Value(cursor.value()?)),
        _ if cursor.at_function() => cursor.nested(function)?,
        _ => Node::Operand(Operand::Path(cursor.path()?)),
    };
    Ok(Read { node, grouped: false })
}

fn operand(cursor: &mut Cursor<'_>) -> Result<Operand, String> {
    let read = primary(cursor)?;
    as_operand(cursor, read)
}

fn operands(cursor: &mut Cursor<'_>) -> Result<Vec<Operand>, String> {
    let mut list = vec![cursor.nested(operand)?];
    while cursor.accept(",") {
        list.push(cursor.nested(operand)?);
    }
    cursor.expect(")")?;
    Ok(list)
}

fn function<'a>(cursor: &mut Cursor<'a>) -> Result<Node<'a>, String> {
    let token = cursor.peek();
    let name = cursor.slice(token);
    let wanted = match name {
        "attribute_exists" | "attribute_not_exists" | "size" => 1,
        "attribute_type" | "begins_with" | "contains" => 2,
        _ if is_operator(name) => return Err(cursor.syntax_error()),
        _ => return Err(format!("Invalid function name; function: {name}")),
    };
    cursor.advance();
    cursor.expect("(")?;
    let mut list = operands(cursor)?.into_iter();
    let count = list.len();
    let condition = match (list.next(), list.next()) {
        (Some(only), None) if wanted == 1 => match (name, only) {
            ("size", operand) => {
                if let Operand::Value(value) = &operand
                    && matches!(value, AttributeValue::N(_) | AttributeValue::Bool(_) | AttributeValue::Null)
                {
                    return Err(wrong_type(name, value.type_name()));
                }
                return Ok(Node::Operand(Operand::Size(Box::new(operand))));
            }
            ("attribute_exists", Operand::Path(path)) => Condition::Exists(path),
            (_, Operand::Path(path)) => Condition::NotExists(path),
            _ => return Err(needs_path(name)),
        },
        (Some(first), Some(second)) if wanted == 2 && count == 2 => two_operands(name, first, second)?,
        _ => return Err(wrong_count(name, count)),
    };
    Ok(Node::Function(condition, name))
}

fn two_operands(name: &str, first: Operand, second: Operand) -> Result<Condition, String> {
    check_distinct(name, &first, &second)?;
    match (name, second) {
        ("attribute_type", Operand::Value(AttributeValue::S(kind))) if TYPE_NAMES.contains(&&*kind) => {
            Ok(Condition::HasType(first, kind.to_string()))
        }
        ("attribute_type", Operand::Value(AttributeValue::S(kind))) => Err(format!(
            "Invalid attribute type name found; type: {kind}, valid types: {{{}}}",
            TYPE_NAMES.join(",")
        )),
        ("attribute_type", Operand::Value(other)) => Err(wrong_type(name, other.type_name())),
        ("attribute_type", _) => Err(wrong_type(name, "{NS,SS,L,BS,N,M,B,BOOL,NULL,S}")),
        ("begins_with", second) => {
            for operand in [&first, &second] {
                match operand {
                    Operand::Value(AttributeValue::S(_) | AttributeValue::B(_)) | Operand::Path(_) => {}
                    Operand::Value(other) => return Err(wrong_type(name, other.type_name())),
                    Operand::Size(_) => return Err(wrong_type(name, "N")),
                }
            }
            Ok(Condition::BeginsWith(first, second))
        }
        (_, second) => Ok(Condition::Contains(first, second)),
    }
}

fn check_distinct(operator: &str, left: &Operand, right: &Operand) -> Result<(), String> {
    match (left, right) {
        (Operand::Path(left), Operand::Path(right)) if left == right => Err(format!(
            "The first operand must be distinct from the remaining operands for this operator or function; \
             operator: {operator}, first operand: {left}"
        )),
        _ => Ok(()),
    }
}

fn check_ordered(operator: &str, operand: &Operand) -> Result<(), String> {
    match operand {
        Operand::Value(value) if order(value, value).is_none() => {
            Err(wrong_operand(operator, value.type_name()))
        }
        _ => Ok(()),
    }
}

fn check_bounds(low: &Operand, high: &Operand) -> Result<(), String> {
    check_ordered("BETWEEN", low)?;
    check_ordered("BETWEEN", high)?;
    let (Operand::Value(low), Operand::Value(high)) = (low, high) else {
        return Ok(());
    };
    let complaint = match order(low, high) {
        None => "requires same data type for lower and upper bounds",
        Some(Ordering::Greater) => "requires upper bound to be greater than or equal to lower bound",
        Some(_) => return Ok(()),
    };
    Err(format!(
        "The BETWEEN operator {complaint}; lower bound operand: AttributeValue: {{{}}}, \
         upper bound operand: AttributeValue: {{{}}}",
        show(low),
        show(high)
    ))
}

fn show(value: &AttributeValue) -> String {
    match value {
        AttributeValue::S(text) | AttributeValue::N(text) => format!("{}:{text}", value.type_name()),
        other => format!("{}:{} bytes", other.type_name(), super::super::value::value_size(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Binder, parse_condition};
    use super::*;

    fn binder() -> Binder {
        Binder::unchecked(
            [("#n".to_owned(), "name".to_owned())].into(),
            [
                (":n".into(), AttributeValue::n("5")),
                (":m".into(), AttributeValue::n("3")),
                (":s".into(), AttributeValue::s("text")),
                (":b".into(), AttributeValue::Bool(true)),
            ]
            .into(),
        )
    }

    fn parse(text: &str) -> Condition {
        parse_condition(text, &mut binder()).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn and_binds_tighter_than_or_and_not_tighter_than_both() {
        let (a, b, c) = (Condition::exists("a1"), Condition::exists("b1"), Condition::exists("c1"));
        let text = "attribute_exists(a1) OR attribute_exists(b1) and NOT attribute_exists(c1)";
        let expected = Condition::Or(vec![a, Condition::And(vec![b, Condition::Not(Box::new(c))])]);
        assert_eq!(parse(text), expected);
    }

    #[test]
    fn parentheses_hold_conditions_or_operands() {
        assert_eq!(parse("(a1) = (:n)"), parse("a1 = :n"));
        assert_eq!(parse("(a1 = :n)"), parse("a1 = :n"));
        assert_eq!(parse("(size(a1)) > :n"), parse("size(a1) > :n"));
        assert_eq!(parse("a1 BETWEEN :m AND :n AND b1 = :s"), parse("(a1 BETWEEN :m AND :n) AND (b1 = :s)"));
    }

    #[test]
    fn a_refused_batch_is_refused_in_dynamodbs_words() {
        for (text, part) in [
            ("a1 =", "Syntax error; token: \"<EOF>\", near: \"=\""),
            ("= :n", "Syntax error; token: \"=\""),
            ("a1", "Syntax error"),
            ("a1 = :n AND", "Syntax error"),
            ("a1 = :n b1", "Syntax error; token: \"b1\", near: \":n b1\""),
            ("(a1 = :n", "Syntax error"),
            ("((a1 = :n))", "redundant parentheses"),
            ("((a1)) = :n", "redundant parentheses"),
            ("a1 = b1 = :n", "Syntax error"),
            ("size(a1)", "not allowed to be used this way in an expression; function: size"),
            (
                "attribute_exists(a1) = :b",
                "not allowed to be used this way in an expression; function: attribute_exists",
            ),
            ("contains(a1, begins_with(b1, :s))", "function: begins_with"),
            ("exists(a1)", "Invalid function name; function: exists"),
            ("ATTRIBUTE_EXISTS(a1)", "Invalid function name"),
            ("attribute_exists(:n)", "requires a document path"),
            ("attribute_exists(a1, b1)", "number of operands: 2"),
            ("begins_with(a1, :n)", "operator or function: begins_with, operand type: N"),
            ("size(:n) > :n", "operator or function: size, operand type: N"),
            ("attribute_type(a1, :s)", "Invalid attribute type name found; type: text"),
            ("attribute_type(a1, :n)", "operand type: N"),
            ("a1 = a1", "must be distinct"),
            ("a1 < :b", "operator: <, operand type: BOOL"),
            ("a1 BETWEEN :n AND :m", "upper bound to be greater than or equal to lower bound"),
            ("a1 BETWEEN :n AND :s", "same data type"),
            ("a1 IN ()", "Syntax error"),
            ("status = :n", "reserved keyword: status"),
            ("a1 = :zz", "is not defined; attribute value: :zz"),
            ("AND = :n", "Syntax error"),
            ("a1 @ :n", "Syntax error; token: \"@\""),
        ] {
            let error = parse_condition(text, &mut binder()).expect_err(text);
            assert_eq!(error.code, "ValidationException");
            assert!(error.message.starts_with("Invalid ConditionExpression: "), "{error}");
            assert!(error.message.contains(part), "{text}: {error}");
        }
    }
}
