//! Carrying out an update.

use super::super::error::{ApiError, DynamoResult};
use super::super::value::{number_error, parse_number};
use super::path::{Path, Segment};
use super::{Action, SetValue, Update};
use leasehold_engine::table::{AttributeName, AttributeValue, Item};
use std::collections::BTreeMap;

impl Update {
    /// The item after the update. Every operand and every path is of the item as it was.
    pub fn apply(&self, old: &Item) -> DynamoResult<Item> {
        let mut puts: Vec<(&Path, AttributeValue)> = Vec::with_capacity(self.actions.len());
        let mut removals: Vec<&Path> = Vec::new();
        for action in &self.actions {
            let path = action.path();
            match action {
                Action::Set(_, value) => puts.push((path, value.resolve(old)?)),
                Action::Remove(_) if find_place(old, path)? => removals.push(path),
                Action::Remove(_) => {}
                Action::Add(_, value) => {
                    let sum = match path.get(old) {
                        None => added_to_nothing(value)?,
                        Some(present) => added(present, value)?,
                    };
                    puts.push((path, sum));
                }
                Action::Delete(_, value) => {
                    if let Some(present) = path.get(old) {
                        match without(present, value)? {
                            Some(rest) => puts.push((path, rest)),
                            None => removals.push(path),
                        }
                    }
                }
                Action::Append(_, values) => {
                    let mut list = match path.get(old) {
                        None => Vec::new(),
                        Some(AttributeValue::L(list)) => list.clone(),
                        Some(_) => return Err(wrong_operand()),
                    };
                    list.extend(values.iter().cloned());
                    puts.push((path, AttributeValue::L(list)));
                }
            }
        }
        // Elements set beyond the end of a list are appended in the order of their indexes. Removed elements leave
        // their lists last, from the back, so that indexes keep their meaning.
        puts.sort_by_key(|(path, _)| *path);
        removals.sort_by(|left, right| right.cmp(left));
        let mut item = old.clone();
        puts.into_iter().try_for_each(|(path, value)| put(&mut item, path, value))?;
        removals.into_iter().try_for_each(|path| take(&mut item, path))?;
        Ok(item)
    }

    /// Whether the update only takes away: such an update creates no item.
    pub fn only_removes(&self) -> bool {
        !self.actions.is_empty()
            && self.actions.iter().all(|action| matches!(action, Action::Remove(_) | Action::Delete(..)))
    }
}

impl SetValue {
    fn resolve(&self, item: &Item) -> DynamoResult<AttributeValue> {
        match self {
            Self::Value(value) => Ok(value.clone()),
            Self::Path(path) => path.get(item).cloned().ok_or_else(|| {
                ApiError::validation(
                    "The provided expression refers to an attribute that does not exist in the item",
                )
            }),
            Self::IfNotExists(path, otherwise) => match path.get(item) {
                Some(value) => Ok(value.clone()),
                None => otherwise.resolve(item),
            },
            Self::ListAppend(left, right) => match (left.resolve(item)?, right.resolve(item)?) {
                (AttributeValue::L(mut left), AttributeValue::L(right)) => {
                    left.extend(right);
                    Ok(AttributeValue::L(left))
                }
                _ => Err(wrong_operand()),
            },
            Self::Plus(left, right) => calculate(&left.resolve(item)?, &right.resolve(item)?, false),
            Self::Minus(left, right) => calculate(&left.resolve(item)?, &right.resolve(item)?, true),
        }
    }
}

fn calculate(left: &AttributeValue, right: &AttributeValue, subtract: bool) -> DynamoResult<AttributeValue> {
    let (AttributeValue::N(left), AttributeValue::N(right)) = (left, right) else {
        return Err(wrong_operand());
    };
    // Counters are small integers: the machine's own addition gives the same text.
    if let (Ok(left), Ok(right)) = (left.parse::<i64>(), right.parse::<i64>())
        && let Some(result) = if subtract { left.checked_sub(right) } else { left.checked_add(right) }
    {
        return Ok(AttributeValue::n(result));
    }
    let (left, right) = (parse_number(left)?, parse_number(right)?);
    let result = if subtract { left.minus(right) } else { left.plus(right) };
    result.map(AttributeValue::n).map_err(number_error)
}

fn added_to_nothing(value: &AttributeValue) -> DynamoResult<AttributeValue> {
    match value {
        AttributeValue::N(_) | AttributeValue::Ss(_) | AttributeValue::Ns(_) | AttributeValue::Bs(_) => {
            Ok(value.clone())
        }
        _ => Err(wrong_operand()),
    }
}

