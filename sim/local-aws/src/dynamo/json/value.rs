//! Attribute values in DynamoDB's JSON.

use super::body::{list, string, wrong_kind};
use crate::constraint::refuse_if;
use crate::dynamo::error::{ApiError, DynamoResult};
use crate::dynamo::value::{MAX_DEPTH, normalize};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use leasehold_engine::table::{AttributeName, AttributeValue, Item};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// A value, checked, its numbers in normal form.
pub fn attribute(json: &Value) -> DynamoResult<AttributeValue> {
    let mut value = parse_attribute(json)?;
    normalize(&mut value)?;
    Ok(value)
}

/// An item, its values checked.
pub fn parse_item(json: &Value) -> DynamoResult<Item> {
    let Value::Object(map) = json else {
        return Err(match json {
            Value::Array(_) => ApiError::serialization(
                "Unrecognized collection type java.util.Map<java.lang.String, \
                 com.amazonaws.dynamodb.v20120810.AttributeValue>",
            ),
            _ => ApiError::serialization("Unexpected field type"),
        });
    };
    map.iter().map(|(name, value)| Ok((AttributeName::Owned(name.clone()), attribute(value)?))).collect()
}

/// A value in its written form, without checks of its content.
pub(super) fn parse_attribute(json: &Value) -> DynamoResult<AttributeValue> {
    parse_at(json, 1)
}

fn parse_at(json: &Value, depth: usize) -> DynamoResult<AttributeValue> {
    refuse_if(depth > MAX_DEPTH, || ApiError::validation("Nesting Levels have exceeded supported limits"))?;
    let Value::Object(map) = json else {
        return Err(match json {
            Value::Array(_) => ApiError::serialization(
                "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.AttributeValue",
            ),
            _ => ApiError::serialization("Unexpected value type in payload"),
        });
    };
    let mut found = None;
    for (name, content) in map.iter().filter(|(_, content)| !content.is_null()) {
        let value = match name.as_str() {
            "S" => AttributeValue::s(string(content)?),
            "N" => AttributeValue::n(string(content)?),
            "B" => AttributeValue::B(binary(content)?),
            "SS" => AttributeValue::Ss(set(content, |text| string(text).map(str::to_owned))?),
            "NS" => AttributeValue::Ns(set(content, |text| string(text).map(str::to_owned))?),
            "BS" => AttributeValue::Bs(set(content, binary)?),
            "BOOL" => match content {
                Value::Bool(flag) => AttributeValue::Bool(*flag),
                other => return Err(wrong_kind(other, "Boolean")),
            },
            "NULL" => match content {
                Value::Bool(true) => AttributeValue::Null,
                Value::Bool(false) => {
                    return Err(ApiError::invalid_parameter(
                        "Null attribute value types must have the value of true",
                    ));
                }
                other => return Err(wrong_kind(other, "Boolean")),
            },
            "L" => AttributeValue::L(
                list(content)?.iter().map(|value| parse_at(value, depth + 1)).collect::<Result<_, _>>()?,
            ),
            "M" => match content {
                Value::Object(map) => AttributeValue::M(
                    map.iter()
                        .map(|(name, value)| Ok((name.clone(), parse_at(value, depth + 1)?)))
                        .collect::<DynamoResult<_>>()?,
                ),
                _ => return Err(ApiError::serialization("Unexpected field type")),
            },
            // Unknown members are ignored everywhere.
            _ => continue,
        };
        if found.replace(value).is_some() {
            return Err(ApiError::validation(
                "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the \
                 supported datatypes",
            ));
        }
    }
    found.ok_or_else(|| {
        ApiError::validation(
            "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
        )
    })
}

fn binary(content: &Value) -> DynamoResult<Vec<u8>> {
    let text = content
        .as_str()
        .ok_or_else(|| ApiError::serialization("only base-64-encoded strings are convertible to bytes"))?;
    STANDARD.decode(text).map_err(|_| {
        if text.len().is_multiple_of(4) {
            ApiError::serialization("Invalid last non-pad Base64 character dectected")
        } else {
            ApiError::serialization(format!(
                "Base64 encoded length is expected a multiple of 4 bytes but found: {}",
                text.len()
            ))
        }
    })
}

