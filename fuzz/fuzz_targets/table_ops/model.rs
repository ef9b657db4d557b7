//! What DynamoDB does, told once more and as plainly as possible: from its documentation, and with no line of the service under test.
//!
//! Values are trees of an own type, numbers are whole tenths, and a table is one ordered map.

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum V {
    S(String),
    /// In tenths.
    N(i128),
    B(Vec<u8>),
    Bool(bool),
    Null,
    Ss(BTreeSet<String>),
    Ns(BTreeSet<i128>),
    L(Vec<V>),
    M(BTreeMap<String, V>),
}

/// An item: attributes by name.
pub type Item = BTreeMap<String, V>;

/// A step into a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    Key(String),
    Index(usize),
}

/// An attribute, and steps into its value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path {
    pub head: String,
    pub rest: Vec<Step>,
}

#[derive(Clone, Debug)]
pub enum Operand {
    At(Path),
    Given(V),
    Size(Path),
}

#[derive(Clone, Debug)]
pub enum Condition {
    Compare(&'static str, Operand, Operand),
    Between(Operand, Operand, Operand),
    In(Operand, Vec<Operand>),
    Exists(Path),
    NotExists(Path),
    HasType(Path, &'static str),
    BeginsWith(Path, Operand),
    Contains(Path, Operand),
    And(Vec<Condition>),
    Or(Vec<Condition>),
    Not(Box<Condition>),
}

#[derive(Clone, Debug)]
pub enum Expression {
    Given(V),
    At(Path),
    IfNotExists(Path, Box<Expression>),
    Append(Box<Expression>, Box<Expression>),
    Plus(Box<Expression>, Box<Expression>),
    Minus(Box<Expression>, Box<Expression>),
}

#[derive(Clone, Debug)]
pub enum Change {
    Set(Path, Expression),
    Remove(Path),
    /// To a whole attribute.
    Add(String, V),
    /// Out of a whole attribute.
    Delete(String, V),
}

/// The service refuses the request.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused;

impl V {
    /// The name of the type.
    pub fn letters(&self) -> &'static str {
        match self {
            V::S(_) => "S",
            V::N(_) => "N",
            V::B(_) => "B",
            V::Bool(_) => "BOOL",
            V::Null => "NULL",
            V::Ss(_) => "SS",
            V::Ns(_) => "NS",
            V::L(_) => "L",
            V::M(_) => "M",
        }
    }

    /// The value in the protocol's form; `spelling` chooses the spelling of numbers, 0 is the normal spelling.
    pub fn json(&self, spelling: u8) -> Value {
        match self {
            V::S(text) => json!({ "S": text }),
            V::N(tenths) => json!({ "N": number(*tenths, spelling) }),
            V::B(bytes) => json!({ "B": base64(bytes) }),
            V::Bool(value) => json!({ "BOOL": value }),
            V::Null => json!({ "NULL": true }),
            V::Ss(set) => json!({ "SS": set }),
            V::Ns(set) => {
                let numbers: BTreeSet<String> = set.iter().map(|tenths| number(*tenths, spelling)).collect();
                json!({ "NS": numbers })
            }
            V::L(list) => json!({ "L": list.iter().map(|value| value.json(spelling)).collect::<Vec<_>>() }),
            V::M(map) => json!({ "M": item_json(map, spelling) }),
        }
    }
}

/// An item in the protocol's form.
pub fn item_json(item: &Item, spelling: u8) -> Value {
    let attributes = item.iter().map(|(name, value)| (name.clone(), value.json(spelling)));
    Value::Object(attributes.collect::<Map<_, _>>())
}

fn number(tenths: i128, spelling: u8) -> String {
    let sign = if tenths < 0 { "-" } else { "" };
    let (whole, part) = (tenths.unsigned_abs() / 10, tenths.unsigned_abs() % 10);
    match spelling {
        1 => format!("{sign}{whole}.{part}00"),
        2 => format!("{tenths}E-1"),
        3 => format!("{sign}00{whole}.{part}"),
        _ if part == 0 => format!("{sign}{whole}"),
        _ => format!("{sign}{whole}.{part}"),
    }
}

fn base64(bytes: &[u8]) -> String {
    let letters: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(['+', '/']).collect();
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, n| bits << 8 | usize::from(three.get(n).copied().unwrap_or(0)));
        for n in 0..4 {
            text.push(if n <= three.len() { letters[bits >> (18 - 6 * n) & 63] } else { '=' });
        }
    }
    text
}

/// The value at a path.
pub fn find<'a>(item: &'a Item, path: &Path) -> Option<&'a V> {
    path.rest.iter().try_fold(item.get(&path.head)?, |value, step| into(value, step))
}

fn into<'a>(value: &'a V, step: &Step) -> Option<&'a V> {
    match (value, step) {
        (V::M(map), Step::Key(key)) => map.get(key),
        (V::L(list), Step::Index(index)) => list.get(*index),
        _ => None,
    }
}

