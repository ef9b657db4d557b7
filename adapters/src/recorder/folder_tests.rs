//! Traces in folders: rotation, limits, earlier lives, and crashes.

use super::*;
use crate::recorder::{NotTaken, Recorder, Sink};
use crate::trace::{OutputDigest, TraceReader, TraceText, replay};
use leasehold_engine::Engine;
use leasehold_engine::config::Config;
use leasehold_engine::input::{Body, Boot, Input};
use leasehold_engine::time::{Mono, Span, Wall};
use std::io::Read;

/// A folder that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("leasehold-trace-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn folder(&self, segment: u64, limit: u64) -> TraceFolder {
        TraceFolder::new(&self.0).with_segment_bytes(segment).with_limit_bytes(limit)
    }

    fn names(&self, life: u64) -> Vec<String> {
        let entries = fs::read_dir(folder::life(&self.0, life)).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    fn lives(&self) -> Vec<u64> {
        let lives = folder::lives(&self.0).unwrap();
        lives.iter().filter_map(|life| folder::number_of(life)).collect()
    }

    fn size(&self) -> u64 {
        let lives = folder::lives(&self.0).unwrap();
        lives.iter().map(|life| size_of(life).unwrap()).sum()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(unix)]
#[test]
fn only_the_user_of_the_process_reads_a_trace() {
    use crate::private::mode;
    let scratch = Scratch::new("modes");
    record(&scratch.folder(4 << 10, 1 << 20), 200);
    let life = folder::life(&scratch.0, 1);
    assert_eq!((mode(&scratch.0), mode(&life)), (0o700, 0o700));
    let names = scratch.names(1);
    assert!(names.len() > 1, "{names:?}");
    for name in names {
        assert_eq!(mode(&life.join(&name)), 0o600, "{name}");
    }
    assert_eq!(mode(&scratch.0.join("lock")), 0o600);
}

/// Records a life of a worker with this number of ticks, one each second.
fn record(folder: &TraceFolder, ticks: u64) {
    let mut recorder = Recorder::new(Some(Box::new(folder.create(1 << 20).unwrap())), None);
    let mut engine = Engine::new();
    for n in 0..=ticks {
        let config = Config::default().with_stream("orders").with_table("billing");
        let body = match n {
            0 => Body::Boot(Box::new(Boot { worker: "w".into(), incarnation: 1, seed: 2, config })),
            _ => Body::Tick,
        };
        let at = Mono(0) + Span::from_secs(n);
        let wall = Wall(1_700_000_000_000);
        let input = Input { at, wall, body };
        recorder.begin(&input);
        let mut outputs = Vec::new();
        let wake_at = crate::machine::Machine::feed(&mut engine, input, &mut |output| outputs.push(output));
        recorder.end(OutputDigest::of(&outputs, wake_at));
    }
    recorder.close();
}

fn replayed(path: &Path) -> crate::trace::ReplayReport {
    replay(TraceReader::new(TraceText::open(path).unwrap())).unwrap()
}

#[test]
fn a_life_in_several_segments_is_replayed_as_one() {
    let scratch = Scratch::new("segments");
    record(&scratch.folder(4_096, 1 << 20), 300);
    let names = scratch.names(1);
    assert!(names.len() > 4, "{names:?}");
    let ending = if cfg!(feature = "gzip") { ".jsonl.gz" } else { ".jsonl" };
    let (last, full) = names.split_last().unwrap();
    assert!(full.iter().all(|name| name.ends_with(ending)), "{names:?}");
    assert!(last.ends_with(".jsonl"), "{names:?}");
    let report = replayed(&scratch.0);
    assert_eq!((report.inputs, report.complete), (301, true));
    assert_eq!((report.divergence, report.limit, report.gap), (None, None, None));
    // A life can be named, and each start has a new life.
    record(&scratch.folder(4_096, 1 << 20), 3);
    assert_eq!(replayed(&folder::life(&scratch.0, 1)).inputs, 301);
    assert_eq!(replayed(&scratch.0).inputs, 4);
}

#[test]
fn at_the_limit_earlier_lives_make_way_then_the_recording_ends() {
    let scratch = Scratch::new("limit");
    const LIMIT: u64 = 48 << 10;
    for _ in 0..3 {
        record(&scratch.folder(4_096, LIMIT), 60);
    }
    assert_eq!(scratch.lives(), [1, 2, 3]);
    record(&scratch.folder(4_096, LIMIT), 40_000);
    assert_eq!(scratch.lives(), [4]);
    assert!(scratch.size() <= LIMIT, "{}", scratch.size());
    let report = replayed(&scratch.0);
    assert_eq!((report.limit, report.complete), (Some(LIMIT), false));
    assert!(report.inputs > 100 && report.inputs < 40_000, "{}", report.inputs);
    assert_eq!((report.divergence, report.gap), (None, None));
    let mut text = String::new();
    TraceText::open(&scratch.0).unwrap().read_to_string(&mut text).unwrap();
    assert!(text.ends_with(&format!("{{\"limit\":{LIMIT}}}\n")));
}

#[test]
fn a_sink_that_is_full_says_so_and_takes_nothing_more() {
    let scratch = Scratch::new("enough");
    let mut sink = scratch.folder(4_096, 0).create(1).unwrap();
    let enough = loop {
        match sink.offer("x".repeat(1_000)) {
            Ok(()) | Err(NotTaken::Full) => std::thread::yield_now(),
            Err(other) => break other,
        }
    };
    // Two segments are the least.
    let told = format!("the trace folder {:?} has reached its limit of 8192 bytes", scratch.0);
    assert_eq!(enough, NotTaken::Enough(told));
    assert!(matches!(sink.offer("y".into()), Err(NotTaken::Broken(_))));
}

#[test]
fn a_folder_is_for_one_worker_at_a_time() {
    let scratch = Scratch::new("lock");
    let folder = scratch.folder(4_096, 1 << 20);
    let first = folder.create(1).unwrap();
    let told = folder.create(1).unwrap_err().to_string();
    assert!(told.contains("no other worker writes to"), "{told}");
    drop(first);
    // The sink's thread releases the folder in a moment.
    while folder.create(1).is_err() {
        std::thread::yield_now();
    }
}

/// Possible remnants of a crash: an incomplete last line, a half-compressed segment, and a segment in two files.
#[test]
fn a_trace_left_by_a_crash_is_read() {
    let scratch = Scratch::new("crash");
    record(&scratch.folder(4_096, 1 << 20), 100);
    let life = folder::life(&scratch.0, 1);
    let names = scratch.names(1);
    let last = life.join(names.last().unwrap());
    let text = fs::read_to_string(&last).unwrap();
    fs::write(&last, &text[..text.len() - 20]).unwrap();
    fs::write(life.join("segment-000009.jsonl.gz.part"), "half").unwrap();
    if cfg!(feature = "gzip") {
        fs::write(folder::segment(&life, 1), "the same again").unwrap();
    }
    let error = replay(TraceReader::new(TraceText::open(&scratch.0).unwrap())).unwrap_err();
    assert!(error.to_string().contains("truncated"), "{error}");
    // Without the last line, the trace has no end.
    let whole = text.rfind("{\"n\":").unwrap();
    fs::write(&last, &text[..whole]).unwrap();
    let report = replayed(&scratch.0);
    assert!(report.inputs >= 99 && !report.complete, "{report:?}");
}

#[test]
fn segments_that_are_missing_or_alone_are_named() {
    let scratch = Scratch::new("missing");
    record(&scratch.folder(4_096, 1 << 20), 300);
    let life = folder::life(&scratch.0, 1);
    let names = scratch.names(1);
    let alone = replay(TraceReader::new(TraceText::open(&life.join(&names[1])).unwrap()));
    let told = alone.unwrap_err().to_string();
    assert!(told.contains("expected the first segment") && told.contains("found segment 2"), "{told}");
    fs::remove_file(life.join(&names[1])).unwrap();
    let told = replay(TraceReader::new(TraceText::open(&life).unwrap())).unwrap_err().to_string();
    assert!(told.contains("expected segment 2, found segment 3"), "{told}");
    let empty = Scratch::new("empty");
    fs::create_dir_all(&empty.0).unwrap();
    let told = TraceText::open(&empty.0).unwrap_err().to_string();
    assert!(told.contains("found neither"), "{told}");
}
