//! A world on madsim, from the beginning to the verdict.

use crate::app::App;
use crate::cloud::{STREAM, wall_ms};
use crate::connector::Connector;
use crate::ending;
use crate::fate::Fates;
use crate::network::SimNetwork;
use crate::plan::{Event, Plan};
use crate::runtime::{SimRuntime, elapsed_us};
use crate::stage::{End, Life, Stage};
use crate::verdict::Verdict;
use leasehold::Worker;
use leasehold::aws::{dynamodb, kinesis};
use leasehold::internals::{MemorySink, SdkSleep, SdkTime};
use leasehold_local_aws::kinesis::{HashRange, ShardIndex};
use leasehold_sim::draws::Draws;
use madsim::runtime::{Handle, NodeHandle, Runtime};
use madsim::time::TimeHandle;
use std::sync::Arc;
use std::time::Duration;

/// How long a healed world may take to come to rest.
const REST_MS: u64 = 120_000;
/// How long the last shutdown may take.
const SHUTDOWN_MS: u64 = 30_000;
/// Splits make no more shards than this number.
const MOST_SHARDS: usize = 8;

/// Runs the world of a seed. To be called once in a process: some of the SDK's state is the process's.
pub fn run(seed: u64) -> World {
    // The SDK always draws from here, even with other injected sources.
    fastrand::seed(seed);
    let runtime = Runtime::with_seed_and_config(seed, madsim::Config::default());
    runtime.block_on(live(Plan::new(seed)))
}

/// A world after its end.
#[derive(Clone, Debug)]
pub struct World {
    /// The report about the world.
    pub verdict: Verdict,
    /// The trace of every worker's life, by its name.
    pub traces: Vec<(String, String)>,
}

/// The tools to build a world's parts.
#[derive(Clone)]
struct Ground {
    plan: Arc<Plan>,
    stage: Stage,
    time: TimeHandle,
    server: NodeHandle,
}

async fn live(plan: Plan) -> World {
    let handle = Handle::current();
    let ground = Ground {
        stage: Stage::new(&plan),
        plan: Arc::new(plan),
        time: TimeHandle::current(),
        server: handle.create_node().name("aws").build(),
    };
    let stage = &ground.stage;
    let workers: Vec<NodeHandle> = (0..ground.plan.workers)
        .map(|worker| {
            let ground = ground.clone();
            handle
                .create_node()
                .name(format!("worker-{worker}"))
                .init(move || live_as(ground.clone(), worker))
                .build()
        })
        .collect();
    let producer = madsim::task::spawn(produce(ground.clone()));
    for (at_ms, event) in &ground.plan.events {
        ground.until(*at_ms).await;
        take_place(&ground, &handle, &workers, *event);
    }
    ground.until(ground.plan.heal_ms).await;
    heal(&ground, &handle, &workers);
    // It only returns.
    let _ = producer.await;
    come_to_rest(&ground).await;
    shut_down(&ground).await;
    let lasted_ms = ground.now_ms();
    ending::check(&mut stage.scene());
    // Nodes alive at the end would never be freed.
    for node in workers.iter().chain([&ground.server]) {
        handle.kill(node.id());
    }
    ground.time.sleep(Duration::from_millis(10)).await;
    let mut scene = stage.scene();
    let inputs = ending::replay_all(&mut scene);
    World {
        verdict: Verdict::on(ground.plan.seed, &mut scene, lasted_ms, inputs),
        traces: scene.lives.iter().map(|life| (life.client.clone(), life.trace.text())).collect(),
    }
}

impl Ground {
    fn now_ms(&self) -> u64 {
        elapsed_us(&self.time) / 1_000
    }

    async fn until(&self, ms: u64) {
        let left = ms.saturating_sub(self.now_ms());
        if left > 0 {
            self.time.sleep(Duration::from_millis(left)).await;
        }
    }
}

