//! A build without madsim must not pass for worlds that ran.

#![cfg(not(madsim))]

use std::process::{Command, Output};

fn stack(rustflags: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold-full-stack"));
    command.args(["--seeds", "0..1"]);
    command.env_remove("CARGO_ENCODED_RUSTFLAGS");
    match rustflags {
        Some(flags) => command.env("RUSTFLAGS", flags),
        None => command.env_remove("RUSTFLAGS"),
    };
    command.output().expect("the command runs")
}

#[test]
fn without_the_cfg_the_command_fails_and_says_why() {
    let output = stack(None);
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("expected cfg(madsim) in this build"), "{told}");
    assert!(told.contains("cargo sim-stack"), "{told}");
    assert!(output.stdout.is_empty());
}

#[test]
fn rustflags_that_replace_the_cfg_are_named() {
    let output = stack(Some("-D warnings"));
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains(r#"RUSTFLAGS is set in the environment ("-D warnings")"#), "{told}");
}
