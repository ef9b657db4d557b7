//! The network between a worker and the services, on madsim.

use crate::connector::{Carried, Network, Request};
use crate::fate::{Fates, Seen, Spell};
use crate::runtime::elapsed_us;
use crate::stage::Stage;
use leasehold::runtime::BoxFuture;
use madsim::runtime::NodeHandle;
use madsim::time::TimeHandle;
use std::collections::BTreeMap;
use std::fmt;
use std::future::pending;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// The network of one life of a worker.
pub(crate) struct SimNetwork {
    /// Where the services are.
    pub stage: Stage,
    /// The services' node: a request on its way to this node arrives even if the worker dies.
    pub server: NodeHandle,
    /// The true time.
    pub time: TimeHandle,
    /// What becomes of requests.
    pub fates: Fates,
    /// The worker.
    pub worker: u32,
    /// Its life.
    pub client: String,
    /// How many requests of each operation were sent.
    pub sent: Mutex<BTreeMap<String, u64>>,
}

impl fmt::Debug for SimNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimNetwork").field("client", &self.client).finish_non_exhaustive()
    }
}

impl SimNetwork {
    fn count(&self, operation: &str) -> u64 {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let count = sent.entry(operation.to_owned()).or_default();
        *count += 1;
        *count
    }
}

impl Network for SimNetwork {
    fn carry(&self, request: Request) -> BoxFuture<'static, Carried> {
        let n = self.count(request.operation());
        let fate = {
            let mut scene = self.stage.scene();
            let spell = match (scene.healed, scene.cut.contains(&self.worker)) {
                (true, _) => Spell::Fair,
                (_, true) => Spell::Cut,
                _ => Spell::Faulty,
            };
            let fate = self.fates.of(&self.client, request.operation(), n, spell);
            *scene.families.entry(fate.family).or_default() += 1;
            let now_us = elapsed_us(&self.time);
            scene.cloud.note(&(now_us, &self.client, request.operation(), fate.family));
            fate
        };
        let (answer, answered) = oneshot::channel();
        if let Some(after) = fate.lands {
            let (stage, time, client) = (self.stage.clone(), self.time.clone(), self.client.clone());
            self.server.spawn(async move {
                time.sleep(Duration::from_micros(after)).await;
                let now_us = elapsed_us(&time);
                // Whether the client still waits is not the services' concern.
                let _ = answer.send(stage.scene().execute(now_us, &client, &request));
            });
        }
        let time = self.time.clone();
        let wait = move |us| time.sleep(Duration::from_micros(us));
        Box::pin(async move {
            match fate.seen {
                Seen::Answer(back) => match answered.await {
                    Ok(answer) => {
                        wait(back).await;
                        Carried::Answer { status: answer.status, body: answer.bytes() }
                    }
                    Err(_) => Carried::Reset,
                },
                Seen::Error(after, status, code) => {
                    wait(after).await;
                    Carried::Answer { status, body: crate::cloud::Answer::error(status, code).bytes() }
                }
                Seen::Reset(after) => {
                    wait(after).await;
                    Carried::Reset
                }
                Seen::ReadTimeout(after) => {
                    wait(after).await;
                    Carried::ReadTimeout
                }
                Seen::Refused(after) => {
                    wait(after).await;
                    Carried::Refused
                }
                Seen::Nothing => pending().await,
            }
        })
    }
}