/// One life of a worker.
async fn live_as(ground: Ground, worker: u32) {
    let Ground { plan, stage, time, server } = ground;
    let before = stage.scene().lives.iter().filter(|life| life.worker == worker).count();
    let client = format!("worker-{worker}#{before}");
    let runtime = SimRuntime::new(time.clone(), plan.seed, &client, plan.config.clock_rate_error_ppm());
    let runtime: Arc<dyn leasehold::runtime::Runtime> = Arc::new(runtime);
    let connector = Connector::new(Arc::new(SimNetwork {
        stage: stage.clone(),
        server,
        time,
        fates: Fates::new(plan.seed, plan.weather),
        worker,
        client: client.clone(),
        sent: Default::default(),
    }));
    let kinesis = kinesis::Config::builder()
        .behavior_version(kinesis::config::BehaviorVersion::latest())
        .region(kinesis::config::Region::new("us-east-1"))
        .credentials_provider(kinesis::config::Credentials::new("AK", "SK", None, None, "simulated"))
        .http_client(connector.clone())
        .sleep_impl(SdkSleep(runtime.clone()))
        .time_source(SdkTime(runtime.clone()))
        .build();
    let dynamodb = dynamodb::Config::builder()
        .behavior_version(dynamodb::config::BehaviorVersion::latest())
        .region(dynamodb::config::Region::new("us-east-1"))
        .credentials_provider(dynamodb::config::Credentials::new("AK", "SK", None, None, "simulated"))
        .http_client(connector)
        .sleep_impl(SdkSleep(runtime.clone()))
        .time_source(SdkTime(runtime.clone()))
        .build();
    let trace = MemorySink::default();
    let options = plan.config.clone();
    let built = Worker::builder()
        .kinesis(kinesis::Client::from_conf(kinesis))
        .dynamodb(dynamodb::Client::from_conf(dynamodb))
        .stream(options.stream())
        .application(options.table())
        .worker_id(format!("worker-{worker}"))
        .config(|_| options)
        .runtime(runtime.clone())
        .trace_sink(trace.clone())
        .build();
    let life = match built {
        Ok(life) => life,
        Err(error) => {
            stage.scene().ledger.violations.push(format!("{client}: {error}"));
            return;
        }
    };
    stage.scene().lives.push(Life {
        worker,
        client: client.clone(),
        trace,
        control: life.control(),
        end: None,
    });
    let app = App {
        stage: stage.clone(),
        runtime,
        client: client.clone(),
        seed: plan.seed,
        work_ms: plan.work_ms,
        calls: Default::default(),
    };
    let result = match life.run(app).await {
        // Faults may keep a worker from releasing its leases: these leases expire.
        Ok(_) | Err(leasehold::Error::Unclean(_)) => Ok(()),
        Err(error) => Err(error.to_string()),
    };
    stage.scene().ends(&client, End::Returned(result));
}

/// Writes records until the end of the producing time.
async fn produce(ground: Ground) {
    let draws = Draws::new(ground.plan.seed);
    let mut n = 0;
    loop {
        let mut roll = draws.roll("produce", n);
        n += 1;
        ground.time.sleep(Duration::from_millis(roll.magnitude(20, 600))).await;
        if ground.now_ms() >= ground.plan.last_record_ms {
            return;
        }
        for _ in 0..roll.magnitude(1, 8) {
            let key = format!("key-{}", roll.below(ground.plan.keys));
            let now_us = elapsed_us(&ground.time);
            ground.stage.scene().write(now_us, key);
        }
    }
}

fn take_place(ground: &Ground, handle: &Handle, workers: &[NodeHandle], event: Event) {
    let node = |worker: u32| workers[worker as usize].id();
    let mut scene = ground.stage.scene();
    match event {
        Event::Kill(worker) => {
            if let Some(client) = scene.living(worker).map(|life| life.client.clone()) {
                scene.count("kill");
                scene.ends(&client, End::Killed);
                drop(scene);
                handle.kill(node(worker));
            }
        }
        Event::Start(worker) => {
            if let Some(client) = scene.living(worker).map(|life| life.client.clone()) {
                scene.ends(&client, End::Killed);
            }
            scene.count("start");
            drop(scene);
            handle.restart(node(worker));
        }
        Event::Pause(worker) => {
            scene.count("pause");
            handle.pause(node(worker));
        }
        Event::Resume(worker) => handle.resume(node(worker)),
        Event::ShutDown(worker) => {
            if let Some(life) = scene.living(worker) {
                life.control.shutdown();
                scene.count("shut-down");
            }
        }
        Event::Cut(worker) => {
            scene.cut.insert(worker);
            scene.count("cut");
        }
        Event::Mend(worker) => {
            scene.cut.remove(&worker);
        }
        Event::Split(pick) | Event::Merge(pick) => {
            let split = matches!(event, Event::Split(_));
            madsim::task::spawn(reshard(ground.clone(), split, pick));
        }
    }
}

