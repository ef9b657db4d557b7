//! `leasehold consume`: its options from flags, variables and a file, and its end after it has caught up.
#![cfg(unix)]

mod command;

use command::*;
use serde_json::json;

/// Options from a file, the environment and flags; an unusable option stops the start.
#[test]
fn options_come_from_flags_variables_and_a_file() {
    let folder = std::env::temp_dir().join(format!("leasehold-options-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("worker.toml");
    std::fs::write(&file, "application = \"billing\"\nlease_duration = \"30 s\"\nmax_steals = 3\n")
        .expect("a file");
    let path = file.display().to_string();
    let consume = |more: &[&str], variable: (&str, &str)| {
        let base = ["consume", "--config", path.as_str(), "--stream", "orders"];
        let args: Vec<&str> = base.iter().chain(more).copied().collect();
        leasehold(&args).env(variable.0, variable.1).output().expect("the command starts")
    };
    let printed = consume(&["--print-config", "--lease-duration", "40 s"], ("LEASEHOLD_MAX_STEALS", "5"));
    assert_eq!(printed.status.code(), Some(0), "{}", stderr(&printed));
    let text = stdout(&printed);
    for (value, source) in [
        ("application = \"billing\"", path.as_str()),
        ("lease_duration = \"40 s\"", "# --lease-duration"),
        ("max_steals = 5", "# environment: LEASEHOLD_MAX_STEALS"),
        ("renew_interval = \"3.3 s\"", "# default"),
    ] {
        let told = |line: &str| line.starts_with(value) && line.ends_with(source);
        assert!(text.lines().any(told), "{value} of {source} in\n{text}");
    }
    for (more, variable, part) in [
        (&["--lease-duration", "40"][..], ("NOTHING", ""), "expected a time with its unit"),
        (&[], ("LEASEHOLD_LEASE_DURATON", "1 s"), "write LEASEHOLD_LEASE_DURATION"),
        (&["--renew-interval", "20 s"], ("NOTHING", ""), "(--renew-interval)"),
    ] {
        let refused = consume(more, variable);
        assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
        assert!(stderr(&refused).contains(part), "{}", stderr(&refused));
        assert_eq!(stdout(&refused), "");
    }
    let help = stdout(&run(&["consume", "--help"]));
    for part in ["--lease-duration <TIME>", "--reader-max-records <VALUE>", "Range: 100 ms to 24 h"] {
        assert!(help.contains(part), "{part} in\n{help}");
    }
    std::fs::remove_dir_all(&folder).expect("its folder goes");
}

/// The command prints all records across a split, and then ends by itself.
#[test]
fn consume_ends_when_it_has_caught_up() {
    let local = Local::start();
    let put = || (0..20).for_each(|n| local.put_record("orders", &format!("key-{n}"), "MA=="));
    local.create_stream("orders", 2);
    put();
    let split =
        json!({ "StreamName": "orders", "ShardToSplit": "shardId-000000000000", "NewStartingHashKey": "7" });
    local.ask("Kinesis_20131202.SplitShard", &split);
    put();
    let consume = || {
        let mut command = leasehold(&["consume", "--stream", "orders", "--application", "billing"]);
        command.args(["--endpoint-url", &local.url(), "--until-caught-up"]);
        command.args(["--scan-interval", "500 ms", "--bootstrap-delay", "0 s"]);
        stdout(&exits(0, command.output().expect("the command starts"))).lines().count()
    };
    assert_eq!(consume(), 40);
    put();
    assert_eq!(consume(), 20, "only what came since");
    assert_eq!(consume(), 0);
}

/// The command rotates segments while it runs; `replay` reads the segments as one trace, even after a crash.
#[test]
fn a_trace_goes_into_files_of_a_folder_that_replay_reads_as_one() {
    let local = Local::start();
    local.create_stream("orders", 2);
    (0..3).for_each(|n| local.put_record("orders", &n.to_string(), "MA=="));
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("trace-dir");
    let _ = std::fs::remove_dir_all(&folder);
    let path = folder.to_str().expect("a path of text");
    let consume = |more: &[&str]| {
        let mut command = leasehold(&["consume", "--stream", "orders", "--application", "billing"]);
        command.args(["--endpoint-url", &local.url(), "--trace-dir", path]).args(more);
        command.output().expect("the command starts")
    };
    let refused = consume(&["--trace-limit", "100KiB"]);
    assert_eq!(refused.status.code(), Some(2));
    let told = stderr(&refused);
    assert!(told.contains("expected --trace-segment") && !folder.exists(), "{told}");

    for _ in 0..2 {
        let done = consume(&["--trace-segment", "4KiB", "--until-caught-up"]);
        assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    }
    let first = folder.join("life-000001");
    assert!(first.join("segment-000001.jsonl.gz").is_file());
    let replay = |path: &std::path::Path, more: &[&str]| {
        let mut command = leasehold(&["replay", path.to_str().expect("text")]);
        command.args(more).output().expect("the command starts")
    };
    for path in [&folder, &first] {
        let output = exits(0, replay(path, &[]));
        assert!(stdout(&output).contains("no divergence"), "{}", stdout(&output));
    }

    // A crash in the midst of a line.
    let mut files: Vec<_> =
        std::fs::read_dir(&first).expect("the folder").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    let last = files.last().expect("a segment");
    let text = std::fs::read_to_string(last).expect("a text");
    std::fs::write(last, &text[..text.len() - 4]).expect("a shorter text");
    let output = replay(&first, &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--partial"), "{}", stderr(&output));
    let told = stdout(&exits(0, replay(&first, &["--partial"])));
    assert!(told.contains("no divergence") && told.contains("is not whole, and its"), "{told}");
}
