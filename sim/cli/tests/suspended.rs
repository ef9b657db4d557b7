//! A real worker is stopped and continued: another worker has its shard by then.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "processes are waited for by the clock")]

mod command;

use command::*;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// `leasehold consume`, and its printed lines.
struct Consumer {
    process: Running,
    lines: Receiver<Value>,
}

impl Consumer {
    fn start(local: &Local) -> Self {
        let mut child = leasehold(&["consume", "--stream", "orders", "--application", "billing"])
            .args(["--endpoint-url", &local.url(), "--text", "--lease-duration", "3 s"])
            .args(["--renew-interval", "1 s", "--table-timeout", "1 s"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the command starts");
        let out = BufReader::new(child.stdout.take().expect("its stdout"));
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line).expect("a JSON line");
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { process: Running(child), lines }
    }

    /// The data and the token of the next line, if it comes within so many seconds.
    fn next(&self, within: u64) -> Option<(String, u64)> {
        match self.lines.recv_timeout(Duration::from_secs(within)) {
            Ok(line) => Some((
                line["data"].as_str().expect("a text").to_owned(),
                line["token"].as_u64().expect("a number"),
            )),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => panic!("the consumer has ended"),
        }
    }
}

#[test]
fn a_stopped_worker_hands_nothing_over_under_its_old_token() {
    let local = Local::start();
    local.create_stream("orders", 1);
    let put = |data: &str| local.put_record("orders", "k", data);
    // "0", "1", "2" and "3" in base64.
    let [before, meanwhile, later, last] = ["MA==", "MQ==", "Mg==", "Mw=="];
    let sleeper = Consumer::start(&local);
    put(before);
    let (data, old) = sleeper.next(60).expect("the first worker reads");
    assert_eq!(data, "0");
    signal(&sleeper.process, "STOP");
    put(meanwhile);
    let next = Consumer::start(&local);
    let (data, new) = next.next(60).expect("the second worker takes the shard");
    // A checkpoint that was not written yet lets the first record come again.
    let (data, new) = match data.as_str() {
        "0" => next.next(60).expect("and goes on"),
        _ => (data, new),
    };
    assert_eq!(data, "1");
    assert!(new > old, "{new} after {old}");
    put(later);
    signal(&sleeper.process, "CONT");
    put(last);
    for data in ["2", "3"] {
        // Only the second worker's token follows, unless the first worker has taken the shard anew by then.
        let read = next.next(10).or_else(|| sleeper.next(10));
        let (read, token) = read.expect("a worker reads on");
        assert!(read == data && token >= new, "{read:?} under token {token}");
    }
    while let Some((data, token)) = sleeper.next(5) {
        assert!(token > old, "{data:?} was handed over under the old token {token}");
    }
}
