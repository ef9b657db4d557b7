//! The `leasehold` command, run to its end.

use std::process::Command;

/// How a run of the command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The exit code.
    pub code: Option<i32>,
    /// What it printed.
    pub shown: String,
    /// What it printed on stderr.
    pub told: String,
}

/// Runs the program with these arguments.
///
/// # Panics
/// If it cannot be started.
pub async fn run(program: &str, args: &[&str]) -> Ended {
    let mut command = Command::new(program);
    command.args(args).env_remove("RUST_LOG");
    let run = tokio::task::spawn_blocking(move || command.output().expect("the command starts"));
    let output = run.await.expect("its output");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ended { code: output.status.code(), shown: text(&output.stdout), told: text(&output.stderr) }
}
