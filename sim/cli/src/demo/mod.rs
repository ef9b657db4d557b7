//! `leasehold demo`: the whole system on this machine.

mod board;
mod fleet;
mod ledger;
mod operator;
mod producer;
mod summary;

use crate::clients::Clients;
use crate::exit::{self, Failure, Verdict};
use crate::signal;
use board::{Board, Telling};
use clap::Args;
use fleet::Fleet;
use leasehold::ReadMode;
use leasehold::runtime::{Runtime as _, TokioRuntime};
use leasehold_engine::internals::draw_below;
use leasehold_local_aws::http::{LocalOptions, Loopback};
use leasehold_sim::timeline::words::shorten;
use ledger::Ledger;
use operator::Operator;
use producer::{KEYS, Producer};
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use summary::Summary;
use tokio::task::JoinHandle;
use tokio::time::Instant;

const STREAM: &str = "demo-stream";
const APPLICATION: &str = "demo-application";

/// How often the live view is redrawn and the end looked for.
const REFRESH: Duration = Duration::from_millis(200);
/// How long after the planned end the last records are waited for.
const PATIENCE: Duration = Duration::from_secs(22);

/// Show the whole system at work, with no AWS account.
///
/// Starts an in-memory AWS on loopback, a producer, and a fleet of real workers on the real AWS SDK. During the work,
/// shards are split and merged, one worker is killed without warning, and another worker starts. At the end, the
/// command checks the books: every record processed, and in order for every partition key.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  leasehold demo\n  leasehold demo --workers 5 --shards 8 --records 40000 --trace traces --json"
)]
pub(super) struct DemoArgs {
    /// The number of workers at the start.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=20))]
    workers: u8,
    /// How many shards the stream has at first.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=100))]
    shards: u8,
    /// How many records are put. A shard takes 1,000 a second.
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    records: u64,
    /// The approximate length. The last records may need some seconds more.
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(5..=3600))]
    seconds: u64,
    /// The workers read by subscription (enhanced fan-out).
    #[arg(long)]
    fan_out: bool,
    /// Chooses the partition keys, the shards to split and merge, and the worker to kill; by default at random.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Where each worker's trace is written; by default a new directory for temporary files.
    #[arg(long, value_name = "DIR")]
    trace: Option<PathBuf>,
    /// Results as one JSON object; the story goes to stderr.
    #[arg(long)]
    json: bool,
}

impl DemoArgs {
    fn telling(&self) -> Telling {
        if self.json {
            Telling::Stderr
        } else if io::stdout().is_terminal() && io::stderr().is_terminal() {
            Telling::Live
        } else {
            Telling::Stdout
        }
    }

    fn make_trace_directory(&self) -> Result<PathBuf, Failure> {
        let path = self
            .trace
            .clone()
            .unwrap_or_else(|| std::env::temp_dir().join(format!("leasehold-demo-{}", std::process::id())));
        std::fs::create_dir_all(&path).map_err(|error| {
            Failure::unusable(format!(
                "expected to be able to create the directory {} for traces, but: {error}; choose another --trace",
                path.display()
            ))
        })?;
        Ok(path)
    }
}

/// The events of the demo.
#[derive(Clone, Copy, Debug)]
enum Scene {
    Split,
    Merge,
    Kill,
    Add,
}

/// When, in hundredths of the whole time.
const SCRIPT: [(u32, Scene); 5] =
    [(18, Scene::Split), (30, Scene::Merge), (42, Scene::Kill), (52, Scene::Add), (62, Scene::Split)];
/// Until when records are put, in the same measure. The rest is for the dead worker's shards to come round.
const LAST_PUT: u32 = 75;

