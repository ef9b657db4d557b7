use super::*;
use crate::testing::{Events, Script, boot, input, op};
use crate::trace::{TraceReader, TraceRecord, replay, replay_on};
use leasehold_engine::Engine;
use leasehold_engine::input::{Body, Cause, Outcome};
use tracing::subscriber::with_default;

/// Takes lines while there is room.
#[derive(Clone, Default)]
struct Tight {
    lines: Arc<Mutex<Vec<String>>>,
    room: Arc<Mutex<usize>>,
}

impl Sink for Tight {
    fn offer(&mut self, line: String) -> Result<(), NotTaken> {
        let mut room = self.room.lock().unwrap();
        if *room == 0 {
            return Err(NotTaken::Full);
        }
        *room -= 1;
        self.lines.lock().unwrap().push(line);
        Ok(())
    }
    fn close(&mut self, lines: Vec<String>) -> Result<(), String> {
        self.lines.lock().unwrap().extend(lines);
        Ok(())
    }
}

fn life(recorder: &mut Recorder, inputs: u64) {
    let mut machine = Engine::new();
    for n in 0..inputs {
        let body = match n {
            0 => Body::Boot(Box::new(boot())),
            1 => Body::Done { op: op(9), outcome: Outcome::Unknown(Cause::Timeout) },
            _ => Body::Tick,
        };
        record(recorder, &mut machine, input(n * 1_000_000, body));
    }
}

fn record(recorder: &mut Recorder, machine: &mut Engine, input: Input) {
    use crate::machine::Machine;
    recorder.begin(&input);
    let mut outputs = Vec::new();
    let wake_at = machine.feed(input, &mut |output| outputs.push(output));
    recorder.end(OutputDigest::of(&outputs, wake_at));
}

fn read(text: &str) -> Vec<TraceRecord> {
    TraceReader::new(text.as_bytes()).collect::<Result<_, _>>().expect("readable")
}

fn whole(inputs: u64) -> String {
    let sink = MemorySink::default();
    let mut recorder = Recorder::new(Some(Box::new(sink.clone())), None);
    life(&mut recorder, inputs);
    drop(recorder);
    sink.text()
}

#[test]
fn a_recording_can_be_read_and_replayed() {
    let text = whole(200);
    let records = read(&text);
    assert!(matches!(&records[0], TraceRecord::Header { version: 1, kind: TraceKind::Full, .. }));
    let TraceRecord::Input { n: 0, input: first, .. } = &records[1] else { panic!("{:?}", records[1]) };
    assert_eq!(**first, input(0, Body::Boot(Box::new(boot()))));
    let digests = records.iter().filter(|r| matches!(r, TraceRecord::Digest { .. })).count();
    assert_eq!(digests, 3);
    assert_eq!(records.last(), Some(&TraceRecord::End { inputs: 200 }));
    let report = replay(TraceReader::new(text.as_bytes())).unwrap();
    assert_eq!((report.inputs, report.divergence, report.complete), (200, None, true));
}

#[test]
fn a_trace_that_cannot_be_written_fast_enough_names_its_gaps() {
    let sink = Tight::default();
    *sink.room.lock().unwrap() = 5;
    let mut recorder = Recorder::new(Some(Box::new(sink.clone())), None);
    let mut machine = Engine::new();
    let mut tick = |recorder: &mut Recorder, n: u64| record(recorder, &mut machine, input(n, Body::Tick));
    (0..10).for_each(|n| tick(&mut recorder, n));
    *sink.room.lock().unwrap() = 3;
    (10..20).for_each(|n| tick(&mut recorder, n));
    drop(recorder);
    let text = sink.lines.lock().unwrap().join("\n") + "\n";
    let gaps: Vec<_> = read(&text)
        .into_iter()
        .filter_map(|record| match record {
            TraceRecord::Gap { from, count } => Some((from, count)),
            _ => None,
        })
        .collect();
    assert_eq!(gaps, [(4, 6), (12, 8)]);
    let report = replay(TraceReader::new(text.as_bytes())).unwrap();
    assert_eq!((report.inputs, report.gap), (4, Some(4)));
}

