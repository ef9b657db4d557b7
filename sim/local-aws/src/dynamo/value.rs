//! The limits of a stored value: checks, the normal form of numbers, sizes, and comparison.

use super::decimal::{self, Decimal, DecimalError};
use super::error::{ApiError, DynamoResult};
use crate::constraint::refuse_if;
use leasehold_engine::table::{AttributeValue, Item};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The largest item, names included.
pub(super) const MAX_ITEM_BYTES: usize = 400 * 1024;
/// The deepest nesting of lists and maps.
pub(super) const MAX_DEPTH: usize = 32;

/// Checks every value of an item and gives its numbers their normal form (`1.0` is stored as `1`).
pub(super) fn normalize_item(item: &mut Item) -> DynamoResult<()> {
    refuse_if(item.contains_key(""), || ApiError::invalid_parameter("Empty attribute name"))?;
    item.values_mut().try_for_each(normalize)
}

/// Checks a value and gives its numbers their normal form.
pub(super) fn normalize(value: &mut AttributeValue) -> DynamoResult<()> {
    normalize_at(value, 1)
}

fn normalize_at(value: &mut AttributeValue, depth: usize) -> DynamoResult<()> {
    refuse_if(depth > MAX_DEPTH, || ApiError::validation("Nesting Levels have exceeded supported limits"))?;
    match value {
        AttributeValue::N(text) => normalize_number(text),
        AttributeValue::Ns(numbers) => normalize_numbers(numbers),
        AttributeValue::Ss(set) if set.is_empty() => {
            Err(ApiError::invalid_parameter("An string set  may not be empty"))
        }
        AttributeValue::Bs(set) if set.is_empty() => {
            Err(ApiError::invalid_parameter("Binary sets should not be empty"))
        }
        AttributeValue::L(values) => values.iter_mut().try_for_each(|value| normalize_at(value, depth + 1)),
        AttributeValue::M(values) => values.values_mut().try_for_each(|value| normalize_at(value, depth + 1)),
        _ => Ok(()),
    }
}

fn normalize_number(text: &mut Arc<str>) -> DynamoResult<()> {
    if !decimal::is_plain_integer(text) {
        *text = parse_number(text)?.to_string().into();
    }
    Ok(())
}

fn normalize_numbers(numbers: &mut BTreeSet<String>) -> DynamoResult<()> {
    refuse_if(numbers.is_empty(), || ApiError::invalid_parameter("An number set  may not be empty"))?;
    if numbers.iter().any(|number| !decimal::is_plain_integer(number)) {
        let mut normal = BTreeSet::new();
        for number in numbers.iter() {
            if !normal.insert(parse_number(number)?.to_string()) {
                return Err(ApiError::validation("Input collection contains duplicates"));
            }
        }
        *numbers = normal;
    }
    Ok(())
}

/// Reads a number, or returns DynamoDB's objection.
pub(super) fn parse_number(text: &str) -> DynamoResult<Decimal> {
    Decimal::parse(text).map_err(|error| match error {
        DecimalError::NotANumber if !text.is_empty() => {
            ApiError::validation(format!("The parameter cannot be converted to a numeric value: {text}"))
        }
        error => number_error(error),
    })
}

/// DynamoDB's message about a number out of its bounds.
pub(super) fn number_error(error: DecimalError) -> ApiError {
    ApiError::validation(match error {
        DecimalError::NotANumber => "The parameter cannot be converted to a numeric value",
        DecimalError::TooPrecise => "Attempting to store more than 38 significant digits in a Number",
        DecimalError::Overflow => {
            "Number overflow. Attempting to store a number with magnitude larger than supported range"
        }
        DecimalError::Underflow => {
            "Number underflow. Attempting to store a number with magnitude smaller than supported range"
        }
    })
}

/// The bytes an item is charged for: names and values.
pub(super) fn item_size(item: &Item) -> usize {
    item.iter().map(|(name, value)| name.len() + value_size(value)).sum()
}

/// The bytes a value is charged for.
pub(super) fn value_size(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::N(text) => number_size(text),
        AttributeValue::B(bytes) => bytes.len(),
        AttributeValue::Ss(set) => set.iter().map(String::len).sum(),
        AttributeValue::Ns(set) => set.iter().map(|text| number_size(text)).sum(),
        AttributeValue::Bs(set) => set.iter().map(Vec::len).sum(),
        AttributeValue::Bool(_) | AttributeValue::Null => 1,
        AttributeValue::L(values) => 3 + values.iter().map(|value| 1 + value_size(value)).sum::<usize>(),
        AttributeValue::M(values) => {
            3 + values.iter().map(|(name, value)| 1 + name.len() + value_size(value)).sum::<usize>()
        }
    }
}

