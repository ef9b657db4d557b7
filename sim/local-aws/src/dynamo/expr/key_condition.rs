//! Conditions on keys: one partition, and perhaps a range within the partition.

use super::super::error::{ApiError, DynamoResult};
use super::super::key::{KeySchema, KeyType};
use super::super::value::{equal, order};
use super::eval::begins_with;
use super::{Comparator, Condition, Operand, Path};
use leasehold_engine::table::AttributeValue;
use std::cmp::Ordering;

/// A condition on one key attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SortCondition {
    /// The comparator (never [`Comparator::Ne`]) holds against a value.
    Compare(Comparator, AttributeValue),
    /// From one value to another, both included.
    Between(AttributeValue, AttributeValue),
    /// Starts with a string or binary.
    BeginsWith(AttributeValue),
}

impl SortCondition {
    /// Whether a key attribute's value satisfies the condition.
    pub fn holds(&self, value: &AttributeValue) -> bool {
        match self {
            Self::Compare(comparator, other) => {
                order(value, other).is_some_and(|order| comparator.admits(order))
            }
            Self::Between(low, high) => {
                order(value, low).is_some_and(Ordering::is_ge)
                    && order(value, high).is_some_and(Ordering::is_le)
            }
            Self::BeginsWith(prefix) => begins_with(value, prefix),
        }
    }

    fn values(&self) -> impl Iterator<Item = &AttributeValue> {
        let (first, second) = match self {
            Self::Compare(_, value) | Self::BeginsWith(value) => (value, None),
            Self::Between(low, high) => (low, Some(high)),
        };
        std::iter::once(first).chain(second)
    }
}

/// The conditions of a query, by attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyCondition {
    /// One or two conditions, on different attributes.
    pub parts: Vec<(String, SortCondition)>,
}

impl KeyCondition {
    /// A whole partition.
    pub fn partition(name: impl Into<String>, value: AttributeValue) -> Self {
        Self { parts: vec![(name.into(), SortCondition::Compare(Comparator::Eq, value))] }
    }

    /// Adds a condition, on the sort key.
    pub fn and(mut self, name: impl Into<String>, condition: SortCondition) -> Self {
        self.parts.push((name.into(), condition));
        self
    }

    /// Reads a parsed `KeyConditionExpression`.
    pub fn from_condition(condition: Condition) -> DynamoResult<Self> {
        let mut key = Self::default();
        key.collect(condition)?;
        Ok(key)
    }

    fn collect(&mut self, condition: Condition) -> DynamoResult<()> {
        let (name, part) = match condition {
            Condition::And(parts) => return parts.into_iter().try_for_each(|part| self.collect(part)),
            Condition::Or(_) => return Err(wrong_operator("OR")),
            Condition::Not(_) => return Err(wrong_operator("NOT")),
            Condition::In(..) => return Err(wrong_operator("IN")),
            Condition::Compare(Comparator::Ne, ..) => return Err(wrong_operator("<>")),
            Condition::Exists(_) => return Err(wrong_operator("attribute_exists")),
            Condition::NotExists(_) => return Err(wrong_operator("attribute_not_exists")),
            Condition::HasType(..) => return Err(wrong_operator("attribute_type")),
            Condition::Contains(..) => return Err(wrong_operator("contains")),
            Condition::Compare(comparator, left, right) => compared(comparator, left, right)?,
            Condition::Between(value, low, high) => match (value, low, high) {
                (Operand::Path(path), Operand::Value(low), Operand::Value(high)) => {
                    (attribute(path)?, SortCondition::Between(low, high))
                }
                (Operand::Path(_), ..) => return Err(many_names()),
                _ => return Err(not_first("BETWEEN")),
            },
            Condition::BeginsWith(value, prefix) => match (value, prefix) {
                (Operand::Path(path), Operand::Value(prefix)) => {
                    (attribute(path)?, SortCondition::BeginsWith(prefix))
                }
                (Operand::Path(_), _) => return Err(many_names()),
                _ => return Err(not_first("begins_with")),
            },
        };
        if self.parts.iter().any(|(other, _)| *other == name) {
            let message = "KeyConditionExpressions must only contain one condition per key";
            return Err(ApiError::validation(message));
        }
        self.parts.push((name, part));
        Ok(())
    }

    /// The partition key's value and the sort key's condition, for a table or index with this schema.
    pub fn resolve(&self, schema: &KeySchema) -> DynamoResult<(&AttributeValue, Option<&SortCondition>)> {
        if !(1..=2).contains(&self.parts.len()) {
            return Err(ApiError::validation("Conditions can be of length 1 or 2 only"));
        }
        let find = |name: &str| self.parts.iter().find(|(other, _)| other == name).map(|(_, part)| part);
        let missed =
            |name: &str| ApiError::validation(format!("Query condition missed key schema element: {name}"));
        let partition = find(&schema.partition.name).ok_or_else(|| missed(&schema.partition.name))?;
        let sort = match (&schema.sort, self.parts.len()) {
            (_, 1) => None,
            (Some(attribute), _) => Some(find(&attribute.name).ok_or_else(|| missed(&attribute.name))?),
            (None, _) => return Err(ApiError::validation("Query key condition not supported")),
        };
        let SortCondition::Compare(Comparator::Eq, value) = partition else {
            return Err(ApiError::validation("Query key condition not supported"));
        };
        if let (Some(attribute), Some(condition)) = (&schema.sort, sort) {
            check_sort(attribute.key_type, condition)?;
        }
        Ok((value, sort))
    }
}

