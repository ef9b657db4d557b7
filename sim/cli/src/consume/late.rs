//! Streams that are found after the start of the worker: a service did not describe them in time.

use super::caught::Lost;
use crate::streams::search::{Search, Sought};
use leasehold::Control;
use leasehold::admin::NamedStream;
use std::sync::{Arc, Mutex, PoisonError};

/// The streams found late, and those that are still looked up. Clones share both.
#[derive(Clone, Debug, Default)]
pub(super) struct FoundLate {
    found: Arc<Mutex<Vec<NamedStream>>>,
    sought: Sought,
}

impl FoundLate {
    /// The streams found so far.
    pub(super) fn so_far(&self) -> Vec<NamedStream> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The streams that are still looked up, as they were given.
    pub(super) fn sought(&self) -> Vec<String> {
        self.sought.names()
    }
}

/// The look-ups that still run at the start of the worker.
#[derive(Debug)]
pub(super) struct Late {
    search: Search,
    found: FoundLate,
    lost: Arc<Lost>,
}

impl Late {
    pub(super) fn new(search: Search, lost: Arc<Lost>) -> Self {
        let found = FoundLate { found: Arc::default(), sought: search.sought() };
        Self { search, found, lost }
    }

    /// What is found, now and later.
    pub(super) fn found(&self) -> FoundLate {
        self.found.clone()
    }

    /// Gives the worker each stream as soon as the stream is found. As with a stream that is lost, the worker goes on
    /// without a stream that cannot be found.
    pub(super) async fn add_to(mut self, control: Control) {
        while let Some((text, look)) = self.search.next().await {
            let stream = match look {
                Ok(stream) => {
                    let mut found = self.found.found.lock().unwrap_or_else(PoisonError::into_inner);
                    found.push(stream.clone().into());
                    stream
                }
                Err(error) => {
                    tracing::error!(
                        target: "leasehold",
                        kind = "stream-lost",
                        "{error}; the worker goes on without this stream; correct what is refused, and start again"
                    );
                    self.lost.give_up(&text, error.found());
                    self.search.settled(&text);
                    continue;
                }
            };
            let id = stream.id().clone();
            match control.add_stream(stream) {
                Ok(()) => {
                    tracing::info!(target: "leasehold", kind = "stream-added", "added stream {id}, which was found late")
                }
                Err(error) => self.lost.give_up(&text, &error.to_string()),
            }
            self.search.settled(&text);
        }
    }
}
