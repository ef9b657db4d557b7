//! Expressions: conditions, updates and projections as trees that code builds directly and the parser
//! makes from text.

mod apply;
mod condition_parser;
mod eval;
mod key_condition;
mod lexer;
mod parser;
mod path;
mod reserved;
mod update_parser;

pub use key_condition::{KeyCondition, SortCondition};
pub use parser::{
    Binder, parse_condition, parse_filter, parse_key_condition, parse_projection, parse_update,
};
pub use path::{Path, Projection, Segment};

use leasehold_engine::table::{AttributeName, AttributeValue};
use std::cmp::Ordering;

/// A value in a condition: at a path of the item, given, or the size of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// The value at a path of the item.
    Path(Path),
    /// A given value.
    Value(AttributeValue),
    /// `size(…)`: a string's or binary's length, a collection's number of elements.
    Size(Box<Operand>),
}

/// A comparator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparator {
    /// `=`
    Eq,
    /// `<>`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

impl Comparator {
    /// Every comparator, as expressions write the comparator.
    const SYMBOLS: [(&'static str, Self); 6] = [
        ("=", Self::Eq),
        ("<>", Self::Ne),
        ("<", Self::Lt),
        ("<=", Self::Le),
        (">", Self::Gt),
        (">=", Self::Ge),
    ];

    /// Whether two values in this order satisfy the comparator.
    fn admits(self, order: Ordering) -> bool {
        match self {
            Self::Eq => order.is_eq(),
            Self::Ne => order.is_ne(),
            Self::Lt => order.is_lt(),
            Self::Le => order.is_le(),
            Self::Gt => order.is_gt(),
            Self::Ge => order.is_ge(),
        }
    }

    /// The comparator of the same operands in the other order.
    fn mirrored(self) -> Self {
        match self {
            Self::Lt => Self::Gt,
            Self::Le => Self::Ge,
            Self::Gt => Self::Lt,
            Self::Ge => Self::Le,
            same => same,
        }
    }
}

/// A condition on an item (an absent item counts as one without attributes).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Two operands compared.
    Compare(Comparator, Operand, Operand),
    /// `a BETWEEN b AND c`
    Between(Operand, Operand, Operand),
    /// `a IN (…)`
    In(Operand, Vec<Operand>),
    /// Every one holds.
    And(Vec<Condition>),
    /// At least one condition holds.
    Or(Vec<Condition>),
    /// The inner condition does not hold.
    Not(Box<Condition>),
    /// `attribute_exists(path)`
    Exists(Path),
    /// `attribute_not_exists(path)`
    NotExists(Path),
    /// `attribute_type(path, :type)`, with DynamoDB's name of the type.
    HasType(Operand, String),
    /// `begins_with(a, b)`
    BeginsWith(Operand, Operand),
    /// `contains(a, b)`
    Contains(Operand, Operand),
}

impl Condition {
    /// `name = value`
    pub fn equals(name: impl Into<AttributeName>, value: AttributeValue) -> Self {
        Self::compare(name, Comparator::Eq, value)
    }

    /// `name <comparator> value`
    pub fn compare(name: impl Into<AttributeName>, comparator: Comparator, value: AttributeValue) -> Self {
        Self::Compare(comparator, Operand::Path(Path::attribute(name)), Operand::Value(value))
    }

    /// `attribute_exists(name)`
    pub fn exists(name: impl Into<AttributeName>) -> Self {
        Self::Exists(Path::attribute(name))
    }

    /// `attribute_not_exists(name)`
    pub fn not_exists(name: impl Into<AttributeName>) -> Self {
        Self::NotExists(Path::attribute(name))
    }

    /// This and the other.
    pub fn and(self, other: Self) -> Self {
        match self {
            Self::And(all) => Self::And(all.into_iter().chain([other]).collect()),
            single => Self::And(vec![single, other]),
        }
    }

    /// This or the other.
    pub fn or(self, other: Self) -> Self {
        match self {
            Self::Or(any) => Self::Or(any.into_iter().chain([other]).collect()),
            single => Self::Or(vec![single, other]),
        }
    }

    /// Every path the condition names, in the order of the text.
    pub fn paths(&self) -> Box<dyn Iterator<Item = &Path> + '_> {
        match self {
            Self::Compare(_, left, right) | Self::BeginsWith(left, right) | Self::Contains(left, right) => {
                Box::new([left, right].into_iter().filter_map(Operand::path))
            }
            Self::Between(value, low, high) => {
                Box::new([value, low, high].into_iter().filter_map(Operand::path))
            }
            Self::In(value, list) => {
                Box::new(value.path().into_iter().chain(list.iter().filter_map(Operand::path)))
            }
            Self::And(parts) | Self::Or(parts) => Box::new(parts.iter().flat_map(Self::paths)),
            Self::Not(inner) => inner.paths(),
            Self::Exists(path) | Self::NotExists(path) => Box::new(std::iter::once(path)),
            Self::HasType(operand, _) => Box::new(operand.path().into_iter()),
        }
    }
}

impl Operand {
    fn path(&self) -> Option<&Path> {
        match self {
            Self::Path(path) => Some(path),
            Self::Value(_) => None,
            Self::Size(inner) => inner.path(),
        }
    }
}

/// The new value of a `SET`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetValue {
    /// The value at another path.
    Path(Path),
    /// A given value.
    Value(AttributeValue),
    /// `if_not_exists(path, otherwise)`
    IfNotExists(Path, Box<SetValue>),
    /// `list_append(a, b)`
    ListAppend(Box<SetValue>, Box<SetValue>),
    /// `a + b`
    Plus(Box<SetValue>, Box<SetValue>),
    /// `a - b`
    Minus(Box<SetValue>, Box<SetValue>),
}

/// One step of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// `SET path = value`
    Set(Path, SetValue),
    /// `REMOVE path`
    Remove(Path),
    /// `ADD path :value`: to a number, or into a set.
    Add(Path, AttributeValue),
    /// `DELETE path :value`: out of a set.
    Delete(Path, AttributeValue),
    /// Legacy `ADD` of a list: appends to the list at the path.
    Append(Path, Vec<AttributeValue>),
}

impl Action {
    /// The path the step changes.
    pub fn path(&self) -> &Path {
        match self {
            Self::Set(path, _)
            | Self::Remove(path)
            | Self::Add(path, _)
            | Self::Delete(path, _)
            | Self::Append(path, _) => path,
        }
    }
}

/// The steps of an update; each step sees the item from before the update.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Update {
    /// The steps, no two on overlapping paths.
    pub actions: Vec<Action>,
}

impl Update {
    /// An update without steps.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `SET name = value`.
    pub fn set(self, name: impl Into<AttributeName>, value: AttributeValue) -> Self {
        self.with(Action::Set(Path::attribute(name), SetValue::Value(value)))
    }

    /// Adds `REMOVE name`.
    pub fn remove(self, name: impl Into<AttributeName>) -> Self {
        self.with(Action::Remove(Path::attribute(name)))
    }

    /// Adds `ADD name value`.
    pub fn add(self, name: impl Into<AttributeName>, value: AttributeValue) -> Self {
        self.with(Action::Add(Path::attribute(name), value))
    }

    /// Adds a step.
    pub fn with(mut self, action: Action) -> Self {
        self.actions.push(action);
        self
    }

    /// The changed paths as a projection, for `UPDATED_OLD` and `UPDATED_NEW`.
    pub fn projection(&self) -> Projection {
        Projection { paths: self.actions.iter().map(|action| action.path().clone()).collect() }
    }
}