impl Operand {
    fn value(&self, item: &Item) -> Option<V> {
        match self {
            Operand::At(path) => find(item, path).cloned(),
            Operand::Given(value) => Some(value.clone()),
            Operand::Size(path) => {
                let size = match find(item, path)? {
                    V::S(text) => text.len(),
                    V::B(bytes) => bytes.len(),
                    V::Ss(set) => set.len(),
                    V::Ns(set) => set.len(),
                    V::L(list) => list.len(),
                    V::M(map) => map.len(),
                    V::N(_) | V::Bool(_) | V::Null => return None,
                };
                Some(V::N(size as i128 * 10))
            }
        }
    }
}

/// Whether `left operator right`. Only strings, numbers and bytes have an order, each among themselves.
fn compare(operator: &str, left: Option<&V>, right: Option<&V>) -> bool {
    let (Some(left), Some(right)) = (left, right) else {
        return operator == "<>";
    };
    let ordered = left.letters() == right.letters() && matches!(left, V::S(_) | V::N(_) | V::B(_));
    match operator {
        "=" => left == right,
        "<>" => left != right,
        "<" => ordered && left < right,
        "<=" => ordered && left <= right,
        ">" => ordered && left > right,
        _ => ordered && left >= right,
    }
}

impl Condition {
    /// Whether the condition holds for an item; an absent item counts as empty.
    pub fn holds(&self, item: &Item) -> bool {
        let value = |operand: &Operand| operand.value(item);
        match self {
            Condition::Compare(operator, left, right) => {
                compare(operator, value(left).as_ref(), value(right).as_ref())
            }
            Condition::Between(middle, low, high) => {
                let middle = value(middle);
                compare(">=", middle.as_ref(), value(low).as_ref())
                    && compare("<=", middle.as_ref(), value(high).as_ref())
            }
            Condition::In(one, list) => {
                list.iter().any(|other| compare("=", value(one).as_ref(), value(other).as_ref()))
            }
            Condition::Exists(path) => find(item, path).is_some(),
            Condition::NotExists(path) => find(item, path).is_none(),
            Condition::HasType(path, letters) => {
                find(item, path).is_some_and(|value| value.letters() == *letters)
            }
            Condition::BeginsWith(path, prefix) => match (find(item, path), value(prefix)) {
                (Some(V::S(text)), Some(V::S(prefix))) => text.starts_with(&prefix),
                (Some(V::B(bytes)), Some(V::B(prefix))) => bytes.starts_with(&prefix),
                _ => false,
            },
            Condition::Contains(path, part) => match (find(item, path), value(part)) {
                (Some(V::S(text)), Some(V::S(part))) => text.contains(&part),
                (Some(V::B(bytes)), Some(V::B(part))) => {
                    (0..=bytes.len()).any(|from| bytes[from..].starts_with(&part))
                }
                (Some(V::Ss(set)), Some(V::S(part))) => set.contains(&part),
                (Some(V::Ns(set)), Some(V::N(part))) => set.contains(&part),
                (Some(V::L(list)), Some(part)) => list.contains(&part),
                _ => false,
            },
            Condition::And(parts) => parts.iter().all(|part| part.holds(item)),
            Condition::Or(parts) => parts.iter().any(|part| part.holds(item)),
            Condition::Not(inner) => !inner.holds(item),
        }
    }
}

impl Expression {
    fn value(&self, old: &Item) -> Result<V, Refused> {
        let two = |left: &Self, right: &Self| Ok((left.value(old)?, right.value(old)?));
        match self {
            Expression::Given(value) => Ok(value.clone()),
            Expression::At(path) => find(old, path).cloned().ok_or(Refused),
            Expression::IfNotExists(path, other) => {
                find(old, path).map_or_else(|| other.value(old), |v| Ok(v.clone()))
            }
            Expression::Append(left, right) => match two(left, right)? {
                (V::L(left), V::L(right)) => Ok(V::L([left, right].concat())),
                _ => Err(Refused),
            },
            Expression::Plus(left, right) => match two(left, right)? {
                (V::N(left), V::N(right)) => Ok(V::N(left + right)),
                _ => Err(Refused),
            },
            Expression::Minus(left, right) => match two(left, right)? {
                (V::N(left), V::N(right)) => Ok(V::N(left - right)),
                _ => Err(Refused),
            },
        }
    }
}

/// The value around the last step of a path, and this step; the attribute itself is part of no value.
fn parent<'a>(item: &'a mut Item, path: &Path) -> Result<Option<(&'a mut V, Step)>, Refused> {
    let Some((last, steps)) = path.rest.split_last() else {
        return Ok(None);
    };
    let mut value = item.get_mut(&path.head).ok_or(Refused)?;
    for step in steps {
        value = match (value, step) {
            (V::M(map), Step::Key(key)) => map.get_mut(key),
            (V::L(list), Step::Index(index)) => list.get_mut(*index),
            _ => None,
        }
        .ok_or(Refused)?;
    }
    match (&*value, last) {
        (V::M(_), Step::Key(_)) | (V::L(_), Step::Index(_)) => Ok(Some((value, last.clone()))),
        _ => Err(Refused),
    }
}