/// Splits or merges, if need be after another change has ended.
async fn reshard(ground: Ground, split: bool, pick: u64) {
    for _ in 0..20 {
        {
            let mut scene = ground.stage.scene();
            let now_ms = wall_ms(elapsed_us(&ground.time));
            scene.cloud.kinesis.advance(now_ms);
            let mut open: Vec<(ShardIndex, HashRange)> = scene
                .cloud
                .stream()
                .shards()
                .filter(|shard| shard.is_open())
                .map(|shard| (shard.index(), shard.hash_range()))
                .collect();
            open.sort_by_key(|(_, range)| range.start);
            let kinesis = &mut scene.cloud.kinesis;
            let changed = if split {
                open.len() < MOST_SHARDS && {
                    let (shard, range) = open[(pick % open.len() as u64) as usize];
                    let middle = range.start + (range.end - range.start) / 2;
                    kinesis.split_shard(now_ms, STREAM, shard, middle).is_ok()
                }
            } else {
                open.len() > 1 && {
                    let left = (pick % (open.len() as u64 - 1)) as usize;
                    let (left, right) = (open[left].0, open[left + 1].0);
                    kinesis.merge_shards(now_ms, STREAM, left, right).is_ok()
                }
            };
            if changed {
                scene.count(if split { "split" } else { "merge" });
                return;
            }
        }
        ground.time.sleep(Duration::from_millis(700)).await;
    }
}

/// Ends every fault, and starts dead workers.
fn heal(ground: &Ground, handle: &Handle, workers: &[NodeHandle]) {
    let dead: Vec<usize> = {
        let mut scene = ground.stage.scene();
        scene.healed = true;
        (0..workers.len()).filter(|worker| scene.living(*worker as u32).is_none()).collect()
    };
    for (worker, node) in workers.iter().enumerate() {
        handle.resume(node.id());
        if dead.contains(&worker) {
            handle.restart(node.id());
        }
    }
}

/// Waits until every record is processed, and until leases have kept their owners for a calm time.
async fn come_to_rest(ground: &Ground) {
    let config = &ground.plan.config;
    let calm = config.lease_duration().times(2) + config.scan_interval().times(3);
    let deadline_ms = ground.now_ms() + REST_MS;
    let mut since = (0, ground.now_ms());
    loop {
        let (unrest, changes) = {
            let mut scene = ground.stage.scene();
            scene.cloud.kinesis.advance(wall_ms(elapsed_us(&ground.time)));
            (ending::unrest(&scene), scene.ledger.owner_changes)
        };
        let now_ms = ground.now_ms();
        if since.0 != changes {
            since = (changes, now_ms);
        }
        let why = match unrest {
            None if now_ms >= since.1 + calm.0 / 1_000 => return,
            None => "leases go on changing their owners".to_owned(),
            Some(why) => why,
        };
        if now_ms > deadline_ms {
            let violations = &mut ground.stage.scene().ledger.violations;
            violations.push(format!("no rest {REST_MS} ms after all faults ended: {why}"));
            return;
        }
        ground.time.sleep(Duration::from_millis(250)).await;
    }
}

async fn shut_down(ground: &Ground) {
    for life in &ground.stage.scene().lives {
        if life.end.is_none() {
            life.control.shutdown();
        }
    }
    let deadline_ms = ground.now_ms() + SHUTDOWN_MS;
    while ground.now_ms() < deadline_ms && ground.stage.scene().lives.iter().any(|life| life.end.is_none()) {
        ground.time.sleep(Duration::from_millis(250)).await;
    }
}
