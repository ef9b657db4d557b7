//! The host of a world on madsim: a node for every life of a worker, with the clients of the AWS SDK.

use crate::app::App;
use crate::carried::{Carried, Request};
use crate::cloud::{Cloud, failure};
use crate::connector::Connector;
use crate::runtime::{SimRuntime, elapsed_us};
use crate::settings;
use crate::verdict::{Counts, Verdict};
use aws_types::SdkConfig;
use leasehold::aws::kinesis::config::{BehaviorVersion, Credentials, Region, SharedCredentialsProvider};
use leasehold::aws::{dynamodb, kinesis};
use leasehold::internals::{MemorySink, SdkSleep, SdkTime, TraceReader, replay};
use leasehold::runtime::BoxFuture;
use leasehold::{CompleteBuilder, Worker};
use leasehold_testing::harness::{
    APPLICATION, Books, Draws, Failing, Failure, Host, Life, Outbox, Plan, Report, Run, STREAM, Served,
    Service, Stage, Time, Which,
};
use madsim::runtime::{Handle, NodeHandle, Runtime};
use madsim::time::{TimeHandle, timeout};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The traces of the lives, by name.
type Traces = Vec<(String, MemorySink)>;

/// A world after its end.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The report about the world.
    pub verdict: Verdict,
    /// The trace of every worker's life, by its name.
    pub traces: Vec<(String, String)>,
}

/// Runs a world. To be called once in a process: some of the SDK's state is the process's. `tell`: a failure is
/// reported with all that happened.
pub fn run(which: &Which, tell: bool) -> Ran {
    // The SDK always draws from here, even with other injected sources.
    fastrand::seed(which.seed);
    let runtime = Runtime::with_seed_and_config(which.seed, madsim::Config::default());
    runtime.block_on(live(which, tell))
}

async fn live(which: &Which, tell: bool) -> Ran {
    let (time, books) = (TimeHandle::current(), Books::default());
    let mut world = settings::world(which.seed);
    let (shared, seed) = (books.clone(), which.seed);
    let healed = settings::healed(Draws::new(seed));
    world.handler_at(move |life, place| App::new(seed, healed, shared.clone(), life, place));
    world.finally(move |end| books.check(end));
    let plan = world.plan();
    let clock = time.clone();
    let stage = Stage::new(move || elapsed_us(&clock) / 1_000, plan.source(), plan.judge(), tell);
    let nodes = Nodes::new(&plan, time.clone());
    let left = which.left(&plan.faults);
    let mut run = Run::new(&mut world, &plan, &left, stage.clone(), nodes);
    while !run.is_over() {
        let now = elapsed_us(&time);
        run.step(now);
        for worker in 0..plan.workers {
            run.settle(worker);
        }
        let wait = run.next().unwrap_or(now).saturating_sub(now);
        let wakes = run.wakes.clone();
        // Woken early, the loop takes in requests.
        let _ = timeout(Duration::from_micros(wait), wakes.notified()).await;
    }
    // Nodes alive at the end would never be freed.
    (0..plan.workers).for_each(|worker| run.host.kill(worker));
    let (traces, calls) = (std::mem::take(&mut run.host.traces), run.host.cloud.calls);
    let lasted = stage.now();
    let outcomes = run.conclude();
    time.sleep(Duration::from_millis(10)).await;
    let (inputs, unlike) = replay_all(&stage, &traces);
    let failure = outcomes.failure.or_else(|| {
        let what = unlike.first()?.clone();
        Some(Failure { property: "replay", what, at: lasted })
    });
    let events = events(&stage, left.iter().filter(|number| plan.faults[**number].kind() == "cut").count());
    let mut verdict = Verdict {
        seed,
        digest: format!("{:016x}", stage.digest()),
        lasted_ms: lasted,
        records: outcomes.records,
        lost: outcomes.lost,
        repeated: outcomes.repeated,
        lives: outcomes.lives,
        killed: events.get("kill").copied().unwrap_or(0),
        inputs,
        calls,
        events,
        faults: owned(&stage.scene().requests),
        drawn: plan.faults.len(),
        violations: unlike,
        ..Verdict::default()
    };
    if let Some(failure) = failure {
        verdict.violations.insert(0, format!("{}: {}", failure.property, failure.what));
        verdict.broken = Some(failure.property.to_owned());
        let report = Report {
            seed,
            failure,
            needed: left.iter().map(|number| (*number, plan.faults[*number].to_string())).collect(),
            drawn: plan.faults.len(),
            story: outcomes.story,
            repeat: format!("cargo sim-stack --seeds {which}"),
        };
        verdict.report = tell.then(|| report.to_string());
    }
    Ran { verdict, traces: traces.into_iter().map(|(client, trace)| (client, trace.text())).collect() }
}

