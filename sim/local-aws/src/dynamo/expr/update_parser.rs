//! The grammar of updates: `SET`, `REMOVE`, `ADD` and `DELETE` sections.

use super::lexer::Kind;
use super::parser::{Cursor, check_clashes, needs_path, wrong_count, wrong_operand, wrong_type};
use super::{Action, SetValue, Update};
use crate::constraint::refuse_if;
use leasehold_engine::table::AttributeValue;

/// A whole update.
pub(super) fn update(cursor: &mut Cursor<'_>) -> Result<Update, String> {
    let mut update = Update::new();
    let mut seen = [false; 4];
    loop {
        let token = cursor.peek();
        if token.kind == Kind::End && seen.contains(&true) {
            break;
        }
        let word = if token.kind == Kind::Word { cursor.slice(token) } else { "" };
        let sections = ["SET", "REMOVE", "ADD", "DELETE"];
        let Some(section) = sections.iter().position(|name| word.eq_ignore_ascii_case(name)) else {
            return Err(cursor.syntax_error());
        };
        refuse_if(std::mem::replace(&mut seen[section], true), || {
            format!("The \"{}\" section can only be used once in an update expression;", sections[section])
        })?;
        cursor.advance();
        loop {
            let action = match section {
                0 => set(cursor)?,
                1 => Action::Remove(cursor.path()?),
                2 => Action::Add(cursor.path()?, set_operand(cursor, "ADD")?),
                _ => Action::Delete(cursor.path()?, set_operand(cursor, "DELETE")?),
            };
            update.actions.push(action);
            if !cursor.accept(",") {
                break;
            }
        }
    }
    check_clashes(&update.actions.iter().map(Action::path).collect::<Vec<_>>())?;
    Ok(update)
}

fn set(cursor: &mut Cursor<'_>) -> Result<Action, String> {
    let path = cursor.path()?;
    cursor.expect("=")?;
    Ok(Action::Set(path, set_value(cursor)?))
}

fn set_value(cursor: &mut Cursor<'_>) -> Result<SetValue, String> {
    let left = operand(cursor)?;
    let Some(sign) = ["+", "-"].into_iter().find(|sign| cursor.accept(sign)) else {
        return Ok(left);
    };
    let right = operand(cursor)?;
    check_types(sign, [&left, &right], "N")?;
    let (left, right) = (Box::new(left), Box::new(right));
    Ok(if sign == "+" { SetValue::Plus(left, right) } else { SetValue::Minus(left, right) })
}

fn operand(cursor: &mut Cursor<'_>) -> Result<SetValue, String> {
    if cursor.accept("(") {
        let inner = cursor.nested(set_value)?;
        cursor.expect(")")?;
        return Ok(inner);
    }
    match cursor.peek().kind {
        Kind::Value => cursor.value().map(SetValue::Value),
        _ if cursor.at_function() => cursor.nested(function),
        _ => cursor.path().map(SetValue::Path),
    }
}

fn function(cursor: &mut Cursor<'_>) -> Result<SetValue, String> {
    let token = cursor.advance();
    let name = cursor.slice(token);
    if !matches!(name, "if_not_exists" | "list_append") {
        return Err(format!("Invalid function name; function: {name}"));
    }
    cursor.expect("(")?;
    let mut arguments = vec![operand(cursor)?];
    while cursor.accept(",") {
        arguments.push(operand(cursor)?);
    }
    cursor.expect(")")?;
    let count = arguments.len();
    let (Some(second), Some(first), None) = (arguments.pop(), arguments.pop(), arguments.pop()) else {
        return Err(wrong_count(name, count));
    };
    if name == "if_not_exists" {
        let SetValue::Path(path) = first else {
            return Err(needs_path(name));
        };
        return Ok(SetValue::IfNotExists(path, Box::new(second)));
    }
    check_types(name, [&first, &second], "L")?;
    Ok(SetValue::ListAppend(Box::new(first), Box::new(second)))
}

/// Refuses operands that are certainly of another type.
fn check_types(function: &str, operands: [&SetValue; 2], wanted: &str) -> Result<(), String> {
    match operands.into_iter().filter_map(result_type).find(|found| *found != wanted) {
        Some(other) => Err(wrong_type(function, other)),
        None => Ok(()),
    }
}

