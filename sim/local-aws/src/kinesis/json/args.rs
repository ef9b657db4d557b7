//! Reading a request: types first, then constraints, with the service's own messages.

use super::rules::Rule;
use crate::kinesis::error::{ApiError, ApiResult};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value};

const MOST_REPORTED: usize = 10;

/// The members of a structure. A wrong type is refused at once; violated constraints are collected, and
/// [`finish`](Args::finish) names all of them, like the service.
pub(crate) struct Args {
    members: Map<String, Value>,
    path: String,
    violations: Vec<String>,
}

impl Args {
    pub(super) fn new(body: Value) -> ApiResult<Self> {
        Self::nested(body, String::new())
    }

    fn nested(body: Value, path: String) -> ApiResult<Self> {
        match body {
            Value::Object(members) => Ok(Args { members, path, violations: Vec::new() }),
            Value::Array(_) => Err(ApiError::serialization("Start of list found where not expected")),
            _ => Err(ApiError::serialization("Expected null")),
        }
    }

    /// Refuses a request with violations.
    pub(super) fn finish(self) -> ApiResult<()> {
        let count = self.violations.len().min(MOST_REPORTED);
        if count == 0 {
            return Ok(());
        }
        let plural = if count == 1 { "" } else { "s" };
        Err(ApiError::validation(format!(
            "{count} validation error{plural} detected: {}",
            self.violations[..count].join("; ")
        )))
    }

    fn take(&mut self, key: &str) -> Option<Value> {
        self.members.remove(key).filter(|value| !value.is_null())
    }

    /// The member's name in messages: `shardFilter.type`.
    fn name(&self, key: &str) -> String {
        let mut chars = key.chars();
        let first = chars.next().map(|c| c.to_ascii_lowercase());
        let dot = if self.path.is_empty() { "" } else { "." };
        format!("{}{dot}{}{}", self.path, first.map(String::from).unwrap_or_default(), chars.as_str())
    }

    fn violate(&mut self, key: &str, value: &str, constraint: &str) {
        let name = self.name(key);
        self.violations.push(format!("Value {value} at '{name}' failed to satisfy constraint: {constraint}"));
    }

    fn missing(&mut self, key: &str) {
        self.violate(key, "null", "Member must not be null");
    }

