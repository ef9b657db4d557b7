//! Whether a condition holds.

use super::super::value::{equal, order};
use super::{Comparator, Condition, Operand};
use leasehold_engine::table::{AttributeValue, Item};
use std::borrow::Cow;

impl Operand {
    fn resolve<'a>(&'a self, item: &'a Item) -> Option<Cow<'a, AttributeValue>> {
        match self {
            Self::Path(path) => path.get(item).map(Cow::Borrowed),
            Self::Value(value) => Some(Cow::Borrowed(value)),
            Self::Size(inner) => size(&*inner.resolve(item)?).map(|size| Cow::Owned(AttributeValue::n(size))),
        }
    }
}

fn size(value: &AttributeValue) -> Option<usize> {
    match value {
        AttributeValue::S(text) => Some(text.len()),
        AttributeValue::B(bytes) => Some(bytes.len()),
        AttributeValue::Ss(set) => Some(set.len()),
        AttributeValue::Ns(set) => Some(set.len()),
        AttributeValue::Bs(set) => Some(set.len()),
        AttributeValue::L(list) => Some(list.len()),
        AttributeValue::M(map) => Some(map.len()),
        AttributeValue::N(_) | AttributeValue::Bool(_) | AttributeValue::Null => None,
    }
}

impl Condition {
    /// Whether the condition holds for an item. Callers pass an absent item as an empty item.
    pub fn holds(&self, item: &Item) -> bool {
        match self {
            Self::Compare(comparator, left, right) => {
                compare(*comparator, left.resolve(item).as_deref(), right.resolve(item).as_deref())
            }
            Self::Between(value, low, high) => {
                let value = value.resolve(item);
                compare(Comparator::Ge, value.as_deref(), low.resolve(item).as_deref())
                    && compare(Comparator::Le, value.as_deref(), high.resolve(item).as_deref())
            }
            Self::In(value, list) => {
                let value = value.resolve(item);
                list.iter()
                    .any(|other| compare(Comparator::Eq, value.as_deref(), other.resolve(item).as_deref()))
            }
            Self::And(parts) => parts.iter().all(|part| part.holds(item)),
            Self::Or(parts) => parts.iter().any(|part| part.holds(item)),
            Self::Not(inner) => !inner.holds(item),
            Self::Exists(path) => path.get(item).is_some(),
            Self::NotExists(path) => path.get(item).is_none(),
            Self::HasType(operand, name) => {
                operand.resolve(item).is_some_and(|value| value.type_name() == name)
            }
            Self::BeginsWith(value, prefix) => {
                let operands = value.resolve(item).zip(prefix.resolve(item));
                operands.is_some_and(|(value, prefix)| begins_with(&value, &prefix))
            }
            Self::Contains(value, part) => {
                let operands = value.resolve(item).zip(part.resolve(item));
                operands.is_some_and(|(value, part)| contains(&value, &part))
            }
        }
    }
}

fn compare(comparator: Comparator, left: Option<&AttributeValue>, right: Option<&AttributeValue>) -> bool {
    // An absent operand differs from everything, and is in no other relation.
    let (Some(left), Some(right)) = (left, right) else {
        return comparator == Comparator::Ne;
    };
    match comparator {
        Comparator::Eq => equal(left, right),
        Comparator::Ne => !equal(left, right),
        _ => order(left, right).is_some_and(|order| comparator.admits(order)),
    }
}

/// Whether a string or binary begins with another.
pub(super) fn begins_with(value: &AttributeValue, prefix: &AttributeValue) -> bool {
    match (value, prefix) {
        (AttributeValue::S(text), AttributeValue::S(prefix)) => text.starts_with(&**prefix),
        (AttributeValue::B(bytes), AttributeValue::B(prefix)) => bytes.starts_with(prefix),
        _ => false,
    }
}

