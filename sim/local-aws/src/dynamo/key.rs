//! Keys: the schema of a table or index, and the position of an item in its store.

use super::decimal::Decimal;
use super::error::{ApiError, DynamoResult};
use super::value::parse_number;
use crate::constraint::refuse_if;
use leasehold_engine::table::{AttributeName, AttributeValue, Item};

use std::sync::Arc;

/// The type of a key attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyType {
    /// A string.
    S,
    /// A number.
    N,
    /// Binary.
    B,
}

impl KeyType {
    /// DynamoDB's name of the type.
    pub fn name(self) -> &'static str {
        match self {
            Self::S => "S",
            Self::N => "N",
            Self::B => "B",
        }
    }
}

/// One attribute of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyAttribute {
    /// Its name.
    pub name: AttributeName,
    /// Its type.
    pub key_type: KeyType,
}

/// The key of a table or an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySchema {
    /// The partition (hash) key.
    pub partition: KeyAttribute,
    /// The sort (range) key, if any.
    pub sort: Option<KeyAttribute>,
}

/// A key attribute's value, in DynamoDB's sort order.
///
/// Values of two types never meet in one store, except at the bound; their order only has to be total.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyValue {
    /// A string, ordered by its UTF-8 bytes.
    S(Arc<str>),
    /// A number, ordered by value.
    N(Decimal),
    /// Binary, ordered as unsigned bytes.
    B(Vec<u8>),
    /// After every value: never stored, only a bound.
    Last,
}

impl KeyValue {
    fn read(value: &AttributeValue, key_type: KeyType) -> Option<DynamoResult<Self>> {
        match (value, key_type) {
            (AttributeValue::S(text), KeyType::S) => Some(Ok(Self::S(text.clone()))),
            (AttributeValue::N(text), KeyType::N) => Some(parse_number(text).map(Self::N)),
            (AttributeValue::B(bytes), KeyType::B) => Some(Ok(Self::B(bytes.clone()))),
            _ => None,
        }
    }

    /// The bytes of a string or binary.
    fn len(&self) -> Option<usize> {
        match self {
            Self::S(text) => Some(text.len()),
            Self::B(bytes) => Some(bytes.len()),
            Self::N(_) | Self::Last => None,
        }
    }

    fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    fn hash(&self) -> u64 {
        match self {
            Self::S(text) => scatter(b'S', text.as_bytes()),
            Self::N(number) => scatter(b'N', number.to_string().as_bytes()),
            Self::B(bytes) => scatter(b'B', bytes),
            Self::Last => u64::MAX,
        }
    }
}

/// FNV-1a, then mixed to spread short keys over the whole space: fixed for ever, and in no key order.
pub(super) fn scatter(tag: u8, bytes: &[u8]) -> u64 {
    let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let mut hash = bytes.iter().fold(fnv(0xcbf2_9ce4_8422_2325, tag), |hash, byte| fnv(hash, *byte));
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// Where an item stands: by the hash of its partition key, then by the key itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The hash of the partition key. Hashes order a scan and divide the table into segments.
    pub hash: u64,
    /// The partition key.
    pub partition: KeyValue,
    /// The sort key, if the schema has a sort key.
    pub sort: Option<KeyValue>,
}

impl Position {
    fn new(partition: KeyValue, sort: Option<KeyValue>) -> Self {
        Self { hash: partition.hash(), partition, sort }
    }

    /// The place before all positions with this hash.
    pub fn floor(hash: u64) -> Self {
        Self { hash, partition: KeyValue::S("".into()), sort: None }
    }

    /// The place after all positions in this position's partition.
    pub fn partition_end(&self) -> Self {
        Self { sort: Some(KeyValue::Last), ..self.clone() }
    }
}

impl KeySchema {
    /// The key's attributes, partition key first.
    pub fn attributes(&self) -> impl Iterator<Item = &KeyAttribute> {
        std::iter::once(&self.partition).chain(&self.sort)
    }

    /// Whether an attribute is part of the key.
    pub fn contains(&self, name: &str) -> bool {
        self.attributes().any(|attribute| attribute.name == name)
    }

    /// The position of a key given alone (`Key` of a request): exactly the key's attributes, of their types.
    pub fn position_of_key(&self, key: &Item) -> DynamoResult<Position> {
        refuse_if(key.len() != 1 + usize::from(self.sort.is_some()), mismatch)?;
        self.position(|attribute| {
            let value = key.get(&attribute.name).ok_or_else(mismatch)?;
            let value = KeyValue::read(value, attribute.key_type).ok_or_else(mismatch)??;
            refuse_if(value.is_empty(), || ApiError::invalid_parameter(empty_key(attribute)))?;
            self.check_size(attribute, &value)?;
            Ok(value)
        })
    }

    /// The position of an item whose key attributes are read in this way.
    fn position<E>(&self, read: impl Fn(&KeyAttribute) -> Result<KeyValue, E>) -> Result<Position, E> {
        let partition = read(&self.partition)?;
        Ok(Position::new(partition, self.sort.as_ref().map(read).transpose()?))
    }

