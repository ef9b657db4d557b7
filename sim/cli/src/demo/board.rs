//! Events as they happen: redrawn on a terminal, plain lines elsewhere.

use super::ledger::Totals;
use crate::story;
use crate::text::counted;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::notice::Notice;
use leasehold_engine::shown::Shown;
use leasehold_sim::timeline::words::shorten;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Where the story is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Telling {
    /// On a terminal, with a live view below.
    Live,
    /// As lines on stdout.
    Stdout,
    /// As lines on stderr, as stdout is for the results alone.
    Stderr,
}

/// The story so far. Shared by all workers, whose notices arrive on their own threads.
pub(super) struct Board(Mutex<State>);

struct State {
    began: Instant,
    telling: Telling,
    /// The number of columns.
    most: usize,
    workers: Vec<WorkerState>,
    /// The last worker to process each shard.
    last: BTreeMap<LeaseKey, usize>,
    handoffs: u64,
    live: Option<Live>,
}

struct WorkerState {
    name: String,
    alive: bool,
    shards: BTreeSet<LeaseKey>,
    records: u64,
    /// The count at the last refresh, and the refresh's time.
    before: (u64, Instant),
    rate: f64,
}

struct Live {
    bars: MultiProgress,
    workers: Vec<ProgressBar>,
    put: ProgressBar,
    processed: ProgressBar,
}

impl Live {
    fn new(records: u64) -> Self {
        let bars = MultiProgress::new();
        let add = |template: &str| {
            let bar = bars.add(ProgressBar::new(records));
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style.progress_chars("━╸ "));
            }
            bar
        };
        let put = add("\n  put        {bar:40.cyan} {pos:>7}/{len}");
        let processed = add("  processed  {bar:40.green} {pos:>7}/{len}");
        Self { workers: Vec::new(), put, processed, bars }
    }

    fn add_worker(&mut self) {
        let bar = ProgressBar::new(0);
        if let Ok(style) = ProgressStyle::with_template("  {msg}") {
            bar.set_style(style);
        }
        let bar = self.bars.insert_before(&self.put, bar);
        self.workers.push(bar);
    }
}

impl Board {
    pub(super) fn new(telling: Telling, workers: usize, records: u64) -> Self {
        let board = Self(Mutex::new(State {
            began: Instant::now(),
            telling,
            most: workers,
            workers: Vec::new(),
            last: BTreeMap::new(),
            handoffs: 0,
            live: (telling == Telling::Live).then(|| Live::new(records)),
        }));
        board.state().head();
        board
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells a fact that workers do not tell.
    pub(super) fn say(&self, sentence: &str) {
        self.state().line(sentence);
    }

    pub(super) fn started(&self, worker: usize, name: &str) {
        let mut state = self.state();
        debug_assert_eq!(worker, state.workers.len());
        state.workers.push(WorkerState {
            name: name.to_owned(),
            alive: true,
            shards: BTreeSet::new(),
            records: 0,
            before: (0, Instant::now()),
            rate: 0.0,
        });
        if let Some(live) = &mut state.live {
            live.add_worker();
        }
        state.line(&format!("{name} starts"));
    }

    pub(super) fn killed(&self, worker: usize) {
        let mut state = self.state();
        let Some(member) = state.workers.get_mut(worker) else {
            return;
        };
        member.alive = false;
        let sentence = format!(
            "{} is KILLED while it processes {}; the other workers are not told",
            member.name,
            counted(member.shards.len() as u64, "shard")
        );
        member.shards.clear();
        state.line(&sentence);
    }

    /// A worker processed so many records.
    pub(super) fn processed(&self, worker: usize, records: u64) {
        if let Some(member) = self.state().workers.get_mut(worker) {
            member.records += records;
        }
    }

    /// A worker tells something.
    pub(super) fn notice(&self, worker: usize, notice: &Notice) {
        let mut state = self.state();
        // The last words of the dead would be taken for life.
        let Some(member) = state.workers.get_mut(worker).filter(|member| member.alive) else {
            return;
        };
        let name = member.name.clone();
        match notice {
            Notice::Opened { lease, .. } => {
                member.shards.insert(lease.clone());
                if let Some(before) = state.last.insert(lease.clone(), worker) {
                    state.handoffs += u64::from(before != worker);
                }
            }
            Notice::Closed { lease, .. } => {
                member.shards.remove(lease);
            }
            _ => {}
        }
        if story::is_a_turn(notice) {
            state.line(&format!("{name} {}", story::tell(notice)));
        }
    }

    /// How often a shard was processed by another worker than before.
    pub(super) fn handoffs(&self) -> u64 {
        self.state().handoffs
    }

    /// Redraws the live view.
    pub(super) fn refresh(&self, totals: &Totals) {
        let mut state = self.state();
        let State { workers, live, .. } = &mut *state;
        let Some(live) = live else { return };
        let now = Instant::now();
        for (member, bar) in workers.iter_mut().zip(&live.workers) {
            let (records, at) = member.before;
            let seconds = now.duration_since(at).as_secs_f64();
            if seconds > 0.0 {
                // Batches come in bursts; a smoothed rate can be read.
                let rate = (member.records - records) as f64 / seconds;
                member.rate = 0.8 * member.rate + 0.2 * rate;
            }
            member.before = (member.records, now);
            bar.set_message(member.describe());
        }
        live.put.set_position(totals.put);
        live.processed.set_position(totals.processed);
    }

    /// Removes the live view; the story stays.
    pub(super) fn close(&self) {
        if let Some(live) = self.state().live.take() {
            let _ = live.bars.clear();
        }
    }
}

impl WorkerState {
    fn describe(&self) -> String {
        if !self.alive {
            return format!("{}  ✗ killed    {:>7} records", self.name, self.records);
        }
        let shards: Vec<String> =
            self.shards.iter().map(|lease| shorten(lease.as_str()).replacen("shard-", "", 1)).collect();
        format!(
            "{}  ● {:>2} shards {:>7} records {:>6.0}/s   [{}]",
            self.name,
            self.shards.len(),
            self.records,
            self.rate,
            shards.join(" ")
        )
    }
}

impl State {
    fn head(&mut self) {
        let mut head = format!("{:>8} |", "seconds");
        for worker in 1..=self.most {
            let _ = write!(head, "{:>4}", format!("w{worker}"));
        }
        head.push_str(" | what happens (columns: shards in process)");
        self.put(&head);
    }

    fn line(&mut self, sentence: &str) {
        let mut line = format!("{:>8.2} |", self.began.elapsed().as_secs_f64());
        for worker in 0..self.most {
            let _ = match self.workers.get(worker) {
                Some(member) if member.alive => write!(line, "{:>4}", member.shards.len()),
                Some(_) => write!(line, "{:>4}", "x"),
                None => write!(line, "{:>4}", ""),
            };
        }
        let _ = write!(line, " | {}", Shown(sentence));
        self.put(&line);
    }

    fn put(&mut self, line: &str) {
        use std::io::Write;
        // A closed output misses the story, but does not stop the demo.
        let _ = match (&self.live, self.telling) {
            (Some(live), _) => live.bars.println(line),
            (None, Telling::Stdout) => writeln!(std::io::stdout(), "{line}"),
            (None, Telling::Live | Telling::Stderr) => writeln!(std::io::stderr(), "{line}"),
        };
    }
}