fn contains(value: &AttributeValue, part: &AttributeValue) -> bool {
    match (value, part) {
        (AttributeValue::S(text), AttributeValue::S(part)) => text.contains(&**part),
        (AttributeValue::B(bytes), AttributeValue::B(part)) => {
            part.is_empty() || bytes.windows(part.len()).any(|window| window == part)
        }
        (AttributeValue::Ss(set), AttributeValue::S(part)) => set.contains(&**part),
        (AttributeValue::Bs(set), AttributeValue::B(part)) => set.contains(part),
        (AttributeValue::Ns(set), AttributeValue::N(_)) => {
            set.iter().any(|number| equal(&AttributeValue::n(number), part))
        }
        (AttributeValue::L(list), part) => list.iter().any(|element| equal(element, part)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Binder;
    use super::super::{Path, parse_condition};
    use super::*;
    use std::collections::BTreeMap;

    fn item() -> Item {
        let list = AttributeValue::L(vec![AttributeValue::n("1"), AttributeValue::s("two")]);
        [
            ("s".into(), AttributeValue::s("shard")),
            ("n".into(), AttributeValue::n("10")),
            ("b".into(), AttributeValue::B(vec![1, 2, 3])),
            ("flag".into(), AttributeValue::Bool(true)),
            ("nothing".into(), AttributeValue::Null),
            ("ss".into(), AttributeValue::Ss(["x".into(), "y".into()].into())),
            ("ns".into(), AttributeValue::Ns(["1".into(), "2".into()].into())),
            ("l".into(), list.clone()),
            ("m".into(), AttributeValue::M([("l".to_owned(), list)].into())),
        ]
        .into()
    }

    fn holds(text: &str) -> bool {
        let values: Item = [
            (":s".into(), AttributeValue::s("shard")),
            (":a".into(), AttributeValue::s("sha")),
            (":z".into(), AttributeValue::s("zzz")),
            (":x".into(), AttributeValue::s("x")),
            (":ten".into(), AttributeValue::n("1e1")),
            (":nine".into(), AttributeValue::n("9")),
            (":two".into(), AttributeValue::n("2.0")),
            (":b".into(), AttributeValue::B(vec![2, 3])),
            (":str".into(), AttributeValue::s("S")),
            (":null".into(), AttributeValue::s("NULL")),
        ]
        .into();
        let mut binder = Binder::unchecked(BTreeMap::new(), values);
        let condition =
            parse_condition(text, &mut binder).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        condition.holds(&item())
    }

    #[test]
    fn conditions_that_hold() {
        for text in [
            "s = :s AND n = :ten",
            "n > :nine AND :nine < n AND n >= :ten AND n <= :ten",
            "gone <> :s",
            "n <> :s",
            "n BETWEEN :nine AND :ten",
            "s IN (:z, :s)",
            "NOT s = :z OR gone = :z",
            "attribute_exists(m.l[1]) AND attribute_not_exists(m.l[2])",
            "attribute_type(s, :str) AND attribute_type(nothing, :null)",
            "begins_with(s, :a)",
            "contains(s, :a) AND contains(ss, :x) AND contains(ns, :two) AND contains(b, :b)",
            "size(s) < :ten AND size(ss) = :two AND size(l) = :two AND size(m.l) = :two",
            "m.l = l",
        ] {
            assert!(holds(text), "{text}");
        }
    }

    #[test]
    fn conditions_that_do_not() {
        for text in [
            "s = :ten",
            "s < :ten OR s > :ten OR flag < :s",
            "gone = :s OR gone < :s OR gone > :s",
            "gone BETWEEN :a AND :z",
            "gone IN (:a)",
            "begins_with(n, :a) OR contains(flag, :a) OR contains(l, :z)",
            "size(n) > :two OR size(gone) > :two",
            "attribute_type(gone, :str)",
            "NOT (s = :s)",
        ] {
            assert!(!holds(text), "{text}");
        }
    }

    #[test]
    fn built_conditions_are_the_parsed_ones() {
        let mut binder = Binder::unchecked(BTreeMap::new(), [(":v".into(), AttributeValue::n("5"))].into());
        let parsed =
            parse_condition("leaseCounter = :v AND attribute_exists(leaseKey)", &mut binder).unwrap();
        let built = Condition::equals("leaseCounter", AttributeValue::n("5"))
            .and(Condition::Exists(Path::attribute("leaseKey")));
        assert_eq!(parsed, built);
    }
}