/// The events of a world, under the names of the report. A cut is a fault of requests: no event of the harness.
fn events(stage: &Stage, cuts: usize) -> Counts {
    let name = |event| match event {
        "crash" => "kill",
        "merged" => "merge",
        "shutdown" => "shut-down",
        other => other,
    };
    let scene = stage.scene();
    let told = scene.events.iter().filter(|(event, _)| **event != "ended");
    let mut events: Counts = told.map(|(event, count)| (name(*event).to_owned(), *count)).collect();
    if cuts > 0 {
        events.insert("cut".to_owned(), cuts as u64);
    }
    events
}

fn owned(counts: &BTreeMap<&'static str, u64>) -> Counts {
    counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

/// The nodes of a world, by worker, and the services behind them.
struct Nodes {
    time: TimeHandle,
    draws: Draws,
    rate_error_ppm: u32,
    cloud: Cloud,
    traces: Traces,
    alive: Vec<Option<NodeHandle>>,
}

impl Nodes {
    fn new(plan: &Plan, time: TimeHandle) -> Self {
        Self {
            time,
            draws: plan.draws,
            rate_error_ppm: plan.config.clock_rate_error_ppm(),
            cloud: Cloud::default(),
            traces: Vec::new(),
            alive: vec![None; plan.workers],
        }
    }
}

impl Host for Nodes {
    type Request = Request;
    type Answer = Carried;

    fn begin(
        &mut self, _: &Stage, life: Life, unique: usize, outbox: Outbox<Request, Carried>,
    ) -> Result<CompleteBuilder, String> {
        let Life { worker, nth, .. } = life;
        let client = format!("worker-{worker}#{nth}");
        self.alive[worker] = Some(Handle::current().create_node().name(&client).build());
        let runtime = SimRuntime::new(self.time.clone(), self.draws, unique as u64, self.rate_error_ppm);
        let runtime: Arc<dyn leasehold::runtime::Runtime> = Arc::new(runtime);
        let trace = MemorySink::default();
        self.traces.push((client, trace.clone()));
        let sdk = sdk(Connector { outbox, runtime: runtime.clone() }, &runtime);
        Ok(Worker::builder()
            .kinesis(kinesis::Client::new(&sdk))
            .dynamodb(dynamodb::Client::new(&sdk))
            .stream(STREAM)
            .application(APPLICATION)
            .runtime(runtime)
            .trace_sink(trace))
    }

    fn spawn(&mut self, worker: usize, make: impl FnOnce() -> BoxFuture<'static, ()>) {
        if let Some(node) = &self.alive[worker] {
            node.spawn(make());
        }
    }

    fn kill(&mut self, worker: usize) {
        if let Some(node) = self.alive[worker].take() {
            Handle::current().kill(node.id());
        }
    }

    fn pause(&mut self, worker: usize) {
        self.alive[worker].iter().for_each(|node| Handle::current().pause(node.id()));
    }

    fn resume(&mut self, worker: usize, _: Time) {
        self.alive[worker].iter().for_each(|node| Handle::current().resume(node.id()));
    }

    fn service(request: &Request) -> Service {
        request.service()
    }

    fn serve(&mut self, stage: &Stage, worker: usize, request: &Request) -> Served<Carried> {
        self.cloud.serve(stage, worker, request)
    }

    fn failure(request: &Request, failing: Failing) -> Carried {
        failure(request, failing)
    }
}

/// What the clients of a life are made of.
fn sdk(connector: Connector, runtime: &Arc<dyn leasehold::runtime::Runtime>) -> SdkConfig {
    let credentials = Credentials::new("AK", "SK", None, None, "simulated");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .http_client(connector)
        .sleep_impl(SdkSleep(runtime.clone()))
        .time_source(SdkTime(runtime.clone()))
        .build()
}

/// Replays every life's trace through a bare engine; returns the number of replayed inputs, and what is wrong. The
/// digest of the world takes in the traces.
fn replay_all(stage: &Stage, traces: &Traces) -> (u64, Vec<String>) {
    let (mut inputs, mut wrong) = (0, Vec::new());
    for (client, trace) in traces {
        let text = trace.text();
        stage.note(&(client, &text));
        let report = match replay(TraceReader::new(text.as_bytes())) {
            Ok(report) => report,
            Err(error) => {
                wrong.push(format!("the trace of {client} cannot be read: {error}"));
                continue;
            }
        };
        inputs += report.inputs;
        if let Some(at) = report.divergence {
            let (input, expected, found) = (at.input, at.expected, at.found);
            wrong.push(format!(
                "the replay of {client} diverges at input {input}: expected {expected}, found {found}"
            ));
        }
        if let Some(gap) = report.gap {
            wrong.push(format!("the trace of {client} has a gap at input {gap}"));
        }
        if report.inputs == 0 {
            wrong.push(format!("the trace of {client} is empty"));
        }
    }
    (inputs, wrong)
}
