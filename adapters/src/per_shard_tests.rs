use super::*;
use crate::testing::rig::{Rig, TOKEN, why};
use leasehold_engine::input::{Outcome, Reply, Why};
use leasehold_engine::output::FlushReason;
use leasehold_engine::time::Mono;
use std::io;

type Notes = Arc<StdMutex<Vec<String>>>;

/// Counts batches, and notes each call.
struct Counts {
    batches: u32,
    notes: Notes,
}

impl Counts {
    fn note(&self, text: String) {
        self.notes.lock().unwrap().push(text);
    }
}

impl ShardHandler for Counts {
    type Error = io::Error;

    async fn process(&mut self, batch: Batch) -> Result<Ack, io::Error> {
        self.batches += 1;
        self.note(format!("{} of {}", self.batches, batch.shard().shard));
        match &*batch.records()[0].data {
            b"fail" => Err(io::Error::other("inner")),
            b"panic" => panic!("on purpose"),
            _ => Ok(Ack::All),
        }
    }

    async fn flush(&mut self, flush: Flush) -> Result<(), io::Error> {
        self.note(format!("{:?}", flush.reason()));
        Ok(())
    }

    async fn close(&mut self, reason: EndReason) {
        self.note(format!("{} until {reason:?}", self.batches));
    }
}

#[tokio::test(start_paused = true)]
async fn each_shard_has_a_handler_with_state_from_opening_to_close() {
    let notes = Notes::default();
    let own = notes.clone();
    let make = move |_: &ShardInfo| Counts { batches: 0, notes: own.clone() };
    let rig = Rig::new(|_, _| Arc::new(PerShard::new(make)));
    let done = Outcome::Applied(Reply::Done);
    // Ids grow, and a close frees everything before the close.
    for batch in [2, 72] {
        assert_eq!(rig.open().await, done);
        rig.keep(batch, "fail");
        let (reason, detail) = why(rig.deliver(batch, None, 1).await);
        assert_eq!((reason, detail.as_str()), (Why::HandlerFailed, "inner"));
        rig.keep(batch, "panic");
        assert_eq!(why(rig.deliver(batch, None, 2).await).0, Why::HandlerFailed);
        rig.keep(batch, "fine");
        assert_eq!(rig.deliver(batch, None, 3).await, Outcome::Applied(Reply::Processed));
        assert_eq!(rig.flush(FlushReason::Full, Mono::NEVER).await, done);
        assert_eq!(rig.close(TOKEN).await, done);
        let expected = ["1 of s", "2 of s", "3 of s", "Full", "3 until HandedOver"];
        assert_eq!(std::mem::take(&mut *notes.lock().unwrap()), expected);
    }
}
