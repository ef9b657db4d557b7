//! The sinks for records that a handler cannot process, and the policy for using them.

mod channel;
mod file;
#[cfg(feature = "aws")]
mod stream;
#[cfg(all(test, feature = "tokio-runtime"))]
mod tests;

pub use channel::{DeadLetterChannel, dead_letter_channel};
pub use file::DeadLetterFile;
#[cfg(feature = "aws")]
pub use stream::DeadLetterStream;

use crate::batch::ShardInfo;
use crate::error::Error;
use crate::handler::describe;
use crate::record::Record;
use crate::runtime::BoxFuture;
use leasehold_engine::aggregate::Misplaced;
use leasehold_engine::config::{Config, FailureAction};
use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

/// A record that a handler could not process, or a record of another shard ([`Misplaced::DeadLetter`]).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Letter {
    /// The record, unchanged.
    pub record: Record,
    /// The shard that it is from.
    pub shard: Arc<ShardInfo>,
    /// How often the handler failed with this record alone, in a row; 0: it was not given to the handler.
    pub attempts: u32,
    /// How the handler failed last, or why it was not given the record.
    pub error: String,
}

/// Keeps records that a handler cannot process: a dead-letter sink. See [`Builder::dead_letter`](crate::Builder::dead_letter).
///
/// ```
/// use leasehold::{DeadLetter, Letter};
///
/// struct Print;
///
/// impl DeadLetter for Print {
///     type Error = std::io::Error;
///
///     async fn store(&self, letter: Letter) -> Result<(), Self::Error> {
///         println!("{} failed {} times: {}", letter.record.position, letter.attempts, letter.error);
///         Ok(())
///     }
/// }
/// ```
///
/// This crate has three: [`DeadLetterFile`], [`dead_letter_channel`] and, with the feature `aws`, `DeadLetterStream`.
pub trait DeadLetter: Send + Sync + 'static {
    /// What goes wrong here.
    type Error: Into<Box<dyn StdError + Send + Sync>> + Send;

    /// Makes the record durable. After `Ok` the record counts as processed, and is not handed over again. After an
    /// error or a panic, the worker gives the record again, after a pause, for as long as needed; the shard waits. A
    /// record may be given more than once: when the call is dropped because the shard is lost, or when the worker
    /// ends before its next checkpoint.
    fn store(&self, letter: Letter) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// A dead-letter sink of any type. Errors have become text.
pub(crate) trait AnyDeadLetter: Send + Sync {
    fn store(self: Arc<Self>, letter: Letter) -> BoxFuture<'static, Result<(), String>>;
}

impl<D: DeadLetter> AnyDeadLetter for D {
    fn store(self: Arc<Self>, letter: Letter) -> BoxFuture<'static, Result<(), String>> {
        Box::pin(async move { DeadLetter::store(&*self, letter).await.map_err(describe) })
    }
}

/// What a worker does when a handler fails again and again with the same record.
///
/// A batch that failed `attempts` times without progress is handed over one record at a time. The failing record is
/// then known, and earlier records get through. When that record has failed `attempts` times alone, the policy
/// decides:
///
/// | policy | what happens then |
/// |---|---|
/// | [`retry`](Self::retry) (the default) | there is no limit: the batch is handed over whole until the handler succeeds, and the shard waits |
/// | [`stop`](Self::stop) | the shard stands still until [`Control::resume`](crate::Control::resume); its lease is kept, and an error event tells the stop |
/// | [`set_aside`](Self::set_aside) | the record goes to the [dead-letter sink](DeadLetter) and counts as processed; an event tells of it |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailurePolicy {
    /// Absent: there is no limit.
    limit: Option<(u32, FailureAction)>,
}

impl FailurePolicy {
    /// Hand the batch over again until it succeeds.
    pub const fn retry() -> Self {
        Self { limit: None }
    }

    /// Stop the shard when one record has failed this many times alone; at least once.
    pub const fn stop(attempts: u32) -> Self {
        Self { limit: Some((attempts, FailureAction::Stop)) }
    }

    /// Set a record aside after this many failures alone; at least once. Without a [dead-letter sink](DeadLetter), an
    /// event is the only remnant of the record.
    pub const fn set_aside(attempts: u32) -> Self {
        Self { limit: Some((attempts, FailureAction::SetAside)) }
    }

    /// The options that say this.
    pub(crate) fn apply(self, config: Config) -> Config {
        let (attempts, action) = self.limit.unwrap_or_default();
        config.with_failure_attempts(attempts).with_failure_action(action)
    }

    /// Refuses a limit of no attempts.
    pub(crate) fn check(self) -> Result<(), Error> {
        match self.limit {
            Some((0, _)) => Err(Error::FailurePolicy {
                expected: "at least 1 attempt before a record is given up",
                found: "0",
                remedy: "say how many, or call `.failure_policy(FailurePolicy::retry())` for attempts without a limit",
            }),
            _ => Ok(()),
        }
    }
}

impl Default for FailurePolicy {
    fn default() -> Self {
        Self::retry()
    }
}

/// Refuses a dead-letter sink that no record could ever reach, and misplaced dead letters without a sink.
pub(crate) fn check_sink(config: &Config, misplaced: Misplaced, is_there: bool) -> Result<(), Error> {
    match (misplaced, is_there) {
        (Misplaced::DeadLetter, false) => {
            return Err(Error::FailurePolicy {
                expected: "a dead-letter sink, for `Misplaced::DeadLetter`",
                found: "none",
                remedy: "call `.dead_letter(sink)` on the builder",
            });
        }
        (Misplaced::DeadLetter, true) | (_, false) => return Ok(()),
        (_, true) => {}
    }
    let found = match (config.failure_attempts(), config.failure_action()) {
        (0, _) => "a policy that never gives a record up",
        (_, FailureAction::SetAside) => return Ok(()),
        _ => "a policy that stops the shard",
    };
    Err(Error::FailurePolicy {
        expected: "records to be set aside, since there is a dead-letter sink",
        found,
        remedy: "call `.failure_policy(FailurePolicy::set_aside(attempts))` or `.misplaced_aggregates(Misplaced::DeadLetter)` on the \
                 builder, or give it no sink",
    })
}

/// An error of a sink, in words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotStored(String);

impl NotStored {
    fn new(what: impl fmt::Display) -> Self {
        Self(what.to_string())
    }
}
