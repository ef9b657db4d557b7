//! A dead-letter sink that gives records to the program itself.

use super::{DeadLetter, Letter, NotStored};
use tokio::sync::mpsc;

/// Gives records that a handler cannot process to a task of the program; see [`dead_letter_channel`].
#[derive(Clone, Debug)]
pub struct DeadLetterChannel(mpsc::Sender<Letter>);

/// A dead-letter sink, and the receiver of its records. `capacity` records wait in the channel; 0 counts as 1. Shards
/// with further records wait while the channel is full.
///
/// A record counts as processed once the record is in the channel: waiting records are lost if the process ends. Once
/// the receiver is dropped, records are not set aside any more, and an event tells each attempt.
pub fn dead_letter_channel(capacity: usize) -> (DeadLetterChannel, mpsc::Receiver<Letter>) {
    let (sender, receiver) = mpsc::channel(capacity.max(1));
    (DeadLetterChannel(sender), receiver)
}

impl DeadLetter for DeadLetterChannel {
    type Error = NotStored;

    async fn store(&self, letter: Letter) -> Result<(), NotStored> {
        let closed = |_| {
            NotStored::new(
                "expected a receiver of the dead-letter channel, found that it was dropped; keep it for as long as the worker runs",
            )
        };
        self.0.send(letter).await.map_err(closed)
    }
}
