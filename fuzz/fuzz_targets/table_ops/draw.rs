//! Bytes as values, conditions and updates within the service's grammar, so that each refusal has a reason in the item.

use crate::model::{Change, Condition, Expression, Item, Operand, Path, Step, V};
use arbitrary::{Result, Unstructured};
use std::collections::BTreeSet;

/// Attributes besides the key: free ones, a list and a map as a rule, and the key of the index.
const HEADS: [&str; 6] = ["a", "b", "l", "m", "s", "o"];
const KEYS: [&str; 3] = ["x", "y", "SS"];
const TEXTS: [&str; 7] = ["", "a", "ab", "b", "ä", "shardId-0", "Z"];
const BYTES: [&[u8]; 5] = [b"", b"\x00", b"\x00\xff", b"\xff", b"a"];
const TENTHS: [i128; 9] = [0, 10, -10, 5, 20, 100, 90, -15, 10_000_000];
const LETTERS: [&str; 9] = ["S", "N", "B", "BOOL", "NULL", "SS", "NS", "L", "M"];
const ORDERED: [&str; 6] = ["=", "<>", "<", "<=", ">", ">="];

pub type Bytes<'a, 'b> = &'a mut Unstructured<'b>;

pub fn text(u: Bytes<'_, '_>) -> Result<String> {
    Ok((*u.choose(&TEXTS)?).to_owned())
}

/// A string, a number or bytes: what has an order.
fn scalar(u: Bytes<'_, '_>) -> Result<V> {
    Ok(match u.int_in_range(0..=2)? {
        0 => V::S(text(u)?),
        1 => V::N(*u.choose(&TENTHS)?),
        _ => V::B(u.choose(&BYTES)?.to_vec()),
    })
}

fn set(u: Bytes<'_, '_>) -> Result<V> {
    let many = u.int_in_range(1..=3)?;
    Ok(if u.arbitrary()? {
        V::Ss((0..many).map(|_| text(u)).collect::<Result<_>>()?)
    } else {
        V::Ns((0..many).map(|_| Ok(*u.choose(&TENTHS)?)).collect::<Result<_>>()?)
    })
}

fn list(u: Bytes<'_, '_>, depth: u8) -> Result<V> {
    let many = u.int_in_range(0..=3)?;
    Ok(V::L((0..many).map(|_| value(u, depth + 1)).collect::<Result<_>>()?))
}

pub fn value(u: Bytes<'_, '_>, depth: u8) -> Result<V> {
    Ok(match u.int_in_range(0..=if depth < 2 { 7 } else { 5 })? {
        0..=2 => scalar(u)?,
        3 => V::Bool(u.arbitrary()?),
        4 => V::Null,
        5 => set(u)?,
        6 => list(u, depth)?,
        _ => {
            let many = u.int_in_range(0..=2)?;
            let one = |_| Ok(((*u.choose(&KEYS)?).to_owned(), value(u, depth + 1)?));
            V::M((0..many).map(one).collect::<Result<_>>()?)
        }
    })
}

/// Attributes besides the key.
pub fn attributes(u: Bytes<'_, '_>) -> Result<Item> {
    let many = u.int_in_range(0..=5)?;
    let one = |_| {
        let name = *u.choose(&HEADS)?;
        let value = match name {
            "l" if u.ratio(3, 4)? => list(u, 0)?,
            "o" if u.ratio(7, 8)? => V::S((*u.choose(&["a", "b"])?).to_owned()),
            _ => value(u, 0)?,
        };
        Ok((name.to_owned(), value))
    };
    (0..many).map(one).collect()
}

