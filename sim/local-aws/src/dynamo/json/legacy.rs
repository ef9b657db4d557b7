//! The parameters from before expressions, which the Java Kinesis client still sends.

use super::body::Fields;
use crate::constraint::refuse_if;
use crate::dynamo::error::{ApiError, DynamoResult};
use crate::dynamo::expr::{
    Action, Comparator, Condition, KeyCondition, Operand, Path, SetValue, SortCondition, Update,
};
use crate::dynamo::value::order;
use leasehold_engine::table::AttributeValue;
use std::cmp::Ordering;

/// A legacy comparison operator.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operator {
    Compare(Comparator),
    In,
    Between,
    NotNull,
    Null,
    Contains,
    NotContains,
    BeginsWith,
}

const OPERATORS: [(&str, Operator); 13] = [
    ("IN", Operator::In),
    ("NULL", Operator::Null),
    ("BETWEEN", Operator::Between),
    ("LT", Operator::Compare(Comparator::Lt)),
    ("NOT_CONTAINS", Operator::NotContains),
    ("EQ", Operator::Compare(Comparator::Eq)),
    ("GT", Operator::Compare(Comparator::Gt)),
    ("NOT_NULL", Operator::NotNull),
    ("NE", Operator::Compare(Comparator::Ne)),
    ("LE", Operator::Compare(Comparator::Le)),
    ("BEGINS_WITH", Operator::BeginsWith),
    ("GE", Operator::Compare(Comparator::Ge)),
    ("CONTAINS", Operator::Contains),
];

impl Operator {
    fn name(self) -> &'static str {
        OPERATORS.iter().find(|(_, operator)| *operator == self).map_or("", |(name, _)| name)
    }
}

/// `Expected`, with `ConditionalOperator`.
pub(super) fn expected(fields: Fields<'_>) -> DynamoResult<Option<Condition>> {
    joined(fields, "Expected", expectation)
}

/// `QueryFilter` or `ScanFilter`, with `ConditionalOperator`.
pub(super) fn filter(fields: Fields<'_>, parameter: &str) -> DynamoResult<Option<Condition>> {
    joined(fields, parameter, |name, condition| {
        let (operator, values) = comparison(condition)?;
        condition_of(name, operator, values)
    })
}

/// The conditions of a parameter, by attribute, as one.
fn joined(
    fields: Fields<'_>, parameter: &str, read: fn(&str, Fields<'_>) -> DynamoResult<Condition>,
) -> DynamoResult<Option<Condition>> {
    let mut parts = Vec::new();
    if let Some(conditions) = fields.object(parameter)? {
        for (name, condition) in conditions.each() {
            parts.push(read(name, Fields::of(condition)?)?);
        }
    }
    let or = fields.choice("ConditionalOperator", &[("OR", true), ("AND", false)])?;
    if or.is_some() && parts.is_empty() {
        return Err(ApiError::validation("ConditionalOperator cannot be used without Filter or Expected"));
    }
    if or.is_some() && parts.len() == 1 {
        return Err(ApiError::validation(
            "ConditionalOperator can only be used when Filter or Expected has two or more elements",
        ));
    }
    Ok(match parts.len() {
        0 => None,
        1 => parts.pop(),
        _ if or == Some(true) => Some(Condition::Or(parts)),
        _ => Some(Condition::And(parts)),
    })
}

fn expectation(name: &str, fields: Fields<'_>) -> DynamoResult<Condition> {
    let (value, list) = (fields.attribute("Value")?, fields.attributes("AttributeValueList")?);
    let (exists, operator) = (fields.boolean("Exists")?, fields.choice("ComparisonOperator", &OPERATORS)?);
    let refuse = |what: String| ApiError::invalid_parameter(format_args!("{what} for Attribute: {name}"));
    if value.is_some() && list.is_some() {
        return Err(refuse("Value and AttributeValueList cannot be used together".into()));
    }
    if let Some(operator) = operator {
        if exists.is_some() {
            return Err(refuse("Exists and ComparisonOperator cannot be used together".into()));
        }
        let unary = matches!(operator, Operator::Null | Operator::NotNull);
        if !unary && value.is_none() && list.is_none() {
            return Err(refuse(format!(
                "Value or AttributeValueList must be used with ComparisonOperator: {}",
                operator.name()
            )));
        }
        return condition_of(name, operator, list.unwrap_or_else(|| value.into_iter().collect()));
    }
    if list.is_some() {
        return Err(refuse("AttributeValueList can only be used with a ComparisonOperator".into()));
    }
    match (exists, value) {
        (None | Some(true), Some(value)) => Ok(Condition::equals(name.to_owned(), value)),
        (Some(false), None) => Ok(Condition::not_exists(name.to_owned())),
        (Some(false), Some(_)) => Err(refuse("Value cannot be used when Exists is false".into())),
        (None, None) => Err(refuse("Value must be provided when Exists is null".into())),
        (Some(true), None) => Err(refuse("Value must be provided when Exists is true".into())),
    }
}

fn comparison(fields: Fields<'_>) -> DynamoResult<(Operator, Vec<AttributeValue>)> {
    let operator = fields.choice("ComparisonOperator", &OPERATORS)?;
    let operator = operator.ok_or_else(|| super::body::absent("ComparisonOperator"))?;
    Ok((operator, fields.attributes("AttributeValueList")?.unwrap_or_default()))
}

