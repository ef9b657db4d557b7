//! Ctrl-C during `leasehold sim`.
#![cfg(unix)]

use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn an_interrupted_run_sums_up_what_it_did() {
    let child = Command::new(env!("CARGO_BIN_EXE_leasehold"))
        .args(["sim", "--seeds", "0..100000000", "--jobs", "2", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    std::thread::sleep(Duration::from_secs(3));
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &pid]).status();
    assert!(sent.expect("kill is there").success());
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error} in {:?}; stderr: {said}", output.stdout));
    let found = !summary["violations"].as_array().expect("a list").is_empty();
    assert_eq!(output.status.code(), Some(i32::from(found)), "{said}");
    let worlds = &summary["seeds"];
    assert!(
        said.contains(&format!("interrupted after {worlds} worlds")),
        "{said}"
    );
}
