//! Converts values between the SDK and the engine.

use aws_sdk_dynamodb::types::AttributeValue as Sdk;
use aws_smithy_types::{Blob, DateTime};
use leasehold_engine::table::{AttributeName, AttributeValue, Item};
use leasehold_engine::time::Wall;

pub(super) fn wall_to_sdk(at: Wall) -> DateTime {
    DateTime::from_millis(at.0)
}

pub(super) fn value_to_sdk(value: AttributeValue) -> Sdk {
    match value {
        AttributeValue::S(text) => Sdk::S(text.to_string()),
        AttributeValue::N(text) => Sdk::N(text.to_string()),
        AttributeValue::B(bytes) => Sdk::B(Blob::new(bytes)),
        AttributeValue::Ss(set) => Sdk::Ss(set.into_iter().collect()),
        AttributeValue::Ns(set) => Sdk::Ns(set.into_iter().collect()),
        AttributeValue::Bs(set) => Sdk::Bs(set.into_iter().map(Blob::new).collect()),
        AttributeValue::Bool(value) => Sdk::Bool(value),
        AttributeValue::Null => Sdk::Null(true),
        AttributeValue::L(list) => Sdk::L(list.into_iter().map(value_to_sdk).collect()),
        AttributeValue::M(map) => {
            Sdk::M(map.into_iter().map(|(name, value)| (name, value_to_sdk(value))).collect())
        }
    }
}

/// `None` for a type this version of the SDK does not know.
pub(super) fn value_from_sdk(value: Sdk) -> Option<AttributeValue> {
    Some(match value {
        Sdk::S(text) => AttributeValue::s(text),
        Sdk::N(text) => AttributeValue::n(text),
        Sdk::B(bytes) => AttributeValue::B(bytes.into_inner()),
        Sdk::Ss(set) => AttributeValue::Ss(set.into_iter().collect()),
        Sdk::Ns(set) => AttributeValue::Ns(set.into_iter().collect()),
        Sdk::Bs(set) => AttributeValue::Bs(set.into_iter().map(Blob::into_inner).collect()),
        Sdk::Bool(value) => AttributeValue::Bool(value),
        Sdk::Null(_) => AttributeValue::Null,
        Sdk::L(list) => AttributeValue::L(list.into_iter().map(value_from_sdk).collect::<Option<_>>()?),
        Sdk::M(map) => AttributeValue::M(
            map.into_iter()
                .map(|(name, value)| Some((name, value_from_sdk(value)?)))
                .collect::<Option<_>>()?,
        ),
        _ => return None,
    })
}

/// A map as the SDK has them.
#[expect(clippy::disallowed_types, reason = "the SDK asks for these maps; nothing looks at their order")]
pub(crate) type SdkMap<V> = std::collections::HashMap<String, V>;

pub(super) fn item_to_sdk(item: Item) -> SdkMap<Sdk> {
    item.into_iter().map(|(name, value)| (name.into_owned(), value_to_sdk(value))).collect()
}

/// Attributes of an unknown type are left out: no row of ours has an unknown type, and writes touch our attributes
/// only.
pub fn item_from_sdk(item: SdkMap<Sdk>) -> Item {
    item.into_iter()
        .filter_map(|(name, value)| Some((AttributeName::from(name), value_from_sdk(value)?)))
        .collect()
}