#[test]
fn the_input_an_engine_died_of_is_the_last_line() {
    let sink = MemorySink::default();
    let mut recorder = Recorder::new(Some(Box::new(sink.clone())), None);
    life(&mut recorder, 3);
    recorder.begin(&input(3_000_000, Body::Tick));
    drop(recorder);
    let records = read(&sink.text());
    assert!(matches!(records.last(), Some(TraceRecord::Input { n: 3, out: None, .. })), "{records:?}");
}

#[test]
fn a_flight_recorder_keeps_the_boot_record_and_the_last_inputs() {
    let flight = Flight::new(10, 1 << 20);
    let mut recorder = Recorder::new(None, Some(flight.clone()));
    life(&mut recorder, 100);
    let mut text = Vec::new();
    flight.dump(&mut text).unwrap();
    let records = read(std::str::from_utf8(&text).unwrap());
    assert!(matches!(records[0], TraceRecord::Header { kind: TraceKind::Flight, .. }));
    assert!(matches!(records[1], TraceRecord::Input { n: 0, .. }));
    assert_eq!(records[2], TraceRecord::Gap { from: 1, count: 89 });
    assert_eq!(records.len(), 3 + 10);
    let small = Flight::new(1_000, 200);
    let mut recorder = Recorder::new(None, Some(small.clone()));
    life(&mut recorder, 100);
    let mut text = Vec::new();
    small.dump(&mut text).unwrap();
    assert!(read(std::str::from_utf8(&text).unwrap()).len() < 10, "bounded by bytes too");
}

#[test]
fn a_file_holds_the_same_as_memory() {
    let path = std::env::temp_dir().join(format!("leasehold-trace-{}.jsonl", std::process::id()));
    let mut recorder = Recorder::new(Some(Box::new(FileSink::create(&path, 1_000).unwrap())), None);
    life(&mut recorder, 100);
    drop(recorder);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(text, whole(100));
}

/// Everything that is written to `/dev/full` fails as on a full disk.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said_once_with_path_and_cause_and_is_no_gap() {
    let events = Events::default();
    with_default(events.clone(), || {
        let sink = FileSink::create("/dev/full", 65_536).unwrap();
        let mut recorder = Recorder::new(Some(Box::new(sink)), None);
        let mut machine = Engine::new();
        for n in 0.. {
            record(&mut recorder, &mut machine, input(n, Body::Tick));
            if !recorder.is_on() {
                break;
            }
            std::thread::yield_now();
        }
        record(&mut recorder, &mut machine, input(u64::MAX, Body::Tick));
    });
    assert_eq!(
        events.lines(),
        [
            "ERROR message=the trace file \"/dev/full\" cannot be written: No space left on device (os error 28); the trace \
             ends here, and the worker goes on without it "
        ]
    );
}

/// The last lines are written when the worker has stopped: what fails then is said too.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_full_at_the_end_is_said_too() {
    let sink = FileSink::create("/dev/full", 1_000);
    let told = sink.unwrap().close(vec!["the end".into()]).unwrap_err();
    assert_eq!(told, "the trace file \"/dev/full\" cannot be written: No space left on device (os error 28)");
}

#[test]
fn a_truncation_is_an_error_of_its_line_or_an_incomplete_trace() {
    let text = whole(5);
    for cut in 1..text.len() {
        let cut_off = &text[..cut];
        let at_line = cut_off.lines().count() as u64;
        match replay(TraceReader::new(cut_off.as_bytes())) {
            Ok(report) => assert!(!report.complete || cut == text.len() - 1, "cut at {cut} was not noticed"),
            Err(error) => {
                assert_eq!(error.line, at_line, "{error}");
                assert!(error.to_string().contains("truncated"), "{error}");
            }
        }
    }
}

