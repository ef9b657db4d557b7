//! Answers that come bit by bit.

use super::*;
use crate::asks::asks;
use crate::fence::Fences;
use crate::ports::Port;
use crate::runtime::{BoxFuture, TokioRuntime};
use crate::testing::{Script, boot, op, ports, read};
use leasehold_engine::output::TableOp;
use std::time::Duration;

/// A table whose answer arrives bit by bit, until this many seconds after the beginning.
struct Slow {
    clock: Arc<dyn Runtime>,
    begun: Mono,
    comes: u64,
    ends: Option<u64>,
}

impl Port<TableOp> for Slow {
    fn execute(&self, _: OpId, _: TableOp) -> BoxFuture<'static, Outcome> {
        match self.ends {
            Some(seconds) => Box::pin(async move {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                Outcome::Applied(Reply::Done)
            }),
            None => Box::pin(std::future::pending()),
        }
    }

    fn heard(&self, _: OpId) -> Option<Mono> {
        let last = self.begun + Span::from_secs(self.comes);
        Some(self.clock.now().min(last))
    }
}

/// How a command ends that may be silent for 3 s, and after how many seconds.
async fn ends(comes: u64, ends: Option<u64>) -> (Outcome, u64) {
    let clock: Arc<dyn Runtime> = Arc::new(TokioRuntime::current().unwrap());
    let begun = clock.now();
    let script = Script {
        at_boot: vec![(read("slow"), Span::from_secs(3))],
        stop_when_done: true,
        ..Script::default()
    };
    let inputs = script.inputs();
    let table = Slow { clock: clock.clone(), begun, comes, ends };
    let observer = Observer::new(Fences::default(), None);
    let (_sender, receiver) = asks();
    let driver = Driver::new(script, clock, ports(table), receiver, Recorder::new(None, None), observer);
    driver.run(boot()).await.unwrap();
    let inputs = inputs.lock().unwrap();
    let done = inputs.iter().find_map(|input| match &input.body {
        Body::Done { op: id, outcome } if *id == op(1) => Some((outcome.clone(), input.at)),
        _ => None,
    });
    let (outcome, at) = done.unwrap();
    (outcome, at.since(begun).0 / 1_000_000)
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_waited_for_while_it_comes_and_no_longer() {
    let timeout = Outcome::Unknown(Cause::Timeout);
    assert_eq!(ends(10, Some(12)).await, (Outcome::Applied(Reply::Done), 12));
    assert_eq!(ends(10, None).await, (timeout.clone(), 13), "3 s after the last byte");
    assert_eq!(ends(0, None).await, (timeout.clone(), 3));
    assert_eq!(ends(1_000, None).await, (timeout, 60), "twenty times as long in all");
}
