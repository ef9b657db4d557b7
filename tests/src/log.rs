//! The log of the target `leasehold`, as lines.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Subscriber;
use tracing::{Event, Level, Metadata};

/// Keeps the messages of events of the levels from INFO to ERROR. Clones are handles on the same.
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<Vec<(Level, String)>>>);

impl Log {
    /// The messages of one level so far.
    pub fn of(&self, level: Level) -> Vec<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_level = all.iter().filter(|(of, _)| *of == level);
        of_level.map(|(_, text)| text.clone()).collect()
    }
}

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "leasehold" && *metadata.level() <= Level::INFO
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push((*event.metadata().level(), message.0));
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}
