//! Conditions, updates and writes: no more of DynamoDB than lease tables need.

use super::{AttributeName, AttributeValue, Item};

/// The condition on an item for a write. A missing item has no attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The attribute is there, with any value.
    Exists(AttributeName),
    /// The attribute is missing.
    NotExists(AttributeName),
    /// The attribute is missing, or has another type than a string.
    NoString(AttributeName),
    /// The attribute exists and has exactly this type and value (numbers compare by value).
    Equals(AttributeName, AttributeValue),
    /// All these conditions hold. An empty list stands for no condition, but not within another condition: DynamoDB has
    /// no text for an empty list.
    All(Vec<Condition>),
    /// At least one of these conditions holds. Never empty when rendered.
    Any(Vec<Condition>),
}

/// Changes of single attributes. All unnamed attributes of the item stay as before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Update {
    /// Attributes to set.
    pub set: Vec<(AttributeName, AttributeValue)>,
    /// Numbers to add to; an absent number counts as 0.
    pub add: Vec<(AttributeName, i64)>,
    /// Attributes to remove; an absent attribute is no error.
    pub remove: Vec<AttributeName>,
}

impl Update {
    /// Adds an attribute to set.
    pub fn set(mut self, name: &'static str, value: AttributeValue) -> Self {
        self.set.push((name.into(), value));
        self
    }

    /// Adds an attribute to set, if it has a value.
    pub(crate) fn set_some(self, name: &'static str, value: Option<AttributeValue>) -> Self {
        match value {
            Some(value) => self.set(name, value),
            None => self,
        }
    }

    /// Adds a number to add to.
    pub fn add(mut self, name: &'static str, number: i64) -> Self {
        self.add.push((name.into(), number));
        self
    }

    /// Adds an attribute to remove.
    pub fn remove(mut self, name: &'static str) -> Self {
        self.remove.push(name.into());
        self
    }
}

/// The action of a write if its condition holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Replace the whole item, or create it.
    Put(Item),
    /// Change some attributes, or create an item of the key and these.
    Update(Update),
    /// Remove the item.
    Delete,
}

/// One guarded write of one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemWrite {
    /// The primary key.
    pub key: Item,
    /// The condition.
    pub condition: Condition,
    /// The action if the condition holds.
    pub action: Action,
}
