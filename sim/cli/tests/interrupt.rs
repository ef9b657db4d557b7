//! Ctrl-C and SIGTERM during `leasehold sim`.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "processes are waited for by the clock")]

use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Runs worlds for three seconds, then asks the command to end.
fn interrupted(signal: &str, args: &[&str]) -> Output {
    let child = Command::new(env!("CARGO_BIN_EXE_leasehold"))
        .arg("sim")
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    std::thread::sleep(Duration::from_secs(3));
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(sent.expect("kill is there").success());
    child.wait_with_output().expect("it ends")
}

fn summary(output: &Output) -> serde_json::Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error} in {:?}; stderr: {said}", output.stdout))
}

#[test]
fn an_interrupted_run_sums_up_what_it_did() {
    let output = interrupted("-INT", &["--seeds", "0..100000000", "--jobs", "2", "--json", "--no-shrink"]);
    let (said, summary) = (String::from_utf8_lossy(&output.stderr), summary(&output));
    let found = !summary["violations"].as_array().expect("a list").is_empty();
    assert_eq!(output.status.code(), Some(i32::from(found)), "{said}");
    let worlds = &summary["seeds"];
    assert!(said.contains(&format!("interrupted after {worlds} worlds")), "{said}");
}

/// A stream of so many shards that a world with this stream takes much longer than three seconds.
fn wide_stream(folder: &std::path::Path) -> [String; 2] {
    const SHARDS: u128 = 4_000;
    let width = u128::MAX / SHARDS;
    let shard = |n: u128| {
        let last = if n + 1 == SHARDS { u128::MAX } else { width * (n + 1) - 1 };
        serde_json::json!({
            "ShardId": format!("shardId-{n:012}"),
            "HashKeyRange": {"StartingHashKey": (width * n).to_string(), "EndingHashKey": last.to_string()},
            "SequenceNumberRange": {"StartingSequenceNumber": "49590338271490256608559692538361571095921575989136588898"},
        })
    };
    let shards: Vec<_> = (0..SHARDS).map(shard).collect();
    let files = [
        ("shards.json", serde_json::json!({ "Shards": shards })),
        ("leases.json", serde_json::json!({ "Items": [] })),
    ];
    files.map(|(name, json)| {
        let path = folder.join(name);
        std::fs::write(&path, json.to_string()).expect("the folder can be written");
        path.to_str().expect("a path in UTF-8").to_owned()
    })
}

#[test]
fn a_long_world_is_given_up_and_not_counted() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("interrupt");
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    let [shards, leases] = wide_stream(&folder);
    for signal in ["-TERM", "-INT"] {
        let output = interrupted(
            signal,
            &["--shards", &shards, "--leases", &leases, "--seeds", "0..100", "--jobs", "1", "--json"],
        );
        let (said, summary) = (String::from_utf8_lossy(&output.stderr), summary(&output));
        assert_eq!(output.status.code(), Some(0), "{signal}: {said}");
        assert_eq!(summary["seeds"], 0, "{signal}: {said}");
        assert!(said.contains("interrupted after 0 worlds"), "{signal}: {said}");
    }
}