#[test]
fn corrupt_lines_are_named_with_what_was_expected_and_found() {
    let text = whole(70);
    let line = |n: usize, change: &dyn Fn(&str) -> String| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines[n - 1] = change(&lines[n - 1]);
        lines.retain(|line| line != "DELETED");
        lines.join("\n") + "\n"
    };
    for (broken, at, expected, found) in [
        (line(1, &|_| "DELETED".into()), 1, "a trace header", "another record"),
        (
            line(1, &|l| l.replace("\"leasehold-trace\":1", "\"leasehold-trace\":99")),
            1,
            "version 1 to 1",
            "newer release",
        ),
        (line(3, &|_| "garbage".into()), 3, "JSON", "expected value"),
        (line(3, &|_| String::new()), 3, "JSON", "EOF"),
        (line(3, &|_| "{}".into()), 3, "an input", "no known kind"),
        (line(4, &|_| "DELETED".into()), 4, "input 2", "input 3"),
        (line(4, &|l| l.replace("\"tick\"", "\"tock\"")), 4, "JSON", "tock"),
        (line(4, &|l| l.replace("\"at\"", "\"ta\"")), 4, "`at`", "without"),
        (line(4, &|l| l.replace("\"out\":\"", "\"out\":\"xyz")), 4, "16 hexadecimal", "xyz"),
        (line(73, &|l| l.replace("70", "71")), 73, "end after 70", "after 71"),
        (text.clone() + "{\"n\":70}\n", 74, "nothing after", "further"),
        (String::new(), 1, "a trace header", "an empty input"),
    ] {
        let error = replay(TraceReader::new(broken.as_bytes())).expect_err(expected);
        assert_eq!(error.line, at, "{error}");
        assert!(error.expected.contains(expected) && error.found.contains(found), "{error}");
    }
    let mut bytes = text.into_bytes();
    let at = bytes.len() - 30;
    bytes[at] = 0xff;
    let error = replay(TraceReader::new(bytes.as_slice())).unwrap_err();
    assert!(error.expected.contains("UTF-8"), "{error}");
}

#[test]
fn a_changed_digest_is_a_divergence_of_that_input() {
    let text = whole(10);
    let changed: String = text
        .lines()
        .map(|line| {
            if line.contains("\"n\":6,") {
                let at = line.len() - 5;
                let digit = if &line[at..=at] == "0" { "1" } else { "0" };
                format!("{}{digit}{}\n", &line[..at], &line[at + 1..])
            } else {
                format!("{line}\n")
            }
        })
        .collect();
    let report = replay_on(&mut Engine::new(), TraceReader::new(changed.as_bytes()), |_, _, _| {}).unwrap();
    assert_eq!(report.divergence.unwrap().input, 6);
}

#[test]
fn a_script_is_not_the_engine() {
    // A trace of one machine, replayed on another machine, diverges at the first different answer.
    let text = whole(3);
    let mut other = Script {
        ticks: vec![leasehold_engine::time::Span::from_secs(1)],
        waiting: [(op(9), 0)].into(),
        ..Script::default()
    };
    let report = replay_on(&mut other, TraceReader::new(text.as_bytes()), |_, _, _| {}).unwrap();
    assert_eq!(report.divergence.unwrap().input, 0);
}

#[test]
fn a_worker_does_not_wait_for_the_program_that_writes_a_dump() {
    /// Sees while it is written to whether the flight recorder could record.
    struct Sees(Flight, usize);
    impl Write for Sees {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            assert!(self.0.0.try_lock().is_ok(), "a worker would wait here");
            self.1 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let flight = Flight::new(4, 1_000);
    for n in 0..9 {
        flight.push(n, format!("line {n}"));
    }
    let mut sees = Sees(flight.clone(), 0);
    flight.dump(&mut sees).unwrap();
    assert!(sees.1 > 0);
}
