//! The input files of tests of `leasehold plan`, and the command's output.

use serde_json::{Value, json};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The plan for these files, by the command with further arguments.
pub(crate) fn plan(shards: impl AsRef<OsStr>, leases: impl AsRef<OsStr>, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    command.args(["plan", "--shards"]).arg(shards).arg("--leases").arg(leases);
    command.args(more).output().expect("the command starts")
}

/// A row of KCL: an unfinished lease with an owner.
#[allow(dead_code, reason = "each program of tests uses a part of it")]
pub(crate) fn lease(key: &str, owner: &str) -> Value {
    json!({
        "leaseKey": {"S": key}, "checkpoint": {"S": "TRIM_HORIZON"}, "leaseOwner": {"S": owner},
        "leaseCounter": {"N": "9"}, "ownerSwitchesSinceCheckpoint": {"N": "0"}
    })
}

/// A file of `tests/plan`.
pub(crate) fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plan").join(name);
    path.to_str().expect("a path of text").to_owned()
}

/// The JSON output of a successful command.
pub(crate) fn json_of(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// The findings of one kind.
pub(crate) fn findings(plan: &Value, kind: &str) -> Vec<Value> {
    let all = plan["findings"].as_array().expect("a list");
    all.iter().filter(|finding| finding["kind"] == kind).cloned().collect()
}

/// A file for this test alone.
pub(crate) fn written(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("a file for the test");
    path
}