    pub(super) fn text(&mut self, key: &str, rule: &Rule) -> ApiResult<Option<String>> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        let Value::String(text) = value else {
            return Err(mistyped(&value, "String"));
        };
        for constraint in rule.violated_by(&text) {
            self.violate(key, &format!("'{text}'"), &constraint);
        }
        Ok(Some(text))
    }

    pub(super) fn required_text(&mut self, key: &str, rule: &Rule) -> ApiResult<String> {
        let text = self.text(key, rule)?;
        if text.is_none() {
            self.missing(key);
        }
        Ok(text.unwrap_or_default())
    }

    pub(super) fn integer(&mut self, key: &str, least: i64, most: i64) -> ApiResult<Option<i64>> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        let Value::Number(number) = &value else {
            return Err(mistyped(&value, "Integer"));
        };
        let number = number.as_i64().unwrap_or_else(|| number.as_f64().unwrap_or(0.0).floor() as i64);
        let constraint = match number {
            n if n < least => Some(format!("Member must have value greater than or equal to {least}")),
            n if n > most => Some(format!("Member must have value less than or equal to {most}")),
            _ => None,
        };
        if let Some(constraint) = constraint {
            self.violate(key, &format!("'{number}'"), &constraint);
        }
        Ok(Some(number))
    }

    pub(super) fn required_integer(&mut self, key: &str, least: i64, most: i64) -> ApiResult<i64> {
        let number = self.integer(key, least, most)?;
        if number.is_none() {
            self.missing(key);
        }
        Ok(number.unwrap_or(least))
    }

    /// As [`integer`](Self::integer), for what the service holds in 32 bits.
    pub(super) fn count(&mut self, key: &str, most: u32) -> ApiResult<Option<u32>> {
        let number = self.integer(key, 1, i64::from(most))?;
        Ok(number.map(|number| u32::try_from(number).unwrap_or(0)))
    }

    pub(super) fn flag(&mut self, key: &str) -> ApiResult<bool> {
        match self.take(key) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(other) => Err(mistyped(&other, "Boolean")),
        }
    }

    /// Seconds since the epoch on the wire; milliseconds here.
    pub(super) fn time_ms(&mut self, key: &str) -> ApiResult<Option<i64>> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Number(seconds)) => Ok(Some(match seconds.as_i64() {
                Some(whole) => whole.saturating_mul(1000),
                None => (seconds.as_f64().unwrap_or(0.0) * 1000.0).round() as i64,
            })),
            Some(Value::String(_)) => Err(ApiError::serialization(
                "class java.lang.String can not be converted to milliseconds since epoch",
            )),
            Some(other) => Err(mistyped(&other, "Timestamp")),
        }
    }

    pub(super) fn required_blob(&mut self, key: &str, most: usize) -> ApiResult<Bytes> {
        let Some(value) = self.take(key) else {
            self.missing(key);
            return Ok(Bytes::new());
        };
        let Value::String(text) = value else {
            return Err(mistyped(&value, "Blob"));
        };
        let bytes = STANDARD.decode(&text).map_err(|_| {
            ApiError::serialization(format!(
                "The text at '{}' can not be converted to a Blob: it is not base64 with padding",
                self.name(key)
            ))
        })?;
        if bytes.len() > most {
            let size = bytes.len();
            let shown = format!("'java.nio.HeapByteBuffer[pos=0 lim={size} cap={size}]'");
            self.violate(key, &shown, &format!("Member must have length less than or equal to {most}"));
        }
        Ok(bytes.into())
    }

    /// A nested structure, handed to `read`; its violations count for the outer structure.
    pub(super) fn structure<T>(
        &mut self, key: &str, read: impl FnOnce(&mut Args) -> ApiResult<T>,
    ) -> ApiResult<Option<T>> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        let mut nested = Args::nested(value, self.name(key))?;
        let result = read(&mut nested)?;
        self.violations.append(&mut nested.violations);
        Ok(Some(result))
    }

    /// A list of `least` to `most` structures.
    pub(super) fn structures<T>(
        &mut self, key: &str, (least, most): (usize, usize), mut read: impl FnMut(&mut Args) -> ApiResult<T>,
    ) -> ApiResult<Vec<T>> {
        let Some(items) = self.list(key, (least, most))? else {
            self.missing(key);
            return Ok(Vec::new());
        };
        let name = self.name(key);
        let mut result = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let mut nested = Args::nested(item, format!("{name}.{}.member", index + 1))?;
            result.push(read(&mut nested)?);
            self.violations.append(&mut nested.violations);
        }
        Ok(result)
    }

    /// A required list of texts.
    pub(super) fn texts(&mut self, key: &str, bounds: (usize, usize), rule: &Rule) -> ApiResult<Vec<String>> {
        let Some(items) = self.list(key, bounds)? else {
            self.missing(key);
            return Ok(Vec::new());
        };
        let mut texts = Vec::with_capacity(items.len());
        for item in items {
            let Value::String(text) = item else {
                return Err(mistyped(&item, "String"));
            };
            for constraint in rule.violated_by(&text) {
                self.violate(
                    key,
                    &format!("'[{text}]'"),
                    &format!("Member must satisfy constraint: [{constraint}]"),
                );
            }
            texts.push(text);
        }
        Ok(texts)
    }

    fn list(&mut self, key: &str, (least, most): (usize, usize)) -> ApiResult<Option<Vec<Value>>> {
        let items = match self.take(key) {
            None => return Ok(None),
            Some(Value::Array(items)) => items,
            Some(Value::Object(_)) => {
                return Err(ApiError::serialization("Start of structure or map found where not expected."));
            }
            Some(_) => return Err(ApiError::serialization("Expected list or null")),
        };
        let bound = match items.len() {
            n if n < least => Some(format!("greater than or equal to {least}")),
            n if n > most => Some(format!("less than or equal to {most}")),
            _ => None,
        };
        if let Some(bound) = bound {
            let shown = format!("'[{} members]'", items.len());
            self.violate(key, &shown, &format!("Member must have length {bound}"));
        }
        Ok(Some(items))
    }

    /// A map of texts.
    pub(super) fn map(
        &mut self, key: &str, key_rule: &Rule, value_rule: &Rule,
    ) -> ApiResult<Option<Vec<(String, String)>>> {
        let members = match self.take(key) {
            None => return Ok(None),
            Some(Value::Object(members)) => members,
            Some(Value::Array(_)) => {
                return Err(ApiError::serialization("Start of list found where not expected"));
            }
            Some(_) => return Err(ApiError::serialization("Expected map or null")),
        };
        let mut pairs = Vec::with_capacity(members.len());
        for (name, value) in members {
            let value = match value {
                Value::String(text) => text,
                Value::Null => String::new(),
                other => return Err(mistyped(&other, "String")),
            };
            for (what, constraints) in
                [("keys", key_rule.violated_by(&name)), ("value", value_rule.violated_by(&value))]
            {
                for constraint in constraints {
                    let shown = format!("'{{{name}={value}}}'");
                    self.violate(key, &shown, &format!("Map {what} must satisfy constraint: [{constraint}]"));
                }
            }
            pairs.push((name, value));
        }
        Ok(Some(pairs))
    }

    pub(super) fn required_map(
        &mut self, key: &str, key_rule: &Rule, value_rule: &Rule,
    ) -> ApiResult<Vec<(String, String)>> {
        let map = self.map(key, key_rule, value_rule)?;
        if map.is_none() {
            self.missing(key);
        }
        Ok(map.unwrap_or_default())
    }
}

fn mistyped(value: &Value, wanted: &str) -> ApiError {
    ApiError::serialization(match value {
        Value::Array(_) => "Start of list found where not expected".to_owned(),
        Value::Object(_) => "Start of structure or map found where not expected.".to_owned(),
        Value::String(_) => format!("class java.lang.String can not be converted to an {wanted}"),
        Value::Bool(_) => format!("class java.lang.Boolean can not be converted to an {wanted}"),
        _ => format!(
            "class com.amazon.coral.value.json.numbers.TruncatingBigNumber can not be converted to an {wanted}"
        ),
    })
}
