//! Servers that cannot be reached: what a consumer says, and how often.

use leasehold_tests::consume::{Consumer, Target};
use leasehold_tests::process::free_port;
use leasehold_tests::wait;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A consumer with addresses for both services where no server listens.
fn lonely(name: &str) -> (Target, String) {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).expect("a directory for the test");
    let endpoint = format!("http://127.0.0.1:{}", free_port().expect("a port"));
    let target = Target {
        program: PathBuf::from(env!("CARGO_BIN_EXE_leasehold-under-test")),
        kinesis: endpoint.clone(),
        dynamodb: endpoint.clone(),
        stream: "orders".to_owned(),
        application: "billing".to_owned(),
        format: "kcl",
        more: &[],
        directory,
    };
    (target, endpoint)
}

#[tokio::test]
async fn a_missing_server_is_told_once_with_address_and_cause() {
    let (target, endpoint) = lonely("unreachable");
    let consumer = Consumer::start(&target, "lonely");
    let line = format!(
        "Kinesis at {endpoint} cannot be reached: Connection refused (os error 111); could not describe the stream; retrying"
    );
    wait::until("the address and the cause", Duration::from_secs(5), || async {
        consumer.process.stderr().contains(&line)
    })
    .await;
    // It is tried again several times meanwhile.
    tokio::time::sleep(Duration::from_secs(6)).await;
    let log = consumer.process.stderr();
    let warnings: Vec<&str> = log.lines().filter(|line| line.contains("WARN")).collect();
    assert_eq!(warnings.len(), 1, "{log}");
    assert!(log.lines().count() <= 3, "{log}");
}