fn added(present: &AttributeValue, value: &AttributeValue) -> DynamoResult<AttributeValue> {
    match (present, value) {
        (AttributeValue::N(_), AttributeValue::N(_)) => calculate(present, value, false),
        (AttributeValue::Ss(set), AttributeValue::Ss(more)) => Ok(AttributeValue::Ss(set | more)),
        (AttributeValue::Ns(set), AttributeValue::Ns(more)) => Ok(AttributeValue::Ns(set | more)),
        (AttributeValue::Bs(set), AttributeValue::Bs(more)) => Ok(AttributeValue::Bs(set | more)),
        _ => Err(wrong_operand()),
    }
}

fn without(present: &AttributeValue, value: &AttributeValue) -> DynamoResult<Option<AttributeValue>> {
    match (present, value) {
        (AttributeValue::Ss(set), AttributeValue::Ss(gone)) if set.is_subset(gone) => Ok(None),
        (AttributeValue::Ns(set), AttributeValue::Ns(gone)) if set.is_subset(gone) => Ok(None),
        (AttributeValue::Bs(set), AttributeValue::Bs(gone)) if set.is_subset(gone) => Ok(None),
        (AttributeValue::Ss(set), AttributeValue::Ss(gone)) => Ok(Some(AttributeValue::Ss(set - gone))),
        (AttributeValue::Ns(set), AttributeValue::Ns(gone)) => Ok(Some(AttributeValue::Ns(set - gone))),
        (AttributeValue::Bs(set), AttributeValue::Bs(gone)) => Ok(Some(AttributeValue::Bs(set - gone))),
        _ => Err(wrong_operand()),
    }
}

fn wrong_operand() -> ApiError {
    ApiError::validation("An operand in the update expression has an incorrect data type")
}

fn wrong_path() -> ApiError {
    ApiError::validation("The document path provided in the update expression is invalid for update")
}

/// The collection around a path's last step.
enum Holder<'a> {
    Item(&'a mut Item, &'a AttributeName),
    Map(&'a mut BTreeMap<String, AttributeValue>, &'a String),
    List(&'a mut Vec<AttributeValue>, usize),
}

fn holder<'a>(item: &'a mut Item, path: &'a Path) -> DynamoResult<Holder<'a>> {
    let Some((last, steps)) = path.rest.split_last() else {
        return Ok(Holder::Item(item, &path.head));
    };
    let mut value = item.get_mut(&path.head).ok_or_else(wrong_path)?;
    for step in steps {
        value = match (value, step) {
            (AttributeValue::M(map), Segment::Key(name)) => map.get_mut(name),
            (AttributeValue::L(list), Segment::Index(index)) => list.get_mut(*index),
            _ => None,
        }
        .ok_or_else(wrong_path)?;
    }
    match (value, last) {
        (AttributeValue::M(map), Segment::Key(name)) => Ok(Holder::Map(map, name)),
        (AttributeValue::L(list), Segment::Index(index)) => Ok(Holder::List(list, *index)),
        _ => Err(wrong_path()),
    }
}

/// Whether a path has a value. An error if the path cannot exist, since its parent is missing.
fn find_place(item: &Item, path: &Path) -> DynamoResult<bool> {
    let Some((last, steps)) = path.rest.split_last() else {
        return Ok(item.contains_key(&path.head));
    };
    let whole = Path { head: path.head.clone(), rest: steps.to_vec() };
    match (whole.get(item), last) {
        (Some(AttributeValue::M(map)), Segment::Key(name)) => Ok(map.contains_key(name)),
        (Some(AttributeValue::L(list)), Segment::Index(index)) => Ok(*index < list.len()),
        _ => Err(wrong_path()),
    }
}

fn put(item: &mut Item, path: &Path, value: AttributeValue) -> DynamoResult<()> {
    match holder(item, path)? {
        Holder::Item(item, name) => drop(item.insert(name.clone(), value)),
        Holder::Map(map, name) => drop(map.insert(name.clone(), value)),
        Holder::List(list, index) => match list.get_mut(index) {
            Some(place) => *place = value,
            // Past the end: appended, whatever the index.
            None => list.push(value),
        },
    }
    Ok(())
}

