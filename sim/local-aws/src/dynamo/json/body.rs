//! Reading a request body, with the service's own complaints about its shape.

use super::value::{attribute, parse_item};
use crate::dynamo::catalog::check_name;
use crate::dynamo::error::ApiError;
use crate::dynamo::settings::table_of_arn;
use leasehold_engine::table::{AttributeValue, Item};
use serde_json::{Map, Value};

/// The members of a JSON object. A null member counts as absent.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    /// The members of a required object.
    pub(super) fn of(value: &'a Value) -> Result<Self, ApiError> {
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
    pub(super) fn string(&self, name: &str) -> Result<Option<&'a str>, ApiError> {
        self.get(name).map(string).transpose()
    }

    /// A required string.
    pub(super) fn required_string(&self, name: &str) -> Result<&'a str, ApiError> {
        self.string(name)?.ok_or_else(|| absent(name))
    }

    /// A boolean.
    pub(super) fn boolean(&self, name: &str) -> Result<Option<bool>, ApiError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(other) => Err(wrong_kind(other, "Boolean")),
        }
    }

    /// A boolean, false where absent.
    pub(super) fn flag(&self, name: &str) -> Result<bool, ApiError> {
        Ok(self.boolean(name)?.unwrap_or(false))
    }

    /// A whole number from 0.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, ApiError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Number(number)) => match number.as_u64() {
                Some(number) => Ok(Some(number)),
                None if number.as_i64().is_some() => Err(ApiError::validation(format!(
                    "1 validation error detected: Value '{number}' at '{}' failed to satisfy constraint: \
                     Member must have value greater than or equal to 0",
                    lower_first(name)
                ))),
                None => Err(ApiError::serialization("DECIMAL_VALUE cannot be converted to Long")),
            },
            Some(other) => Err(wrong_kind(other, "Long")),
        }
    }

    /// A list.
    pub(super) fn list(&self, name: &str) -> Result<Option<&'a [Value]>, ApiError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(Value::Object(_)) => {
                Err(ApiError::serialization("Start of structure or map found where not expected"))
            }
            Some(_) => Err(ApiError::serialization("Unexpected field type")),
        }
    }

    /// A list of strings.
    pub(super) fn strings(&self, name: &str) -> Result<Option<Vec<&'a str>>, ApiError> {
        self.list(name)?.map(|list| list.iter().map(string).collect()).transpose()
    }

    /// An object.
    pub(super) fn object(&self, name: &str) -> Result<Option<Self>, ApiError> {
        self.get(name).map(Self::of).transpose()
    }

    /// A required object.
    pub(super) fn required_object(&self, name: &str) -> Result<Self, ApiError> {
        self.object(name)?.ok_or_else(|| absent(name))
    }

    /// A required item or key, its values checked.
    pub(super) fn required_item(&self, name: &str) -> Result<Item, ApiError> {
        parse_item(self.get(name).ok_or_else(|| absent(name))?)
    }

    /// An item or a key, its values checked.
    pub(super) fn item(&self, name: &str) -> Result<Option<Item>, ApiError> {
        self.get(name).map(parse_item).transpose()
    }

    /// A value.
    pub(super) fn attribute(&self, name: &str) -> Result<Option<AttributeValue>, ApiError> {
        self.get(name).map(attribute).transpose()
    }

    /// A list of values.
    pub(super) fn attributes(&self, name: &str) -> Result<Option<Vec<AttributeValue>>, ApiError> {
        self.list(name)?.map(|list| list.iter().map(attribute).collect()).transpose()
    }

    /// One of some names.
    pub(super) fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Result<Option<T>, ApiError> {
        let Some(text) = self.string(name)? else {
            return Ok(None);
        };
        if let Some((_, value)) = choices.iter().find(|(choice, _)| *choice == text) {
            return Ok(Some(*value));
        }
        let names: Vec<&str> = choices.iter().map(|(choice, _)| *choice).collect();
        Err(ApiError::validation(format!(
            "1 validation error detected: Value '{text}' at '{}' failed to satisfy constraint: \
             Member must satisfy enum value set: [{}]",
            lower_first(name),
            names.join(", ")
        )))
    }

    /// The name of the request's table, given by its name or ARN.
    pub(super) fn table(&self) -> Result<String, ApiError> {
        let Some(given) = self.string("TableName")? else {
            return Err(ApiError::validation(
                "The parameter 'TableName' is required but was not present in the request",
            ));
        };
        table_name(given)
    }
}

/// A table's name, given by itself or in an ARN.
pub(super) fn table_name(given: &str) -> Result<String, ApiError> {
    let name = table_of_arn(given).unwrap_or(given);
    check_name(name)?;
    Ok(name.to_owned())
}

/// A string.
pub(super) fn string(value: &Value) -> Result<&str, ApiError> {
    value.as_str().ok_or_else(|| wrong_kind(value, "String"))
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
        Value::Object(_) => {
            return ApiError::serialization("Start of structure or map found where not expected");
        }
    };
    ApiError::serialization(format!("{kind} cannot be converted to {wanted}"))
}

/// The service's message about a missing member.
pub(super) fn absent(name: &str) -> ApiError {
    ApiError::validation(format!(
        "1 validation error detected: Value null at '{}' failed to satisfy constraint: Member must not be null",
        lower_first(name)
    ))
}

fn lower_first(name: &str) -> String {
    let mut letters = name.chars();
    letters
        .next()
        .map_or_else(String::new, |first| format!("{}{}", first.to_ascii_lowercase(), letters.as_str()))
}
