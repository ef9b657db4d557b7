//! The input files of tests of `leasehold plan`, and the command's output.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Output;

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