/// The type a value certainly has, where that can be told without an item.
fn result_type(value: &SetValue) -> Option<&'static str> {
    match value {
        SetValue::Value(value) => Some(value.type_name()),
        SetValue::Plus(..) | SetValue::Minus(..) => Some("N"),
        SetValue::ListAppend(..) => Some("L"),
        SetValue::Path(_) | SetValue::IfNotExists(..) => None,
    }
}

fn set_operand(cursor: &mut Cursor<'_>, operator: &str) -> Result<AttributeValue, String> {
    let value = cursor.value()?;
    let name = match &value {
        AttributeValue::Ss(_) | AttributeValue::Ns(_) | AttributeValue::Bs(_) => return Ok(value),
        AttributeValue::N(_) if operator == "ADD" => return Ok(value),
        AttributeValue::N(_) => "NUMBER",
        AttributeValue::S(_) => "STRING",
        AttributeValue::B(_) => "BINARY",
        AttributeValue::Bool(_) => "BOOLEAN",
        AttributeValue::Null => "NULL",
        AttributeValue::L(_) => "LIST",
        AttributeValue::M(_) => "MAP",
    };
    Err(wrong_operand(operator, name))
}

#[cfg(test)]
mod tests {
    use super::super::{Binder, Path, parse_update};
    use super::*;

    fn binder() -> Binder {
        Binder::unchecked(
            [("#n".to_owned(), "name".to_owned())].into(),
            [
                (":n".into(), AttributeValue::n("5")),
                (":s".into(), AttributeValue::s("text")),
                (":l".into(), AttributeValue::L(Vec::new())),
                (":ss".into(), AttributeValue::Ss(["x".into()].into())),
            ]
            .into(),
        )
    }

    #[test]
    fn sections_come_in_any_order_and_case() {
        let parsed =
            parse_update("remove b1, b2 Set #n = :s, c1 = c1 + :n ADD d1 :n DELETE e1 :ss", &mut binder());
        let counted = SetValue::Plus(
            Box::new(SetValue::Path(Path::attribute("c1"))),
            Box::new(SetValue::Value(AttributeValue::n("5"))),
        );
        let expected = Update::new()
            .remove("b1")
            .remove("b2")
            .set("name", AttributeValue::s("text"))
            .with(Action::Set(Path::attribute("c1"), counted))
            .add("d1", AttributeValue::n("5"))
            .with(Action::Delete(Path::attribute("e1"), AttributeValue::Ss(["x".into()].into())));
        assert_eq!(parsed.unwrap(), expected);
    }

    #[test]
    fn a_refused_request_is_refused_in_dynamodbs_words() {
        for (text, part) in [
            ("", "can not be empty"),
            ("a1 = :n", "Syntax error; token: \"a1\""),
            ("SET", "Syntax error; token: \"<EOF>\""),
            ("SET a1", "Syntax error"),
            ("SET a1 = ", "Syntax error"),
            ("SET a1 = :n,", "Syntax error"),
            ("SET a1 = :n SET b1 = :n", "\"SET\" section can only be used once"),
            ("SET a1 = :n, a1 = :s", "overlap"),
            ("SET a1 = :n REMOVE a1.b1", "overlap with each other"),
            ("SET a1.b1 = :n REMOVE a1[0]", "conflict"),
            ("SET a1 = :n + :n + :n", "Syntax error; token: \"+\""),
            ("SET a1 = :s + :n", "operator or function: +, operand type: S"),
            ("SET a1 = list_append(:n, b1)", "operator or function: list_append, operand type: N"),
            ("SET a1 = list_append(b1)", "number of operands: 1"),
            ("SET a1 = if_not_exists(:n, :n)", "requires a document path"),
            ("SET a1 = size(b1)", "Invalid function name; function: size"),
            ("ADD a1 :s", "operator: ADD, operand type: STRING"),
            ("DELETE a1 :n", "operator: DELETE, operand type: NUMBER"),
            ("ADD a1 b1", "Syntax error; token: \"b1\""),
            ("SET status = :n", "reserved keyword: status"),
        ] {
            let error = parse_update(text, &mut binder()).expect_err(text);
            assert!(error.message.starts_with("Invalid UpdateExpression: "), "{error}");
            assert!(error.message.contains(part), "{text}: {error}");
        }
    }
}
