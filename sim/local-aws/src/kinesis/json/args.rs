//! Reading a request: types first, then constraints, with the service's own messages.

use super::rules::{Rule, TAG_KEY, TAG_VALUE};
use crate::constraint::beyond;
use crate::kinesis::error::{ApiError, ApiResult};
use crate::kinesis::tags::Tags;
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

    /// The value of a required member. A missing member is a violation, so that no operation sees the default.
    pub(super) fn required<T: Default>(&mut self, key: &str, value: Option<T>) -> T {
        value.unwrap_or_else(|| {
            self.violate(key, "null", "Member must not be null");
            T::default()
        })
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
        Ok(self.required(key, text))
    }

    pub(super) fn integer(&mut self, key: &str, least: i64, most: i64) -> ApiResult<Option<i64>> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        let Value::Number(number) = &value else {
            return Err(mistyped(&value, "Integer"));
        };
        let number = number.as_i64().unwrap_or_else(|| number.as_f64().unwrap_or(0.0).floor() as i64);
        if let Some(bound) = beyond(number, least, most) {
            self.violate(key, &format!("'{number}'"), &format!("Member must have value {bound}"));
        }
        Ok(Some(number))
    }

    pub(super) fn required_integer(&mut self, key: &str, least: i64, most: i64) -> ApiResult<i64> {
        let number = self.integer(key, least, most)?;
        Ok(self.required(key, number))
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
            return Ok(self.required(key, None));
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
        &mut self, key: &str, bounds: (usize, usize), mut read: impl FnMut(&mut Args) -> ApiResult<T>,
    ) -> ApiResult<Vec<T>> {
        let items = self.required_list(key, bounds)?;
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
        let items = self.required_list(key, bounds)?;
        let mut texts = Vec::with_capacity(items.len());
        for item in items {
            let Value::String(text) = item else {
                return Err(mistyped(&item, "String"));
            };
            for constraint in rule.violated_by(&text) {
                let constraint = format!("Member must satisfy constraint: [{constraint}]");
                self.violate(key, &format!("'[{text}]'"), &constraint);
            }
            texts.push(text);
        }
        Ok(texts)
    }

    fn required_list(&mut self, key: &str, (least, most): (usize, usize)) -> ApiResult<Vec<Value>> {
        let items = match self.take(key) {
            None => return Ok(self.required(key, None)),
            Some(Value::Array(items)) => items,
            Some(Value::Object(_)) => {
                return Err(ApiError::serialization("Start of structure or map found where not expected."));
            }
            Some(_) => return Err(ApiError::serialization("Expected list or null")),
        };
        if let Some(bound) = beyond(items.len(), least, most) {
            let shown = format!("'[{} members]'", items.len());
            self.violate(key, &shown, &format!("Member must have length {bound}"));
        }
        Ok(items)
    }

    /// `Tags`.
    pub(super) fn tags(&mut self) -> ApiResult<Option<Tags>> {
        let key = "Tags";
        let members = match self.take(key) {
            None => return Ok(None),
            Some(Value::Object(members)) => members,
            Some(Value::Array(_)) => {
                return Err(ApiError::serialization("Start of list found where not expected"));
            }
            Some(_) => return Err(ApiError::serialization("Expected map or null")),
        };
        let mut tags = Tags::new();
        for (name, value) in members {
            let value = match value {
                Value::String(text) => text,
                Value::Null => String::new(),
                other => return Err(mistyped(&other, "String")),
            };
            for (what, rule, text) in [("keys", TAG_KEY, &name), ("value", TAG_VALUE, &value)] {
                for constraint in rule.violated_by(text) {
                    let shown = format!("'{{{name}={value}}}'");
                    self.violate(key, &shown, &format!("Map {what} must satisfy constraint: [{constraint}]"));
                }
            }
            tags.insert(name, value);
        }
        Ok(Some(tags))
    }

    pub(super) fn required_tags(&mut self) -> ApiResult<Tags> {
        let tags = self.tags()?;
        Ok(self.required("Tags", tags))
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
