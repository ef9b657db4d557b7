//! Reading a request body, with the service's own complaints about its shape.

use super::value::{attribute, parse_item};
use crate::dynamo::catalog::check_name;
use crate::dynamo::error::{ApiError, DynamoResult};
use crate::dynamo::settings::table_of_arn;
use leasehold_engine::table::{AttributeValue, Item};
use serde_json::{Map, Value};

/// The members of a JSON object. A null member counts as absent.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    /// The members of a required object.
    pub(super) fn of(value: &'a Value) -> DynamoResult<Self> {
        match value {
            Value::Object(map) => Ok(Self(map)),
            Value::Array(_) => Err(ApiError::serialization("Unrecognized collection type")),
            _ => Err(ApiError::serialization("Unexpected value type in payload")),
        }
    }

    /// A member.
    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// Whether a member is present.
    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// All present members.
    pub(super) fn each(&self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        self.0.iter().filter(|(_, value)| !value.is_null())
    }

    /// A string.
    pub(super) fn string(&self, name: &str) -> DynamoResult<Option<&'a str>> {
        self.get(name).map(string).transpose()
    }

    /// A required string.
    pub(super) fn required_string(&self, name: &str) -> DynamoResult<&'a str> {
        self.string(name)?.ok_or_else(|| absent(name))
    }

    /// A boolean.
    pub(super) fn boolean(&self, name: &str) -> DynamoResult<Option<bool>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(other) => Err(wrong_kind(other, "Boolean")),
        }
    }

    /// A boolean, false where absent.
    pub(super) fn flag(&self, name: &str) -> DynamoResult<bool> {
        Ok(self.boolean(name)?.unwrap_or(false))
    }

    /// A whole number from 0; a larger number than the machine counts is the largest that the machine counts.
    pub(super) fn count(&self, name: &str) -> DynamoResult<Option<usize>> {
        Ok(self.number(name)?.map(|number| usize::try_from(number).unwrap_or(usize::MAX)))
    }

    /// A whole number from 0.
    pub(super) fn number(&self, name: &str) -> DynamoResult<Option<u64>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Number(number)) => match number.as_u64() {
                Some(number) => Ok(Some(number)),
                None if number.as_i64().is_some() => Err(ApiError::unmet(
                    format_args!("Value '{number}' at '{}'", lower_first(name)),
                    "have value greater than or equal to 0",
                )),
                None => Err(ApiError::serialization("DECIMAL_VALUE cannot be converted to Long")),
            },
            Some(other) => Err(wrong_kind(other, "Long")),
        }
    }

    /// A list.
    pub(super) fn list(&self, name: &str) -> DynamoResult<Option<&'a [Value]>> {
        self.get(name).map(list).transpose()
    }

    /// A list of strings.
    pub(super) fn strings(&self, name: &str) -> DynamoResult<Option<Vec<&'a str>>> {
        self.list(name)?.map(|list| list.iter().map(string).collect()).transpose()
    }

    /// An object.
    pub(super) fn object(&self, name: &str) -> DynamoResult<Option<Self>> {
        self.get(name).map(Self::of).transpose()
    }

    /// A required object.
    pub(super) fn required_object(&self, name: &str) -> DynamoResult<Self> {
        self.object(name)?.ok_or_else(|| absent(name))
    }

    /// A required item or key, its values checked.
    pub(super) fn required_item(&self, name: &str) -> DynamoResult<Item> {
        parse_item(self.get(name).ok_or_else(|| absent(name))?)
    }

    /// An item or a key, its values checked.
    pub(super) fn item(&self, name: &str) -> DynamoResult<Option<Item>> {
        self.get(name).map(parse_item).transpose()
    }

    /// A value.
    pub(super) fn attribute(&self, name: &str) -> DynamoResult<Option<AttributeValue>> {
        self.get(name).map(attribute).transpose()
    }

    /// A list of values.
    pub(super) fn attributes(&self, name: &str) -> DynamoResult<Option<Vec<AttributeValue>>> {
        self.list(name)?.map(|list| list.iter().map(attribute).collect()).transpose()
    }

    /// One of some names.
    pub(super) fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> DynamoResult<Option<T>> {
        let Some(text) = self.string(name)? else {
            return Ok(None);
        };
        if let Some((_, value)) = choices.iter().find(|(choice, _)| *choice == text) {
            return Ok(Some(*value));
        }
        let names: Vec<&str> = choices.iter().map(|(choice, _)| *choice).collect();
        Err(ApiError::unmet(
            format_args!("Value '{text}' at '{}'", lower_first(name)),
            format_args!("satisfy enum value set: [{}]", names.join(", ")),
        ))
    }

    /// One of some names, itself.
    pub(super) fn one_of<'n>(&self, name: &str, names: &[&'n str]) -> DynamoResult<Option<&'n str>> {
        self.choice(name, &names.iter().map(|name| (*name, *name)).collect::<Vec<_>>())
    }

    /// The name of the request's table, given by its name or ARN.
    pub(super) fn table(&self) -> DynamoResult<String> {
        let Some(given) = self.string("TableName")? else {
            return Err(ApiError::validation(
                "The parameter 'TableName' is required but was not present in the request",
            ));
        };
        table_name(given)
    }
}

/// A table's name, given by itself or in an ARN.
pub(super) fn table_name(given: &str) -> DynamoResult<String> {
    let name = table_of_arn(given).unwrap_or(given);
    check_name(name)?;
    Ok(name.to_owned())
}

/// A string.
pub(super) fn string(value: &Value) -> DynamoResult<&str> {
    value.as_str().ok_or_else(|| wrong_kind(value, "String"))
}

/// A list.
pub(super) fn list(value: &Value) -> DynamoResult<&[Value]> {
    match value {
        Value::Array(list) => Ok(list),
        Value::Object(_) => Err(unexpected_structure()),
        _ => Err(ApiError::serialization("Unexpected field type")),
    }
}

/// The service's message about a structure in another place.
pub(super) fn unexpected_structure() -> ApiError {
    ApiError::serialization("Start of structure or map found where not expected")
}

/// The service's message about a value of the wrong type.
pub(super) fn wrong_kind(value: &Value, wanted: &str) -> ApiError {
    let kind = match value {
        Value::Null => "NULL_VALUE",
        Value::Bool(true) => "TRUE_VALUE",
        Value::Bool(false) => "FALSE_VALUE",
        Value::Number(number) if number.is_f64() => "DECIMAL_VALUE",
        Value::Number(_) => "NUMBER_VALUE",
        Value::String(_) => "STRING_VALUE",
        Value::Array(_) => {
            return ApiError::serialization(format!("Unrecognized collection type class java.lang.{wanted}"));
        }
        Value::Object(_) => return unexpected_structure(),
    };
    ApiError::serialization(format!("{kind} cannot be converted to {wanted}"))
}

/// The service's message about a missing member.
pub(super) fn absent(name: &str) -> ApiError {
    ApiError::unmet(format_args!("Value null at '{}'", lower_first(name)), "not be null")
}

fn lower_first(name: &str) -> String {
    let mut letters = name.chars();
    letters
        .next()
        .map_or_else(String::new, |first| format!("{}{}", first.to_ascii_lowercase(), letters.as_str()))
}
