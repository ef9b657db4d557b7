//! How reading of a shard goes on.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// How reading of a shard goes on. The end of the last clone of a subscription closes the subscription.
#[derive(Clone)]
pub enum Cursor {
    /// An iterator, as Kinesis gave it.
    Iterator(String),
    /// A subscription; only the port of its call knows the type.
    Subscription(Arc<dyn Any + Send + Sync>),
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cursor::Iterator(iterator) => f.debug_tuple("Iterator").field(iterator).finish(),
            Cursor::Subscription(_) => f.write_str("Subscription"),
        }
    }
}

impl From<&str> for Cursor {
    fn from(iterator: &str) -> Self {
        Cursor::Iterator(iterator.to_owned())
    }
}
