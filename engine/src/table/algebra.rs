//! Conditions, updates and writes: no more of DynamoDB than lease tables need.

use super::{AttributeName, AttributeValue, Item};

/// What must hold of an item for a write to be made. An item that does not exist has no attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The attribute is there, with any value.
    Exists(AttributeName),
    /// The attribute is not there.
    NotExists(AttributeName),
    /// The attribute is not there, or is of another type than a string.
    NoString(AttributeName),
    /// The attribute is there and has this very type and value (numbers compare by value).
    Equals(AttributeName, AttributeValue),
    /// All of these hold. None at all stand for no condition, but not within another one: DynamoDB has no text for that.
    All(Vec<Condition>),
    /// One of these holds at least. Never empty when it is rendered.
    Any(Vec<Condition>),
}

/// Changes of single attributes. All others of the item stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Update {
    /// Attributes to set.
    pub set: Vec<(AttributeName, AttributeValue)>,
    /// Numbers to add to; an absent one counts as 0.
    pub add: Vec<(AttributeName, i64)>,
    /// Attributes to remove; it is no error if one is absent.
    pub remove: Vec<AttributeName>,
}

impl Update {
    /// Adds an attribute to set.
    pub fn set(mut self, name: &'static str, value: AttributeValue) -> Self {
        self.set.push((name.into(), value));
        self
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

/// What a write does if its condition holds.
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
    /// What must hold.
    pub condition: Condition,
    /// What to do then.
    pub action: Action,
}
