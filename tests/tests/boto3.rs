//! boto3 tests every function of the in-memory AWS.

use leasehold_local_aws::http::LocalOptions;
use leasehold_tests::cache::{HOME, available};
use leasehold_tests::local::Local;
use leasehold_tests::python;
use std::path::Path;
use std::process::Command;

/// The script checks answers and error codes, and prints a line for each.
#[tokio::test(flavor = "multi_thread")]
async fn boto3_drives_every_operation() {
    let interpreter = tokio::task::spawn_blocking(python::boto3).await.expect("no panic");
    let Some(interpreter) = available("boto3_drives_every_operation", interpreter) else {
        return;
    };
    // As AWS behaves, with passing states and limits.
    let local = Local::start(LocalOptions::default()).await;
    let endpoint = local.endpoint.clone();
    let output = tokio::task::spawn_blocking(move || {
        Command::new(interpreter)
            .arg("-B")
            .arg(Path::new(HOME).join("python/boto3_drive.py"))
            .arg(endpoint)
            .env_remove("AWS_PROFILE")
            .output()
    });
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
