//! Attribute values and items, as DynamoDB types them.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The name of an attribute. Protocol names are static; foreign names are owned.
pub type AttributeName = Cow<'static, str>;

/// One item: attribute name to value, in name order.
pub type Item = BTreeMap<AttributeName, AttributeValue>;

/// A DynamoDB attribute value. Numbers keep the decimal text they came with. Texts are shared: a clone copies none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AttributeValue {
    /// A string.
    S(Arc<str>),
    /// A number, as decimal text (DynamoDB carries 38 digits, more than any machine type).
    N(Arc<str>),
    /// Binary.
    B(Vec<u8>),
    /// A set of strings.
    Ss(BTreeSet<String>),
    /// A set of numbers, as decimal text.
    Ns(BTreeSet<String>),
    /// A set of binaries.
    Bs(BTreeSet<Vec<u8>>),
    /// A boolean.
    Bool(bool),
    /// The null value, which is not the same as an absent attribute.
    Null,
    /// A list of values.
    L(Vec<AttributeValue>),
    /// A map of values.
    M(BTreeMap<String, AttributeValue>),
}

impl AttributeValue {
    /// A string value.
    pub fn s(text: impl Into<Arc<str>>) -> Self {
        Self::S(text.into())
    }

    /// A number value from any value that prints as a number.
    pub fn n(number: impl ToString) -> Self {
        Self::N(number.to_string().into())
    }

    /// The string inside, if the value is a string.
    pub fn as_s(&self) -> Option<&str> {
        match self {
            Self::S(text) => Some(text),
            _ => None,
        }
    }

    /// The number's text, if the value is a number.
    pub fn as_n(&self) -> Option<&str> {
        match self {
            Self::N(text) => Some(text),
            _ => None,
        }
    }

    /// DynamoDB's own name of the type, one or two letters long.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::S(_) => "S",
            Self::N(_) => "N",
            Self::B(_) => "B",
            Self::Ss(_) => "SS",
            Self::Ns(_) => "NS",
            Self::Bs(_) => "BS",
            Self::Bool(_) => "BOOL",
            Self::Null => "NULL",
            Self::L(_) => "L",
            Self::M(_) => "M",
        }
    }
}
