//! boto3 tests every function of the in-memory AWS.

use leasehold_local_aws::http::LocalOptions;
use leasehold_tests::cache::{HOME, available};
use leasehold_tests::certificate::Certificate;
use leasehold_tests::local::Local;
use leasehold_tests::python;
use std::path::Path;
use std::process::Command;

/// The script checks answers and error codes, and prints a line for each.
async fn boto3_drives(test: &'static str, secure: bool) {
    let interpreter = tokio::task::spawn_blocking(python::boto3).await.expect("no panic");
    let Some(interpreter) = available(test, interpreter) else {
        return;
    };
    // As AWS behaves, with passing states and limits.
    let tls = secure.then(|| Certificate::for_test(test));
    let options = LocalOptions { tls: tls.as_ref().map(|tls| tls.tls.clone()), ..LocalOptions::default() };
    let local = Local::start(options).await;
    let mut command = Command::new(interpreter);
    command.arg("-B").arg(Path::new(HOME).join("python/boto3_drive.py")).env_remove("AWS_PROFILE");
    let endpoint = match &tls {
        Some(tls) => tls.trusted_by(&mut command, &local.endpoint),
        None => local.endpoint.clone(),
    };
    let output = tokio::task::spawn_blocking(move || command.arg(endpoint).output());
    let output = output.await.expect("no panic").expect("the script to start");
    let printed = String::from_utf8_lossy(&output.stdout);
    print!("{printed}");
    assert!(
        output.status.success(),
        "{}\n{}",
        printed.lines().last().unwrap_or_default(),
        String::from_utf8_lossy(&output.stderr)
    );
    // The last line counts: a script stopped half-way has not passed.
    let last = printed.lines().last().unwrap_or_default();
    let count = last.strip_suffix(" checks passed").and_then(|count| count.parse::<u32>().ok());
    assert!(count.is_some_and(|count| count > 120), "expected more than 120 checks, found: {last:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn boto3_drives_every_operation() {
    boto3_drives("boto3_drives_every_operation", false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn boto3_drives_every_operation_over_tls() {
    boto3_drives("boto3_drives_every_operation_over_tls", true).await;
}