/// A path. Paths of keys have no steps: the service refuses steps into keys.
fn path(u: Bytes<'_, '_>, heads: &[&'static str]) -> Result<Path> {
    let head = *u.choose(heads)?;
    let steps = if matches!(head, "o" | "p" | "q") { 0 } else { u.int_in_range(0..=2)? };
    let step = |_| {
        Ok(if u.arbitrary()? {
            Step::Index(u.int_in_range(0..=4)?)
        } else {
            Step::Key((*u.choose(&KEYS)?).to_owned())
        })
    };
    let rest = (0..steps).map(step).collect::<Result<_>>()?;
    Ok(Path { head: head.to_owned(), rest })
}

/// The attributes for conditions: a filter of a query may not name the key.
pub const ALL: [&str; 8] = ["a", "b", "l", "m", "s", "o", "p", "q"];
pub const NO_KEY: [&str; 6] = HEADS;

/// Another operand than the path: the service refuses a comparison of an operand with itself.
fn operand(u: Bytes<'_, '_>, heads: &[&'static str], other: &Path, ordered: bool) -> Result<Operand> {
    let at = path(u, heads)?;
    Ok(match u.int_in_range(0..=4)? {
        0 if at != *other => Operand::At(at),
        1 => Operand::Size(at),
        2 | 3 if !ordered => Operand::Given(value(u, 1)?),
        _ => Operand::Given(scalar(u)?),
    })
}

pub fn condition(u: Bytes<'_, '_>, heads: &[&'static str], depth: u8) -> Result<Condition> {
    let at = path(u, heads)?;
    Ok(match u.int_in_range(0..=if depth < 3 { 10 } else { 7 })? {
        0 | 1 => {
            let operator = *u.choose(&ORDERED)?;
            let ordered = !matches!(operator, "=" | "<>");
            let other = operand(u, heads, &at, ordered)?;
            if u.ratio(1, 4)? {
                Condition::Compare(operator, other, Operand::At(at))
            } else {
                Condition::Compare(operator, Operand::At(at), other)
            }
        }
        2 => {
            let (one, other) = (scalar(u)?, scalar(u)?);
            if one.letters() == other.letters() {
                let (low, high) = (one.clone().min(other.clone()), one.max(other));
                Condition::Between(Operand::At(at), Operand::Given(low), Operand::Given(high))
            } else {
                Condition::Between(Operand::Size(at), Operand::Given(one), Operand::At(path(u, heads)?))
            }
        }
        3 => {
            let list = (0..u.int_in_range(1..=3)?).map(|_| Ok(Operand::Given(value(u, 1)?)));
            Condition::In(Operand::At(at), list.collect::<Result<_>>()?)
        }
        4 => Condition::Exists(at),
        5 => Condition::NotExists(at),
        6 => Condition::HasType(at, u.choose(&LETTERS)?),
        7 => match scalar(u)? {
            prefix @ (V::S(_) | V::B(_)) => Condition::BeginsWith(at, Operand::Given(prefix)),
            V::N(_) => {
                let part = operand(u, heads, &at, false)?;
                Condition::Contains(at, part)
            }
            _ => Condition::Exists(at),
        },
        8 => Condition::Not(Box::new(condition(u, heads, depth + 1)?)),
        n => {
            let many = u.int_in_range(2..=3)?;
            let parts = (0..many).map(|_| condition(u, heads, depth + 1)).collect::<Result<_>>()?;
            if n == 9 { Condition::And(parts) } else { Condition::Or(parts) }
        }
    })
}

fn expression(u: Bytes<'_, '_>, depth: u8) -> Result<Expression> {
    let at = path(u, &ALL)?;
    Ok(match u.int_in_range(0..=if depth == 0 { 6 } else { 3 })? {
        0 | 1 => Expression::Given(value(u, 0)?),
        2 => Expression::At(at),
        3 => Expression::IfNotExists(at, Box::new(Expression::Given(value(u, 0)?))),
        4 => Expression::Append(side(u, "L")?, side(u, "L")?),
        5 => Expression::Plus(side(u, "N")?, side(u, "N")?),
        _ => Expression::Minus(side(u, "N")?, side(u, "N")?),
    })
}

/// A given value of the wrong type is refused before any look at an item, so it becomes a value of the right type.
fn side(u: Bytes<'_, '_>, letters: &str) -> Result<Box<Expression>> {
    Ok(Box::new(match expression(u, 1)? {
        Expression::Given(value) if value.letters() != letters => Expression::Given(match letters {
            "L" => list(u, 0)?,
            _ => V::N(*u.choose(&TENTHS)?),
        }),
        other => other,
    }))
}

/// Changes of separate paths: no path lies within another, or goes another way through the same value.
pub fn changes(u: Bytes<'_, '_>) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    let mut taken: Vec<Path> = Vec::new();
    for _ in 0..u.int_in_range(0..=4)? {
        let at = path(u, &HEADS)?;
        let whole = Path { head: at.head.clone(), rest: Vec::new() };
        let (at, change) = match u.int_in_range(0..=6)? {
            0..=2 => (at.clone(), Change::Set(at, expression(u, 0)?)),
            3 | 4 => (at.clone(), Change::Remove(at)),
            5 => {
                let more = if u.arbitrary()? { set(u)? } else { V::N(*u.choose(&TENTHS)?) };
                (whole, Change::Add(at.head, more))
            }
            _ => (whole, Change::Delete(at.head, set(u)?)),
        };
        if taken.iter().all(|other| !clash(other, &at)) {
            taken.push(at);
            changes.push(change);
        }
    }
    Ok(changes)
}

fn clash(one: &Path, other: &Path) -> bool {
    if one.head != other.head {
        return false;
    }
    match one.rest.iter().zip(&other.rest).find(|(left, right)| left != right) {
        None => true,
        Some((left, right)) => {
            matches!((left, right), (Step::Key(_), Step::Index(_)) | (Step::Index(_), Step::Key(_)))
        }
    }
}

/// Paths for a projection without clashes.
pub fn paths(u: Bytes<'_, '_>) -> Result<Vec<Path>> {
    let mut paths: Vec<Path> = Vec::new();
    for _ in 0..u.int_in_range(1..=3)? {
        let at = path(u, &ALL)?;
        if paths.iter().all(|other| !clash(other, &at)) {
            paths.push(at);
        }
    }
    Ok(paths)
}

/// A key of the table: few keys, to meet each key again.
pub fn key(u: Bytes<'_, '_>) -> Result<Item> {
    let partition = (*u.choose(&["a", "b"])?).to_owned();
    let sort = *u.choose(&[0, 10, 15, -10, 100, 90])?;
    Ok(Item::from([("p".to_owned(), V::S(partition)), ("q".to_owned(), V::N(sort))]))
}

/// The attributes named by changes.
pub fn heads(changes: &[Change]) -> BTreeSet<String> {
    let head = |change: &Change| match change {
        Change::Set(path, _) | Change::Remove(path) => path.head.clone(),
        Change::Add(name, _) | Change::Delete(name, _) => name.clone(),
    };
    changes.iter().map(head).collect()
}

/// Whether changes are of whole attributes.
pub fn only_whole(changes: &[Change]) -> bool {
    changes.iter().all(|change| match change {
        Change::Set(path, _) | Change::Remove(path) => path.rest.is_empty(),
        Change::Add(..) | Change::Delete(..) => true,
    })
}

/// Whether there are changes, and all of them only take away.
pub fn only_takes(changes: &[Change]) -> bool {
    !changes.is_empty()
        && changes.iter().all(|change| matches!(change, Change::Remove(_) | Change::Delete(..)))
}