    /// The position of a whole item about to be stored in the table.
    pub fn position_of_item(&self, item: &Item) -> DynamoResult<Position> {
        self.position(|attribute| {
            let value = item.get(&attribute.name).ok_or_else(|| {
                ApiError::invalid_parameter(format_args!("Missing the key {} in the item", attribute.name))
            })?;
            let key = KeyValue::read(value, attribute.key_type).ok_or_else(|| {
                ApiError::invalid_parameter(format_args!(
                    "Type mismatch for key {} expected: {} actual: {}",
                    attribute.name,
                    attribute.key_type.name(),
                    value.type_name()
                ))
            })??;
            if key.is_empty() {
                return Err(ApiError::validation(format!(
                    "One or more parameter values are not valid. {}",
                    empty_key(attribute)
                )));
            }
            self.check_size(attribute, &key)?;
            Ok(key)
        })
    }

    /// The position of an item in a sparse index: `None` where a key attribute is missing (or unfit).
    pub fn sparse_position(&self, item: &Item) -> Option<Position> {
        let piece = |attribute: &KeyAttribute| {
            let key = KeyValue::read(item.get(&attribute.name)?, attribute.key_type)?.ok()?;
            (!key.is_empty()).then_some(key)
        };
        self.position(|attribute| piece(attribute).ok_or(())).ok()
    }

    /// The first position of a partition.
    pub fn partition_start(&self, value: &AttributeValue) -> DynamoResult<Position> {
        let unfit = || ApiError::invalid_parameter("Condition parameter type does not match schema type");
        let partition = KeyValue::read(value, self.partition.key_type).ok_or_else(unfit)??;
        refuse_if(partition.is_empty(), || ApiError::invalid_parameter(empty_key(&self.partition)))?;
        Ok(Position::new(partition, None))
    }

    /// The key's attributes of an item.
    pub fn key_of(&self, item: &Item) -> Item {
        self.attributes()
            .filter_map(|attribute| Some((attribute.name.clone(), item.get(&attribute.name)?.clone())))
            .collect()
    }

    fn check_size(&self, attribute: &KeyAttribute, value: &KeyValue) -> DynamoResult<()> {
        let (most, complaint) = if attribute.name == self.partition.name {
            (2048, "Size of hashkey has exceeded the maximum size limit of2048 bytes")
        } else {
            (1024, "Aggregated size of all range keys has exceeded the size limit of 1024 bytes")
        };
        if value.len() > Some(most) { Err(ApiError::invalid_parameter(complaint)) } else { Ok(()) }
    }
}

fn mismatch() -> ApiError {
    ApiError::validation("The provided key element does not match the schema")
}

fn empty_key(attribute: &KeyAttribute) -> String {
    let kind = if attribute.key_type == KeyType::B { "binary" } else { "string" };
    format!(
        "The AttributeValue for a key attribute cannot contain an empty {kind} value. Key: {}",
        attribute.name
    )
}

#[cfg(test)]
mod tests {
    use super::super::testing::schema;
    use super::*;

    fn item(p: AttributeValue, s: AttributeValue) -> Item {
        [("p".into(), p), ("s".into(), s)].into()
    }

    #[test]
    fn a_key_must_fit_the_schema_exactly() {
        let good = item(AttributeValue::s("a"), AttributeValue::n("1"));
        assert!(schema(true).position_of_key(&good).is_ok());
        let mut more = good.clone();
        more.insert("x".into(), AttributeValue::Null);
        for bad in [
            more,
            item(AttributeValue::n("1"), AttributeValue::n("1")),
            [("p".into(), AttributeValue::s("a"))].into(),
        ] {
            let error = schema(true).position_of_key(&bad).unwrap_err();
            assert_eq!(error.message, "The provided key element does not match the schema");
        }
        let error =
            schema(true).position_of_key(&item(AttributeValue::s(""), AttributeValue::n("1"))).unwrap_err();
        assert!(error.message.contains("cannot contain an empty string value. Key: p"), "{error}");
        let long = item(AttributeValue::s("x".repeat(2049)), AttributeValue::n("1"));
        assert!(schema(true).position_of_item(&long).unwrap_err().message.contains("hashkey"));
    }

    #[test]
    fn number_keys_are_the_same_by_value() {
        let at = |number: &str| {
            let key = item(AttributeValue::s("a"), AttributeValue::n(number));
            schema(true).position_of_key(&key).unwrap()
        };
        assert_eq!(at("1.0"), at("1"));
        assert!(at("9") < at("10"));
    }

    #[test]
    fn hashes_spread_and_never_change() {
        assert_eq!(scatter(b'S', b"shardId-000000000000"), scatter(b'S', b"shardId-000000000000"));
        let mut quarters = [0; 4];
        for n in 0..1000 {
            quarters[(scatter(b'S', format!("shardId-{n:012}").as_bytes()) >> 62) as usize] += 1;
        }
        assert!(quarters.iter().all(|count| (200..300).contains(count)), "{quarters:?}");
    }
}