fn put(item: &mut Item, path: &Path, new: V) -> Result<(), Refused> {
    match parent(item, path)? {
        None => drop(item.insert(path.head.clone(), new)),
        Some((V::M(map), Step::Key(key))) => drop(map.insert(key, new)),
        Some((V::L(list), Step::Index(index))) if index < list.len() => list[index] = new,
        Some((V::L(list), _)) => list.push(new),
        Some(_) => return Err(Refused),
    }
    Ok(())
}

fn add(present: Option<&V>, more: &V) -> Result<V, Refused> {
    match (present, more) {
        (None, more) => Ok(more.clone()),
        (Some(V::N(old)), V::N(more)) => Ok(V::N(old + more)),
        (Some(V::Ss(old)), V::Ss(more)) => Ok(V::Ss(old.union(more).cloned().collect())),
        (Some(V::Ns(old)), V::Ns(more)) => Ok(V::Ns(old.union(more).copied().collect())),
        _ => Err(Refused),
    }
}

fn subtract(present: &V, less: &V) -> Result<Option<V>, Refused> {
    match (present, less) {
        (V::Ss(old), V::Ss(less)) => {
            let rest: BTreeSet<_> = old.difference(less).cloned().collect();
            Ok((!rest.is_empty()).then_some(V::Ss(rest)))
        }
        (V::Ns(old), V::Ns(less)) => {
            let rest: BTreeSet<_> = old.difference(less).copied().collect();
            Ok((!rest.is_empty()).then_some(V::Ns(rest)))
        }
        _ => Err(Refused),
    }
}

/// The item after an update. Every operand and every path refers to the old item; elements of a `SET` beyond the end of
/// a list are added in the order of their indexes; removed elements leave the list together.
pub fn updated(old: &Item, changes: &[Change]) -> Result<Item, Refused> {
    let mut new = old.clone();
    let mut sets = Vec::new();
    let mut removals = Vec::new();
    for change in changes {
        match change {
            Change::Set(path, expression) => sets.push((path, expression.value(old)?)),
            Change::Remove(path) => removals.push(path),
            Change::Add(name, more) => drop(new.insert(name.clone(), add(old.get(name), more)?)),
            Change::Delete(name, less) => {
                if let Some(present) = old.get(name) {
                    match subtract(present, less)? {
                        Some(rest) => drop(new.insert(name.clone(), rest)),
                        None => drop(new.remove(name)),
                    }
                }
            }
        }
    }
    sets.sort_by_key(|(path, _)| *path);
    for (path, value) in sets {
        put(&mut new, path, value)?;
    }
    removals.sort();
    for path in removals.into_iter().rev() {
        // A value missing before the update is not removed, whatever stands at its path by now; but the path needs a
        // parent.
        parent(&mut old.clone(), path)?;
        if find(old, path).is_none() {
            continue;
        }
        match parent(&mut new, path)? {
            None => drop(new.remove(&path.head)),
            Some((V::M(map), Step::Key(key))) => drop(map.remove(&key)),
            Some((V::L(list), Step::Index(index))) => drop(list.remove(index)),
            Some(_) => return Err(Refused),
        }
    }
    Ok(new)
}

/// The part of an item at some paths. Elements of a list close up.
pub fn projected(item: &Item, paths: &[Path]) -> Item {
    let part = |(name, value): (&String, &V)| {
        let rests: Vec<&[Step]> =
            paths.iter().filter(|path| path.head == *name).map(|path| &path.rest[..]).collect();
        Some((name.clone(), part_of(value, &rests)?))
    };
    item.iter().filter_map(part).collect()
}

fn part_of(value: &V, rests: &[&[Step]]) -> Option<V> {
    if rests.iter().any(|rest| rest.is_empty()) {
        return Some(value.clone());
    }
    let after = |wanted: &Step| -> Vec<&[Step]> {
        let next = |rest: &&'_ [Step]| rest.first() == Some(wanted);
        rests.iter().filter(|rest| next(rest)).map(|rest| &rest[1..]).collect()
    };
    match value {
        V::M(map) => {
            let part = |(key, value): (&String, &V)| {
                Some((key.clone(), part_of(value, &after(&Step::Key(key.clone())))?))
            };
            let map: BTreeMap<_, _> = map.iter().filter_map(part).collect();
            (!map.is_empty()).then_some(V::M(map))
        }
        V::L(list) => {
            let part = |(index, value)| part_of(value, &after(&Step::Index(index)));
            let list: Vec<_> = list.iter().enumerate().filter_map(part).collect();
            (!list.is_empty()).then_some(V::L(list))
        }
        _ => None,
    }
}

/// Whether an item fits into the table: its index attribute is a string, and not empty.
pub fn fits_index(item: &Item) -> bool {
    match item.get("o") {
        None => true,
        Some(V::S(text)) => !text.is_empty(),
        Some(_) => false,
    }
}

/// The depth of nested values.
pub fn depth(item: &Item) -> usize {
    let deepest = item.values().map(|value| match value {
        V::L(list) => {
            list.iter().map(|inner| depth(&Item::from([(String::new(), inner.clone())]))).max().unwrap_or(0)
        }
        V::M(map) => depth(map),
        _ => 0,
    });
    deepest.max().map_or(0, |inner| inner + 1)
}
