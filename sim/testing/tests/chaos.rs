//! Worlds of real workers: a sound handler passes, and two that have a bug are found.
#![expect(
    clippy::disallowed_methods,
    reason = "handlers run in simulated processes, whose timers and tasks are those of tokio"
)]

use leasehold::engine::policy::{Policies, Steal};
use leasehold::{Ack, Batch, EndReason, Fence, Handler, HandlerFn, Record, ShardInfo};
use leasehold_testing::harness::Books;
use leasehold_testing::{End, Summary, World, chaos};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::mpsc;

/// A stand-in for a database, which all workers of a world share, with the faults of writes.
#[derive(Clone, Debug, Default)]
struct Sink {
    books: Books,
    wrong: Arc<Mutex<Vec<String>>>,
}

impl Sink {
    fn wrong(&self) -> MutexGuard<'_, Vec<String>> {
        self.wrong.lock().expect("no writer panics")
    }

    /// Writes a record, for the first time or again.
    fn write(&self, record: &Record, fence: Option<&Fence>) {
        if fence.is_some_and(|fence| !fence.is_valid()) {
            let text = String::from_utf8_lossy(&record.data);
            self.wrong().push(format!("{text} was written after the fence"));
        }
        self.wrong().extend(self.books.write(&record.data).err());
    }

    fn check(&self, end: &End) {
        assert!(self.wrong().is_empty(), "{}", self.wrong()[0]);
        self.books.check(end);
    }
}

/// How a handler writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Sound,
    WithoutLookingAtTheFence,
    /// A task of the process writes later.
    AfterItReturned,
}

struct Writer {
    way: Way,
    sink: Sink,
    queue: mpsc::UnboundedSender<Record>,
    /// How many records are in the queue.
    queued: Arc<AtomicUsize>,
}

impl Writer {
    fn new(way: Way, sink: Sink) -> Self {
        let (queue, mut records) = mpsc::unbounded_channel::<Record>();
        let queued = Arc::new(AtomicUsize::new(0));
        let (of_task, left) = (sink.clone(), queued.clone());
        tokio::spawn(async move {
            while let Some(record) = records.recv().await {
                tokio::time::sleep(Duration::from_millis(100)).await;
                of_task.write(&record, None);
                left.fetch_sub(1, Ordering::Relaxed);
            }
        });
        Self { way, sink, queue, queued }
    }
}

impl Handler for Writer {
    type Error = std::io::Error;