fn take(item: &mut Item, path: &Path) -> DynamoResult<()> {
    match holder(item, path)? {
        Holder::Item(item, name) => drop(item.remove(name)),
        Holder::Map(map, name) => drop(map.remove(name)),
        Holder::List(list, index) => {
            if index < list.len() {
                drop(list.remove(index));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Binder, parse_update};
    use super::*;

    fn item() -> Item {
        let list = AttributeValue::L((0..4).map(AttributeValue::n).collect());
        [
            ("n".into(), AttributeValue::n("5")),
            ("s".into(), AttributeValue::s("text")),
            ("ss".into(), AttributeValue::Ss(["a".into(), "b".into()].into())),
            ("m".into(), AttributeValue::M([("l".to_owned(), list)].into())),
        ]
        .into()
    }

    fn run(text: &str) -> DynamoResult<Item> {
        let values: Item = [
            (":one".into(), AttributeValue::n("1")),
            (":s".into(), AttributeValue::s("new")),
            (":a".into(), AttributeValue::Ss(["a".into()].into())),
            (":ab".into(), AttributeValue::Ss(["a".into(), "b".into()].into())),
            (":l".into(), AttributeValue::L(vec![AttributeValue::n("9")])),
            (":big".into(), AttributeValue::n("1e125")),
        ]
        .into();
        let mut binder = Binder::unchecked(BTreeMap::new(), values);
        parse_update(text, &mut binder)?.apply(&item())
    }

    fn get(text: &str, name: &str) -> Option<AttributeValue> {
        run(text).unwrap_or_else(|error| panic!("{text}: {error}")).get(name).cloned()
    }

    #[test]
    fn numbers_are_counted() {
        assert_eq!(get("SET n = n + :one", "n"), Some(AttributeValue::n("6")));
        assert_eq!(get("SET n = :one - n", "n"), Some(AttributeValue::n("-4")));
        assert_eq!(get("ADD n :one", "n"), Some(AttributeValue::n("6")));
        assert_eq!(get("ADD fresh :one", "fresh"), Some(AttributeValue::n("1")));
        assert_eq!(get("SET x = if_not_exists(x, :one) + :one", "x"), Some(AttributeValue::n("2")));
        assert!(run("SET n = n + :big").unwrap_err().message.contains("38 significant digits"));
    }

    #[test]
    fn sets_grow_shrink_and_vanish() {
        assert_eq!(get("DELETE ss :a", "ss"), Some(AttributeValue::Ss(["b".into()].into())));
        assert_eq!(get("DELETE ss :ab", "ss"), None);
        assert_eq!(get("ADD fresh :a", "fresh"), Some(AttributeValue::Ss(["a".into()].into())));
        assert_eq!(get("DELETE absent :a", "absent"), None);
    }

    #[test]
    fn every_operand_is_read_from_the_item_as_it_was() {
        let after = run("SET n = :one, s = n, x = s").unwrap();
        assert_eq!(after["s"], AttributeValue::n("5"));
        assert_eq!(after["x"], AttributeValue::s("text"));
    }

    #[test]
    fn lists_close_up_after_removals_and_take_elements_at_their_end() {
        let list = |text: &str| match get(text, "m") {
            Some(AttributeValue::M(map)) => match &map["l"] {
                AttributeValue::L(list) => {
                    list.iter().map(|v| v.as_n().or(v.as_s()).unwrap_or("?").to_owned()).collect::<Vec<_>>()
                }
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        };
        assert_eq!(list("REMOVE m.l[0], m.l[2]"), ["1", "3"]);
        assert_eq!(list("REMOVE m.l[9]"), ["0", "1", "2", "3"]);
        assert_eq!(list("SET m.l[99] = :s"), ["0", "1", "2", "3", "new"]);
        // New elements come in the order of their indexes, not of the text.
        let both = list("SET m.l[98] = :one, m.l[97] = :s");
        assert_eq!(both, ["0", "1", "2", "3", "new", "1"]);
        // An element missing before the update is not removed, though the update has created one.
        assert_eq!(list("SET m.l[99] = :s REMOVE m.l[4]"), ["0", "1", "2", "3", "new"]);
        assert_eq!(list("SET m.l[1] = :s REMOVE m.l[0]"), ["new", "2", "3"]);
        assert_eq!(list("SET m.l = list_append(m.l, :l)"), ["0", "1", "2", "3", "9"]);
    }

    #[test]
    fn impossible_updates_are_refused() {
        for (text, part) in [
            ("SET x = y", "does not exist in the item"),
            ("SET s = s + :one", "incorrect data type"),
            ("SET s = list_append(s, :l)", "incorrect data type"),
            ("ADD s :one", "incorrect data type"),
            ("DELETE n :a", "incorrect data type"),
            ("SET s.x = :one", "document path"),
            ("SET absent.x = :one", "document path"),
            ("REMOVE absent.x", "document path"),
            ("REMOVE m.l[0].x", "document path"),
            ("SET m.l[99] = :l REMOVE m.l[4][0]", "document path"),
        ] {
            let error = run(text).unwrap_err();
            assert!(error.message.contains(part), "{text}: {error}");
        }
    }
}