/// About one byte for two significant digits, and one more, and one for the sign.
fn number_size(text: &str) -> usize {
    let body = text.strip_prefix('-').unwrap_or(text);
    let digits = body.bytes().filter(u8::is_ascii_digit).count();
    let leading = body.bytes().take_while(|b| matches!(b, b'0' | b'.')).filter(|b| *b == b'0').count();
    let trailing = if body.contains('.') { 0 } else { body.bytes().rev().take_while(|b| *b == b'0').count() };
    let significant = digits.saturating_sub(leading).saturating_sub(trailing);
    if significant == 0 { 1 } else { 1 + significant.div_ceil(2) + usize::from(text.starts_with('-')) }
}

/// The order of two values, if DynamoDB orders them: both numbers, both strings or both binary.
pub(super) fn order(left: &AttributeValue, right: &AttributeValue) -> Option<Ordering> {
    match (left, right) {
        (AttributeValue::N(left), AttributeValue::N(right)) => Some(decimal::compare_texts(left, right)),
        (AttributeValue::S(left), AttributeValue::S(right)) => Some(left.as_bytes().cmp(right.as_bytes())),
        (AttributeValue::B(left), AttributeValue::B(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

/// Equality of type and value, numbers by value at any depth.
pub(super) fn equal(left: &AttributeValue, right: &AttributeValue) -> bool {
    match (left, right) {
        (AttributeValue::N(left), AttributeValue::N(right)) => {
            decimal::compare_texts(left, right) == Ordering::Equal
        }
        (AttributeValue::Ns(left), AttributeValue::Ns(right)) => {
            left == right || (left.len() == right.len() && normal_set(left) == normal_set(right))
        }
        (AttributeValue::L(left), AttributeValue::L(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (AttributeValue::M(left), AttributeValue::M(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| left.0 == right.0 && equal(left.1, right.1))
        }
        (left, right) => left == right,
    }
}

fn normal_set(numbers: &BTreeSet<String>) -> BTreeSet<String> {
    let normal = |text: &String| Decimal::parse(text).map_or_else(|_| text.clone(), |n| n.to_string());
    numbers.iter().map(normal).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(mut value: AttributeValue) -> String {
        normalize(&mut value).unwrap_err().message.into_owned()
    }

    #[test]
    fn numbers_take_their_normal_form_everywhere() {
        let mut value = AttributeValue::L(vec![
            AttributeValue::n("1.0"),
            AttributeValue::Ns(["1e1".into(), "7".into()].into()),
            AttributeValue::M([("x".to_owned(), AttributeValue::n("-0"))].into()),
        ]);
        normalize(&mut value).unwrap();
        let expected = AttributeValue::L(vec![
            AttributeValue::n("1"),
            AttributeValue::Ns(["10".into(), "7".into()].into()),
            AttributeValue::M([("x".to_owned(), AttributeValue::n("0"))].into()),
        ]);
        assert_eq!(value, expected);
    }

    #[test]
    fn an_unstorable_value_of_dynamodb_is_refused() {
        assert!(message(AttributeValue::Ss([].into())).contains("string set"));
        assert!(message(AttributeValue::Ns([].into())).contains("number set"));
        assert!(message(AttributeValue::Bs([].into())).contains("Binary sets"));
        assert!(message(AttributeValue::n("1e999")).contains("overflow"));
        assert!(message(AttributeValue::n("")).ends_with("numeric value"));
        assert!(message(AttributeValue::Ns(["1".into(), "1.0".into()].into())).contains("duplicates"));
        let deep = (0..40).fold(AttributeValue::Null, |inner, _| AttributeValue::L(vec![inner]));
        assert!(message(deep).contains("Nesting"));
        normalize(&mut AttributeValue::s("")).unwrap();
    }

    #[test]
    fn sizes_count_names_and_values() {
        let item: Item = [
            ("key".into(), AttributeValue::s("abc")),
            ("n".into(), AttributeValue::n("-1200")),
            ("l".into(), AttributeValue::L(vec![AttributeValue::Bool(true)])),
        ]
        .into();
        assert_eq!(item_size(&item), (3 + 3) + (1 + 3) + (1 + 3 + 2));
    }

    #[test]
    fn values_compare_by_value_and_only_within_a_type() {
        assert!(equal(&AttributeValue::n("1.0"), &AttributeValue::n("1")));
        assert!(equal(&AttributeValue::Ns(["1.0".into()].into()), &AttributeValue::Ns(["1".into()].into())));
        assert!(!equal(&AttributeValue::n("1"), &AttributeValue::s("1")));
        assert_eq!(order(&AttributeValue::n("10"), &AttributeValue::n("9")), Some(Ordering::Greater));
        assert_eq!(order(&AttributeValue::s("10"), &AttributeValue::s("9")), Some(Ordering::Less));
        assert_eq!(order(&AttributeValue::s("10"), &AttributeValue::n("9")), None);
        assert_eq!(order(&AttributeValue::Bool(true), &AttributeValue::Bool(true)), None);
    }
}