    async fn process(&self, batch: Batch) -> Result<Ack, Self::Error> {
        let fence = batch.fence();
        for record in &batch {
            if self.way == Way::AfterItReturned {
                self.queued.fetch_add(1, Ordering::Relaxed);
                self.queue.send(record.clone()).map_err(std::io::Error::other)?;
                continue;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            if self.way == Way::Sound && !fence.is_valid() {
                return Err(std::io::Error::other("the lease is over"));
            }
            self.sink.write(record, Some(&fence));
        }
        Ok(Ack::All)
    }

    async fn close(&self, _: &ShardInfo, _: EndReason) {
        while self.queued.load(Ordering::Relaxed) > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

fn worlds(seeds: std::ops::Range<u64>, way: Way) -> Summary {
    chaos(seeds, |world: &mut World| {
        let sink = Sink::default();
        let shared = sink.clone();
        world.handler(move |_| Writer::new(way, shared.clone()));
        world.finally(move |end| sink.check(end));
    })
}

#[test]
fn a_sound_handler_passes() {
    let summary = worlds(0..200, Way::Sound);
    println!("{summary:?}");
    assert!(summary.repeated > 100, "faults bring records again: {summary:?}");
}

#[test]
fn the_same_seeds_give_the_same_runs() {
    let (one, other) = (worlds(0..12, Way::Sound), worlds(0..12, Way::Sound));
    assert_eq!(one, other);
    assert_ne!(one.digest, worlds(12..24, Way::Sound).digest);
}

#[test]
#[ignore = "it fails: another test runs it"]
fn a_writer_that_ignores_its_fence() {
    worlds(0..100, Way::WithoutLookingAtTheFence);
}

#[test]
#[ignore = "it fails: another test runs it"]
fn a_writer_that_acknowledges_first() {
    worlds(1..100, Way::AfterItReturned);
}

/// Runs a failing test of this file in a process of its own. Returns the printed text.
fn failing(test: &str, threads: u32, seed: Option<&str>) -> String {
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command.args(["--exact", "--ignored", test]);
    command.arg(format!("--test-threads={threads}"));
    match seed {
        Some(seed) => command.env("LEASEHOLD_CHAOS_SEED", seed),
        None => command.env_remove("LEASEHOLD_CHAOS_SEED"),
    };
    let output = command.output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!output.status.success(), "{text}");
    text
}

/// The line about the failure, and the seed in the line to repeat the failure.
fn told(text: &str) -> (String, String) {
    let line = |what: &str| text.lines().find(|line| line.contains(what)).map(str::to_owned);
    let failed = line("the world of seed").unwrap_or_else(|| panic!("no failure in: {text}"));
    let repeat = line("to repeat it: LEASEHOLD_CHAOS_SEED=").unwrap_or_else(|| panic!("no line in: {text}"));
    let seed = repeat.split('=').nth(1).and_then(|rest| rest.split(' ').next());
    (failed, seed.expect("a seed").to_owned())
}

/// Runs the script of a workflow step in a folder, like GitHub. The program `cargo` takes cargo's place.
fn step(folder: &Path, name: &str, cargo: &str) -> Output {
    let workflow = include_str!("../examples/github-workflow.yml");
    let (_, step) = workflow.split_once(&format!("- name: {name}\n")).expect("the step");
    let (_, script) = step.split_once("run: |\n").expect("its script");
    let lines = script.lines().take_while(|line| line.starts_with("          "));
    let script: Vec<&str> = lines.map(str::trim_start).collect();
    Command::new("bash")
        .args(["--noprofile", "--norc", "-eo", "pipefail", "-c"])
        .arg(format!("cargo() {{ {cargo}; }}\n{}", script.join("\n")))
        .current_dir(folder)
        .env("GITHUB_RUN_NUMBER", "7")
        .env("WORLDS", "50000")
        .env("GITHUB_STEP_SUMMARY", folder.join("summary.md"))
        .output()
        .expect("bash")
}

#[test]
fn the_workflow_tells_the_line_that_repeats_a_failure() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("workflow");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let search = "Other worlds than in every night before";
    let passed = step(&folder, search, "echo \"$@ $LEASEHOLD_CHAOS_SEEDS\"");
    assert!(passed.status.success(), "{passed:?}");
    let printed = String::from_utf8_lossy(&passed.stdout);
    assert!(printed.contains("test --release --locked --test chaos 350000..400000\n"), "{printed}");

    let text = failing("a_writer_that_ignores_its_fence", 2, None);
    std::fs::write(folder.join("printed"), &text).expect("a file");
    let failed = step(&folder, search, "cat printed; return 101");
    assert!(!failed.status.success(), "a failure ends the step: {failed:?}");
    let told = step(&folder, "The line that repeats a failure", "exit 1");
    assert!(told.status.success(), "{told:?}");
    let line = text.lines().find(|line| line.starts_with("to repeat it: ")).expect("a line");
    let printed = String::from_utf8_lossy(&told.stdout);
    assert_eq!(printed, format!("::error title=A world fails::{line}\n"));
    let summary = std::fs::read_to_string(folder.join("summary.md")).expect("a page");
    assert_eq!(summary, format!("    {line}\n\n"));
}

fn is_found_and_repeated(test: &str, property: &str) {
    let text = failing(test, 2, None);
    println!("{text}");
    let (failed, seed) = told(&text);
    assert!(failed.contains(property), "{failed}");
    let line = format!(
        "to repeat it: LEASEHOLD_CHAOS_SEED={seed} cargo test -p leasehold-testing --test chaos {test} -- --exact --include-ignored\n"
    );
    assert!(text.contains(&line), "{text}");
    let numbers = seed.split(':').nth(1).expect("faults").split(',').count();
    // "it needs 4 of its 20 faults"
    let needs = text.split("it needs ").nth(1).expect("how many faults it needs");
    let drawn = needs.split(' ').nth(3).expect("of how many");
    let drawn: usize = drawn.parse().expect("a number");
    assert!(numbers * 4 <= drawn, "expected a quarter of the faults at most, found {seed} of {drawn}");
    // With one thread, too.
    let again = failing(test, 1, Some(&seed));
    assert!(again.contains(&line), "{again}");
    assert_eq!(told(&again), (failed, seed));
}

#[test]
fn a_write_after_the_fence_is_found() {
    is_found_and_repeated("a_writer_that_ignores_its_fence", "was written after the fence");
}

#[test]
fn an_acknowledgement_before_the_write_is_found() {
    is_found_and_repeated("a_writer_that_acknowledges_first", "finally");
}

/// A thief that starts at once, like KCL's, works beside its victim for a while: the judge sees both. Workers steal
/// only if leases are not requested.
#[test]
#[should_panic(expected = "owners: ")]
fn two_owners_at_one_time_are_seen() {
    chaos(0..100, |world: &mut World| {
        let mut policies = Policies::default();
        policies.steal = Steal::Take;
        world.config(move |config| config.with_policies(policies).with_steal_cooldown(false));
        world.handler(|_| Writer::new(Way::Sound, Sink::default()));
    });
}

/// The report names an unfinished handler as the cause, not a loss by Leasehold.
#[test]
#[should_panic(expected = "a handler failed, the last time with: out of ink")]
fn a_handler_that_never_succeeds_is_told() {
    chaos(0..1, |world: &mut World| {
        world.handler(|_| {
            HandlerFn::new(|_: Batch| std::future::ready(Err::<(), _>(std::io::Error::other("out of ink"))))
        });
    });
}

#[test]
#[should_panic(expected = "call it from a plain #[test]")]
fn a_runtime_around_it_is_refused() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        worlds(0..1, Way::Sound);
    });
}
