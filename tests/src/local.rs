//! The in-memory AWS of `leasehold local` in this process, with a gate that can refuse requests.

use leasehold_local_aws::dynamo::DynamoConfig;
use leasehold_local_aws::http::{LocalOptions, Loopback, SharedAws};
use leasehold_local_aws::kinesis::KinesisConfig;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A refusal by the common front of all AWS services.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    /// The error's code.
    pub code: &'static str,
    /// The error's message.
    pub message: &'static str,
}

/// The in-memory AWS. The server ends with the runtime of its start.
#[derive(Clone)]
pub struct Local {
    /// Where it listens.
    pub endpoint: String,
    /// The services themselves.
    pub aws: SharedAws,
    refused: Arc<Mutex<BTreeMap<String, u64>>>,
}

impl fmt::Debug for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Local").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// Without limits, and with every transition immediate.
pub fn instant() -> LocalOptions {
    LocalOptions {
        kinesis: KinesisConfig::instant(),
        dynamo: DynamoConfig { create_ms: 0, backfill_ms: 0, delete_ms: 0, ..DynamoConfig::default() },
        ..LocalOptions::default()
    }
}

impl Local {
    /// Starts one, with a gate that refuses nothing.
    ///
    /// # Panics
    /// If there is no free port.
    pub async fn start(options: LocalOptions) -> Self {
        let server = Loopback::start(options).await.expect("a free port");
        let (endpoint, aws) = (server.endpoint().to_owned(), server.aws().clone());
        // A drop would stop the server.
        tokio::spawn(async move {
            let _server = server;
            std::future::pending::<()>().await
        });
        Self { endpoint, aws, refused: Arc::default() }
    }

    /// From now on, refuses the operations refused by the rule, and no further operations.
    pub fn refuse(&self, rule: impl Fn(&str) -> Option<Refusal> + Send + 'static) {
        self.refuse_by_body(move |target, _| rule(target));
    }

    /// As [`refuse`](Self::refuse). The rule sees the operation, and then the body in JSON.
    pub fn refuse_by_body(&self, rule: impl Fn(&str, &str) -> Option<Refusal> + Send + 'static) {
        let counts = self.refused.clone();
        self.aws.refuse(Some(Box::new(move |target, body| {
            let Refusal { code, message } = rule(target, body)?;
            *lock(&counts).entry(target.to_owned()).or_default() += 1;
            Some((code, message))
        })));
    }

    /// From now on, refuses nothing.
    pub fn refuse_nothing(&self) {
        self.aws.refuse(None);
    }

    /// The number of refused requests up to now, by operation.
    pub fn refused(&self) -> BTreeMap<String, u64> {
        lock(&self.refused).clone()
    }
}

fn lock(counts: &Mutex<BTreeMap<String, u64>>) -> MutexGuard<'_, BTreeMap<String, u64>> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}