pub(super) async fn run(args: DemoArgs) -> Result<Verdict, Failure> {
    let traces = args.make_trace_directory()?;
    let aws = Loopback::start(LocalOptions::default())
        .await
        .map_err(|error| Failure::under_way(format!("nothing can be served on loopback: {error}")))?;
    let endpoint = aws.endpoint().to_owned();
    let seed = match args.seed {
        Some(seed) => seed,
        // Short enough to be typed again.
        None => TokioRuntime::current().map_or(0, |runtime| runtime.entropy() % 1_000_000),
    };
    let telling = args.telling();
    let board = Arc::new(Board::new(telling, usize::from(args.workers) + 1, args.records));
    board.say(&format!("an in-memory AWS listens on {endpoint}"));
    let clients = Clients::in_memory(&endpoint);
    let ledger = Arc::new(Ledger::new(KEYS));
    let mut demo = Demo {
        whole: Duration::from_secs(args.seconds),
        seed,
        operator: Operator { clients: clients.clone(), stream: STREAM.to_owned(), seed, reshards: 0 },
        fleet: Fleet {
            endpoint,
            stream: STREAM.to_owned(),
            application: APPLICATION.to_owned(),
            ledger: ledger.clone(),
            board: board.clone(),
            traces,
            mode: if args.fan_out { ReadMode::Auto } else { ReadMode::Polling },
            members: Vec::new(),
        },
        board: board.clone(),
        ledger: ledger.clone(),
        killed: 0,
    };
    let began = Instant::now();
    let result = demo.play(&args, clients).await;
    board.close();
    let interrupted = result?;
    let totals = ledger.totals();
    let seconds = (began.elapsed().as_secs_f64() * 1_000.0).round() / 1_000.0;
    let summary = Summary {
        records_put: totals.put,
        records_processed: totals.processed,
        duplicates: totals.duplicates,
        lost: if interrupted { 0 } else { totals.missing },
        out_of_order: totals.out_of_order,
        reshards: demo.operator.reshards,
        workers_killed: demo.killed,
        workers_started: demo.fleet.members.len() as u64,
        handoffs: board.handoffs(),
        seconds,
        records_per_second: if seconds > 0.0 { totals.processed as f64 / seconds } else { 0.0 },
        interrupted,
        seed,
        traces: demo.fleet.members.iter().map(|member| member.trace.clone()).collect(),
    };
    let _ = aws.stop().await;
    if args.json {
        exit::print_json(&summary)?;
    } else {
        let colour = telling == Telling::Live && std::env::var_os("NO_COLOR").is_none();
        exit::print_styled(&summary.describe(colour))?;
    }
    Ok(Verdict::of(!summary.is_well()))
}

struct Demo {
    whole: Duration,
    seed: u64,
    operator: Operator,
    fleet: Fleet,
    board: Arc<Board>,
    ledger: Arc<Ledger>,
    killed: u64,
}

impl Demo {
    /// Plays from the first worker to the last. True if interrupted.
    async fn play(&mut self, args: &DemoArgs, clients: Clients) -> Result<bool, Failure> {
        let mut interrupt = pin!(signal::interrupted()?);
        self.operator.create(i32::from(args.shards)).await?;
        self.board.say(&format!("the stream has {} shards", args.shards));
        for _ in 0..args.workers {
            self.fleet.start()?;
        }
        let began = Instant::now();
        let producer = Producer {
            clients,
            stream: STREAM.to_owned(),
            ledger: self.ledger.clone(),
            seed: self.seed,
            records: args.records,
            over: self.whole * LAST_PUT / 100,
        };
        let producer = tokio::spawn(producer.run());
        for (at, scene) in SCRIPT {
            let until = began + self.whole * at / 100;
            if self.wait(&mut interrupt, until, || false).await? {
                return self.interrupted(&producer).await;
            }
            self.act(scene).await?;
        }
        // The producer's own deadline lies before this deadline.
        let end = began + self.whole + PATIENCE;
        let ledger = self.ledger.clone();
        let all_is_in = || producer.is_finished() && ledger.totals().missing == 0;
        if self.wait(&mut interrupt, end, all_is_in).await? {
            return self.interrupted(&producer).await;
        }
        producer.abort();
        let totals = self.ledger.totals();
        if totals.missing == 0 {
            self.board.say("every record that was put has been processed");
        } else {
            self.board.say(&format!("{} records have not come by now", totals.missing));
        }
        self.fleet.shut_down().await?;
        Ok(false)
    }

    async fn interrupted(&mut self, producer: &JoinHandle<()>) -> Result<bool, Failure> {
        producer.abort();
        self.board.say("interrupted: all workers shut down");
        self.fleet.shut_down().await?;
        Ok(true)
    }

    /// Waits until a time, or until `done`. True if interrupted.
    async fn wait(
        &mut self, interrupt: &mut Pin<&mut impl Future<Output = ()>>, until: Instant,
        done: impl Fn() -> bool,
    ) -> Result<bool, Failure> {
        let mut ticks = tokio::time::interval(REFRESH);
        while Instant::now() < until && !done() {
            tokio::select! {
                () = interrupt.as_mut() => return Ok(true),
                _ = ticks.tick() => {}
                () = tokio::time::sleep_until(until) => {}
            }
            self.board.refresh(&self.ledger.totals());
            if let Some(failure) = self.fleet.failed().await {
                return Err(failure);
            }
        }
        Ok(false)
    }

    async fn act(&mut self, scene: Scene) -> Result<(), Failure> {
        match scene {
            Scene::Split => {
                let shard = self.operator.split().await?;
                self.board.say(&format!("{} was SPLIT", shorten(&shard)));
            }
            Scene::Merge => {
                let (left, right) = self.operator.merge().await?;
                self.board.say(&format!("{} and {} were MERGED", shorten(&left), shorten(&right)));
            }
            Scene::Kill => {
                let members = self.fleet.members.len() as u64;
                let victim = draw_below(self.seed, "kill", "", 0, members) as usize;
                self.fleet.kill(victim);
                self.killed += 1;
            }
            Scene::Add => self.fleet.start()?,
        }
        Ok(())
    }
}