fn set<T: Ord>(content: &Value, element: impl Fn(&Value) -> DynamoResult<T>) -> DynamoResult<BTreeSet<T>> {
    let mut elements = BTreeSet::new();
    for content in list(content)? {
        if !elements.insert(element(content)?) {
            return Err(ApiError::invalid_parameter("Input collection contains duplicates."));
        }
    }
    Ok(elements)
}

/// A value in JSON.
pub fn show(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::S(text) => json!({ "S": **text }),
        AttributeValue::N(text) => json!({ "N": **text }),
        AttributeValue::B(bytes) => json!({ "B": STANDARD.encode(bytes) }),
        AttributeValue::Ss(set) => json!({ "SS": set }),
        AttributeValue::Ns(set) => json!({ "NS": set }),
        AttributeValue::Bs(set) => {
            json!({ "BS": set.iter().map(|bytes| STANDARD.encode(bytes)).collect::<Vec<_>>() })
        }
        AttributeValue::Bool(flag) => json!({ "BOOL": flag }),
        AttributeValue::Null => json!({ "NULL": true }),
        AttributeValue::L(list) => json!({ "L": list.iter().map(show).collect::<Vec<_>>() }),
        AttributeValue::M(map) => {
            let map: Map<String, Value> =
                map.iter().map(|(name, value)| (name.clone(), show(value))).collect();
            json!({ "M": map })
        }
    }
}

/// An item in JSON.
pub fn show_item(item: &Item) -> Value {
    Value::Object(item.iter().map(|(name, value)| (name.to_string(), show(value))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_goes_there_and_back() {
        let json = json!({
            "s": {"S": ""}, "n": {"N": "-1.5"}, "b": {"B": "AAE="}, "t": {"BOOL": false}, "z": {"NULL": true},
            "ss": {"SS": ["a", "b"]}, "ns": {"NS": ["1", "2"]}, "bs": {"BS": ["AAE="]},
            "l": {"L": [{"M": {"x": {"N": "1"}}}, {"L": []}]}, "m": {"M": {}}
        });
        assert_eq!(show_item(&parse_item(&json).unwrap()), json);
    }

    #[test]
    fn a_text_that_is_no_value_is_refused_in_the_services_words() {
        for (json, code, part) in [
            (json!({}), "ValidationException", "is empty"),
            (json!({"X": "1"}), "ValidationException", "is empty"),
            (json!({"S": "a", "N": "1"}), "ValidationException", "more than one datatypes"),
            (json!({"NULL": false}), "ValidationException", "value of true"),
            (json!({"SS": []}), "ValidationException", "string set  may not be empty"),
            (json!({"SS": ["a", "a"]}), "ValidationException", "duplicates"),
            (json!({"N": "abc"}), "ValidationException", "numeric value: abc"),
            (json!({"S": 1}), "SerializationException", "NUMBER_VALUE cannot be converted to String"),
            (json!({"N": 1.5}), "SerializationException", "DECIMAL_VALUE"),
            (json!({"B": "x"}), "SerializationException", "multiple of 4"),
            (json!({"B": true}), "SerializationException", "base-64"),
            (json!({"L": {}}), "SerializationException", "Start of structure"),
            (json!({"M": []}), "SerializationException", "Unexpected field type"),
            (json!("text"), "SerializationException", "Unexpected value type"),
        ] {
            let error = attribute(&json).unwrap_err();
            assert_eq!(error.code, code, "{json}");
            assert!(error.message.contains(part), "{json}: {error}");
        }
        let deep = (0..500).fold(json!({"S": "x"}), |inner, _| json!({ "L": [inner] }));
        assert!(attribute(&deep).unwrap_err().message.contains("Nesting"));
    }

    #[test]
    fn binary_in_another_form_than_the_service_writes_is_refused() {
        for text in ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="] {
            let value = attribute(&json!({ "B": text })).expect("a value of DynamoDB");
            assert_eq!(show(&value), json!({ "B": text }));
        }
        for bad in ["Z", "Zg", "Zg=", "Zh==", "Zm9=", "====", "Z===", "Zm9v!A==", "Z=9v"] {
            assert!(attribute(&json!({ "B": bad })).is_err(), "{bad}");
        }
    }
}