fn check(operator: Operator, values: &[AttributeValue]) -> DynamoResult<()> {
    let fits = match operator {
        Operator::Null | Operator::NotNull => values.is_empty(),
        Operator::In => !values.is_empty(),
        Operator::Between => values.len() == 2,
        _ => values.len() == 1,
    };
    if !fits {
        return Err(ApiError::invalid_parameter(format_args!(
            "Invalid number of argument(s) for the {} ComparisonOperator",
            operator.name()
        )));
    }
    let Some(first) = values.first() else {
        return Ok(());
    };
    refuse_if(values.iter().any(|value| value.type_name() != first.type_name()), || {
        ApiError::invalid_parameter("AttributeValues inside AttributeValueList must be of same type")
    })?;
    let scalar = order(first, first).is_some();
    let allowed = match operator {
        Operator::Compare(Comparator::Eq | Comparator::Ne) | Operator::Null | Operator::NotNull => true,
        Operator::BeginsWith => matches!(first, AttributeValue::S(_) | AttributeValue::B(_)),
        Operator::Contains | Operator::NotContains | Operator::In => {
            scalar || matches!(first, AttributeValue::Bool(_) | AttributeValue::Null)
        }
        _ => scalar,
    };
    if !allowed {
        return Err(ApiError::invalid_parameter(format_args!(
            "ComparisonOperator {} is not valid for {} AttributeValue type",
            operator.name(),
            first.type_name()
        )));
    }
    if let (Operator::Between, [low, high]) = (operator, values)
        && order(low, high) == Some(Ordering::Greater)
    {
        return Err(ApiError::bounds_swapped());
    }
    Ok(())
}

fn condition_of(name: &str, operator: Operator, values: Vec<AttributeValue>) -> DynamoResult<Condition> {
    check(operator, &values)?;
    let path = Path::attribute(name.to_owned());
    let here = Operand::Path(path.clone());
    let mut values = values.into_iter().map(Operand::Value);
    if operator == Operator::In {
        return Ok(Condition::In(here, values.collect()));
    }
    Ok(match (operator, values.next(), values.next()) {
        (Operator::NotNull, ..) => Condition::Exists(path),
        (Operator::Between, Some(low), Some(high)) => Condition::Between(here, low, high),
        (Operator::Compare(comparator), Some(value), _) => Condition::Compare(comparator, here, value),
        (Operator::Contains, Some(value), _) => Condition::Contains(here, value),
        (Operator::NotContains, Some(value), _) => Condition::Not(Box::new(Condition::Contains(here, value))),
        (Operator::BeginsWith, Some(value), _) => Condition::BeginsWith(here, value),
        // `NULL`; the counts have been checked.
        _ => Condition::NotExists(path),
    })
}

/// `KeyConditions`.
pub(super) fn key_conditions(fields: Fields<'_>) -> DynamoResult<Option<KeyCondition>> {
    let Some(conditions) = fields.object("KeyConditions")? else {
        return Ok(None);
    };
    let mut key = KeyCondition::default();
    for (name, condition) in conditions.each() {
        let (operator, values) = comparison(Fields::of(condition)?)?;
        check(operator, &values)?;
        let mut values = values.into_iter();
        let part = match (operator, values.next(), values.next()) {
            (Operator::Compare(comparator), Some(value), _) if comparator != Comparator::Ne => {
                SortCondition::Compare(comparator, value)
            }
            (Operator::Between, Some(low), Some(high)) => SortCondition::Between(low, high),
            (Operator::BeginsWith, Some(prefix), _) => SortCondition::BeginsWith(prefix),
            _ => {
                let message = "Attempted conditional constraint is not an indexable operation";
                return Err(ApiError::validation(message));
            }
        };
        key.parts.push((name.clone(), part));
    }
    Ok(Some(key))
}

/// `AttributeUpdates`.
pub(super) fn attribute_updates(fields: Fields<'_>) -> DynamoResult<Option<Update>> {
    let Some(updates) = fields.object("AttributeUpdates")? else {
        return Ok(None);
    };
    let mut update = Update::new();
    for (name, change) in updates.each() {
        let change = Fields::of(change)?;
        let value = change.attribute("Value")?;
        let kind = change.one_of("Action", &["ADD", "PUT", "DELETE"])?.unwrap_or("PUT");
        let path = Path::attribute(name.clone());

        let Some(value) = value else {
            if kind != "DELETE" {
                return Err(ApiError::invalid_parameter(
                    "Only DELETE action is allowed when no attribute value is specified",
                ));
            }
            update.actions.push(Action::Remove(path));
            continue;
        };
        update.actions.push(match (kind, value.type_name(), value) {
            ("PUT", _, value) => Action::Set(path, SetValue::Value(value)),
            ("DELETE", "SS" | "NS" | "BS", value) => Action::Delete(path, value),
            ("ADD", _, AttributeValue::L(list)) => Action::Append(path, list),
            ("ADD", "N" | "SS" | "NS" | "BS", value) => Action::Add(path, value),
            (_, type_name, _) => {
                return Err(ApiError::invalid_parameter(format_args!(
                    "{kind} action is not supported for the type {type_name}"
                )));
            }
        });
    }
    Ok(Some(update))
}