fn check_sort(key_type: KeyType, condition: &SortCondition) -> DynamoResult<()> {
    if condition.values().any(|value| value.type_name() != key_type.name()) {
        return Err(ApiError::invalid_parameter("Condition parameter type does not match schema type"));
    }
    match condition {
        SortCondition::BeginsWith(_) if key_type == KeyType::N => Err(ApiError::invalid_parameter(
            "ComparisonOperator BEGINS_WITH is not valid for N AttributeValue type",
        )),
        SortCondition::Between(low, high)
            if !equal(low, high) && order(low, high).is_none_or(Ordering::is_gt) =>
        {
            Err(ApiError::bounds_swapped())
        }
        _ => Ok(()),
    }
}

fn compared(comparator: Comparator, left: Operand, right: Operand) -> DynamoResult<(String, SortCondition)> {
    match (left, right) {
        (Operand::Path(path), Operand::Value(value)) => {
            Ok((attribute(path)?, SortCondition::Compare(comparator, value)))
        }
        (Operand::Value(value), Operand::Path(path)) => {
            Ok((attribute(path)?, SortCondition::Compare(comparator.mirrored(), value)))
        }
        (Operand::Path(_), Operand::Path(_)) => Err(many_names()),
        (Operand::Size(_), _) | (_, Operand::Size(_)) => {
            Err(ApiError::validation("KeyConditionExpressions cannot contain nested operations"))
        }
        (Operand::Value(_), Operand::Value(_)) => Err(ApiError::validation(
            "Invalid condition in KeyConditionExpression: No key attribute specified",
        )),
    }
}

fn attribute(path: Path) -> DynamoResult<String> {
    if path.rest.is_empty() {
        Ok(path.head.into_owned())
    } else {
        Err(ApiError::validation("KeyConditionExpressions cannot have conditions on nested attributes"))
    }
}

fn wrong_operator(operator: &str) -> ApiError {
    ApiError::validation(format!("Invalid operator used in KeyConditionExpression: {operator}"))
}

fn many_names() -> ApiError {
    ApiError::validation(
        "Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition",
    )
}

fn not_first(operator: &str) -> ApiError {
    ApiError::validation(format!(
        "Invalid condition in KeyConditionExpression: {operator} operator must have the key attribute as its first operand"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::{Binder, parse_key_condition};
    use super::*;
    use crate::dynamo::testing::schema;
    use std::collections::BTreeMap;

    fn resolve(text: &str) -> DynamoResult<Option<SortCondition>> {
        let values = [
            (":p".into(), AttributeValue::s("part")),
            (":one".into(), AttributeValue::n("1")),
            (":two".into(), AttributeValue::n("2")),
        ];
        let mut binder = Binder::unchecked(BTreeMap::new(), values.into());
        let condition = parse_key_condition(text, &mut binder)?;
        condition.resolve(&schema(true)).map(|(_, sort)| sort.cloned())
    }

    #[test]
    fn a_partition_and_a_range_of_it() {
        assert_eq!(resolve("p = :p"), Ok(None));
        let ge = SortCondition::Compare(Comparator::Ge, AttributeValue::n("1"));
        assert_eq!(resolve("p = :p AND s >= :one"), Ok(Some(ge.clone())));
        assert_eq!(resolve("(:one <= s) AND (:p = p)"), Ok(Some(ge)));
        let between = SortCondition::Between(AttributeValue::n("1"), AttributeValue::n("2"));
        assert_eq!(resolve("p = :p AND s BETWEEN :one AND :two"), Ok(Some(between)));
    }

    #[test]
    fn other_conditions_are_refused() {
        for (text, part) in [
            ("p = :p OR s = :one", "Invalid operator used in KeyConditionExpression: OR"),
            ("NOT p = :p", "NOT"),
            ("p <> :p", "<>"),
            ("p IN (:p)", "IN"),
            ("attribute_exists(p)", "attribute_exists"),
            ("s = :one", "missed key schema element: p"),
            ("p = :p AND x = :one", "missed key schema element: s"),
            ("p > :p", "Query key condition not supported"),
            ("p = :p AND p = :p", "one condition per key"),
            ("p = :p AND s = :one AND x = :two", "length 1 or 2"),
            ("p = :p AND s = :p", "does not match schema type"),
            ("p = :p AND begins_with(s, :p)", "does not match schema type"),
            ("p.x = :p", "nested attributes"),
            ("size(p) = :one", "nested operations"),
            ("p = s", "Multiple attribute names"),
            (":p = :one", "No key attribute"),
        ] {
            let error = resolve(text).expect_err(text);
            assert!(error.message.contains(part), "{text}: {error}");
        }
    }
}
