//! CBOR of the Java SDKs for Kinesis.
//!
//! Two kinds of members differ from the JSON protocol: blobs are byte strings rather than base64, and times are whole
//! milliseconds under tag 1 rather than seconds. Answers of Kinesis have few members of these kinds, and their names
//! tell the kind.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ciborium::Value as Cbor;
use serde_json::{Map, Number, Value};

const EPOCH: u64 = 1;

/// The error is for the client.
pub(super) fn decode(body: &[u8]) -> Result<Value, &'static str> {
    let value: Cbor = ciborium::from_reader(body)
        .map_err(|_| "The request's body cannot be read as CBOR: one map is expected.")?;
    to_json(value)
}

pub(super) fn encode(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Writing into a vector does not fail.
    let _ = ciborium::into_writer(&to_cbor(None, value), &mut bytes);
    bytes
}

fn to_json(value: Cbor) -> Result<Value, &'static str> {
    Ok(match value {
        Cbor::Null => Value::Null,
        Cbor::Bool(flag) => Value::Bool(flag),
        Cbor::Text(text) => Value::String(text),
        Cbor::Bytes(bytes) => Value::String(STANDARD.encode(bytes)),
        Cbor::Integer(integer) => Value::Number(whole(integer)?),
        Cbor::Float(float) => {
            Value::Number(Number::from_f64(float).ok_or("A number in the request's body is not finite.")?)
        }
        Cbor::Tag(EPOCH, inner) => match *inner {
            Cbor::Integer(ms) => {
                let ms = i64::try_from(ms).map_err(|_| "A time in the request's body is out of range.")?;
                Value::Number(
                    Number::from_f64(ms as f64 / 1000.0)
                        .ok_or("A time in the request's body is out of range.")?,
                )
            }
            other => to_json(other)?,
        },
        Cbor::Tag(_, inner) => to_json(*inner)?,
        Cbor::Array(items) => Value::Array(items.into_iter().map(to_json).collect::<Result<_, _>>()?),
        Cbor::Map(members) => {
            let mut map = Map::new();
            for (key, value) in members {
                let Cbor::Text(key) = key else {
                    return Err("The key of a map in the request's body is not a text.");
                };
                map.insert(key, to_json(value)?);
            }
            Value::Object(map)
        }
        _ => return Err("A value in the request's body is of an unknown kind."),
    })
}

fn whole(integer: ciborium::value::Integer) -> Result<Number, &'static str> {
    let negative = i64::try_from(integer).map(Number::from);
    negative
        .or_else(|_| u64::try_from(integer).map(Number::from))
        .map_err(|_| "An integer in the request's body is out of range.")
}

fn to_cbor(member: Option<&str>, value: &Value) -> Cbor {
    match (member, value) {
        (Some("Data"), Value::String(text)) => match STANDARD.decode(text) {
            Ok(bytes) => Cbor::Bytes(bytes),
            Err(_) => Cbor::Text(text.clone()),
        },
        (Some(name), Value::Number(seconds)) if name.ends_with("Timestamp") => {
            let ms = match seconds.as_i64() {
                Some(whole) => whole.saturating_mul(1000),
                None => (seconds.as_f64().unwrap_or_default() * 1000.0).round() as i64,
            };
            Cbor::Tag(EPOCH, Box::new(Cbor::Integer(ms.into())))
        }
        (_, Value::Null) => Cbor::Null,
        (_, Value::Bool(flag)) => Cbor::Bool(*flag),
        (_, Value::String(text)) => Cbor::Text(text.clone()),
        (_, Value::Number(number)) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => Cbor::Integer(whole.into()),
            (None, Some(whole)) => Cbor::Integer(whole.into()),
            (None, None) => Cbor::Float(number.as_f64().unwrap_or_default()),
        },
        (_, Value::Array(items)) => Cbor::Array(items.iter().map(|item| to_cbor(None, item)).collect()),
        (_, Value::Object(members)) => {
            let pairs =
                members.iter().map(|(key, value)| (Cbor::Text(key.clone()), to_cbor(Some(key), value)));
            Cbor::Map(pairs.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn written(value: &Cbor) -> Vec<u8> {
        let mut bytes = Vec::new();
        ciborium::into_writer(value, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn blobs_and_times_become_what_the_json_protocol_has() {
        let request = Cbor::Map(vec![
            (Cbor::Text("Data".into()), Cbor::Bytes(b"hi".to_vec())),
            (
                Cbor::Text("Timestamp".into()),
                Cbor::Tag(1, Box::new(Cbor::Integer(1_770_000_000_500i64.into()))),
            ),
        ]);
        assert_eq!(decode(&written(&request)), Ok(json!({"Data": "aGk=", "Timestamp": 1_770_000_000.5})));
    }

    #[test]
    fn answers_have_byte_strings_and_milliseconds() {
        let answer =
            json!({"Records": [{"Data": "aGk=", "ApproximateArrivalTimestamp": 1_770_000_000.5}], "N": 7});
        let Ok(Cbor::Map(members)) = ciborium::from_reader(&*encode(&answer)) else { panic!("a map") };
        let records = members.iter().find(|(key, _)| key == &Cbor::Text("Records".into())).unwrap();
        let expected = Cbor::Array(vec![Cbor::Map(vec![
            (
                Cbor::Text("ApproximateArrivalTimestamp".into()),
                Cbor::Tag(1, Box::new(Cbor::Integer(1_770_000_000_500i64.into()))),
            ),
            (Cbor::Text("Data".into()), Cbor::Bytes(b"hi".to_vec())),
        ])]);
        assert_eq!(records.1, expected);
    }

    #[test]
    fn a_value_beyond_json_is_refused() {
        for odd in [
            Cbor::Float(f64::NAN),
            Cbor::Map(vec![(Cbor::Integer(1.into()), Cbor::Null)]),
            Cbor::Array(vec![Cbor::Float(f64::INFINITY)]),
        ] {
            assert!(decode(&written(&odd)).is_err(), "{odd:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&body);
        }
    }
}
