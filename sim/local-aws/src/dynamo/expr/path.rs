//! Document paths and projections.

use leasehold_engine::table::{AttributeName, AttributeValue, Item};
use std::collections::BTreeMap;
use std::fmt;

/// One step down into a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Segment {
    /// Into a map, by name.
    Key(String),
    /// Into a list, by index.
    Index(usize),
}

/// A path into an item: an attribute, then steps down.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path {
    /// The attribute.
    pub head: AttributeName,
    /// The steps down from the head.
    pub rest: Vec<Segment>,
}

impl Path {
    /// A whole attribute.
    pub fn attribute(name: impl Into<AttributeName>) -> Self {
        Self { head: name.into(), rest: Vec::new() }
    }

    /// The value there.
    pub fn get<'a>(&self, item: &'a Item) -> Option<&'a AttributeValue> {
        self.rest.iter().try_fold(item.get(&self.head)?, |value, segment| match (value, segment) {
            (AttributeValue::M(map), Segment::Key(name)) => map.get(name),
            (AttributeValue::L(list), Segment::Index(index)) => list.get(*index),
            _ => None,
        })
    }

    /// The relation of this path to another: overlapping, conflicting (a map step against a list step), or neither.
    pub fn clash(&self, other: &Self) -> Option<Clash> {
        if self.head != other.head {
            return None;
        }
        for (left, right) in self.rest.iter().zip(&other.rest) {
            match (left, right) {
                (left, right) if left == right => {}
                (Segment::Key(_), Segment::Key(_)) | (Segment::Index(_), Segment::Index(_)) => return None,
                _ => return Some(Clash::Conflict),
            }
        }
        Some(Clash::Overlap)
    }
}

/// The reason why one expression cannot hold two paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clash {
    /// One path holds the other, or both are the same.
    Overlap,
    /// One path takes a value for a map, the other for a list.
    Conflict,
}

impl fmt::Display for Path {
    /// As DynamoDB prints paths in messages: `[a, b, [0]]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}", self.head)?;
        for segment in &self.rest {
            match segment {
                Segment::Key(name) => write!(f, ", {name}")?,
                Segment::Index(index) => write!(f, ", [{index}]")?,
            }
        }
        f.write_str("]")
    }
}

/// The paths requested by a reader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Projection {
    /// The paths, no two overlapping.
    pub paths: Vec<Path>,
}

impl Projection {
    /// A projection of whole attributes.
    pub fn of_attributes<N: Into<AttributeName>>(names: impl IntoIterator<Item = N>) -> Self {
        Self { paths: names.into_iter().map(Path::attribute).collect() }
    }

    /// The requested part of an item. Elements picked from one list close up, in list order.
    pub fn apply(&self, item: &Item) -> Item {
        let mut roots: BTreeMap<&AttributeName, Part> = BTreeMap::new();
        for path in &self.paths {
            let Some(value) = path.get(item) else { continue };
            let mut part = roots.entry(&path.head).or_insert(Part::Empty);
            for segment in &path.rest {
                part = part.child(segment);
            }
            *part = Part::Whole(value.clone());
        }
        roots.into_iter().filter_map(|(name, part)| Some((name.clone(), part.build()?))).collect()
    }
}

/// A value under construction by a projection.
enum Part {
    Empty,
    Whole(AttributeValue),
    Map(BTreeMap<String, Part>),
    List(BTreeMap<usize, Part>),
}

impl Part {
    fn child(&mut self, segment: &Segment) -> &mut Part {
        match (&*self, segment) {
            (Self::Map(_), Segment::Key(_)) | (Self::List(_), Segment::Index(_)) => {}
            (_, Segment::Key(_)) => *self = Self::Map(BTreeMap::new()),
            (_, Segment::Index(_)) => *self = Self::List(BTreeMap::new()),
        }
        match (self, segment) {
            (Self::Map(map), Segment::Key(name)) => map.entry(name.clone()).or_insert(Self::Empty),
            (Self::List(list), Segment::Index(index)) => list.entry(*index).or_insert(Self::Empty),
            // The first match made the kinds agree.
            (part, _) => part,
        }
    }

    fn build(self) -> Option<AttributeValue> {
        match self {
            Self::Empty => None,
            Self::Whole(value) => Some(value),
            Self::Map(map) => Some(AttributeValue::M(
                map.into_iter().filter_map(|(name, part)| Some((name, part.build()?))).collect(),
            )),
            Self::List(list) => Some(AttributeValue::L(list.into_values().filter_map(Self::build).collect())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(head: &'static str, rest: &[Segment]) -> Path {
        Path { head: head.into(), rest: rest.to_vec() }
    }

    fn key(name: &str) -> Segment {
        Segment::Key(name.to_owned())
    }

    fn item() -> Item {
        let list = AttributeValue::L((0..4).map(AttributeValue::n).collect());
        let map = [("l".to_owned(), list), ("x".to_owned(), AttributeValue::s("deep"))].into();
        [("m".into(), AttributeValue::M(map)), ("s".into(), AttributeValue::s("top"))].into()
    }

    #[test]
    fn paths_go_down_or_find_nothing() {
        let item = item();
        let found = path("m", &[key("l"), Segment::Index(2)]);
        assert_eq!(found.get(&item), Some(&AttributeValue::n(2)));
        for missing in [
            path("m", &[key("l"), Segment::Index(9)]),
            path("m", &[Segment::Index(0)]),
            path("s", &[key("x")]),
            path("none", &[]),
        ] {
            assert_eq!(missing.get(&item), None, "{missing}");
        }
    }

    #[test]
    fn clashes_are_told_apart() {
        let ab = path("a", &[key("b")]);
        assert_eq!(ab.clash(&path("a", &[])), Some(Clash::Overlap));
        assert_eq!(ab.clash(&path("a", &[key("b"), key("c")])), Some(Clash::Overlap));
        assert_eq!(ab.clash(&path("a", &[Segment::Index(0)])), Some(Clash::Conflict));
        assert_eq!(ab.clash(&path("a", &[key("c")])), None);
        assert_eq!(ab.clash(&path("b", &[])), None);
    }

    #[test]
    fn a_projection_rebuilds_the_document_around_what_it_picks() {
        let picked = Projection {
            paths: vec![
                path("m", &[key("l"), Segment::Index(3)]),
                path("m", &[key("l"), Segment::Index(1)]),
                path("m", &[key("gone")]),
                path("s", &[]),
            ],
        }
        .apply(&item());
        let list = AttributeValue::L(vec![AttributeValue::n(1), AttributeValue::n(3)]);
        let expected: Item = [
            ("m".into(), AttributeValue::M([("l".to_owned(), list)].into())),
            ("s".into(), AttributeValue::s("top")),
        ]
        .into();
        assert_eq!(picked, expected);
    }
}
