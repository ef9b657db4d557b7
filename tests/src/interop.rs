//! Workers of other libraries, in fleets on the in-memory AWS.
//!
//! The KCL for Java is fetched, and the tests build a program with the KCL: see [`kcl_java`](crate::kcl_java). The
//! remaining libraries are Go modules missing on some module proxies, and are neither built nor fetched here. To test
//! a Go library, write a program with the library and name the program's path in a variable; without the variable,
//! the library's tests are skipped.
//!
//! | library | variable |
//! |---|---|
//! | github.com/vmware/vmware-go-kcl-v2 | `LEASEHOLD_VMWARE_GO_KCL` |
//! | github.com/twitchscience/kinsumer | `LEASEHOLD_KINSUMER` |
//!
//! # What the program does
//!
//! The program runs one worker until SIGINT, then ends the worker gracefully and exits with 0. Logs go to stderr. Its
//! options:
//!
//! | option | meaning |
//! |---|---|
//! | `--endpoint URL` | where Kinesis and DynamoDB are, in us-east-1, with any credentials; for the program of KCL for Java, `--dynamodb URL` says where DynamoDB is if it is elsewhere |
//! | `--stream NAME`, `--table NAME` | the stream, and the application; the program of KCL for Java also takes the identifiers of several streams, with commas between them |
//! | `--worker NAME` | the worker's id; for kinsumer, the client's name, since kinsumer draws its id |
//! | those in [`Library::quick`] | the library's own timers, in ms |
//! | `--steal`, `--max-leases N` | vmware-go-kcl: lease stealing, and the greatest number of leases |
//! | `--create` | kinsumer: create the tables first |
//!
//! The program starts at TRIM_HORIZON. For each record the program prints a line to stdout before the record counts
//! as processed.
//!
//! * vmware-go-kcl: a line of `leasehold consume --text` (`shard`, `sequence`, `sub_sequence`, `data`), with
//!   `session`: 1 for the first record processor of this process, 2 for the second, and upwards. The program
//!   checkpoints after each batch, and checkpoints `nil`, meaning SHARD_END, at a shutdown with TERMINATE and at no
//!   other time.
//! * kinsumer: `{"data": "…"}`. `Next` gives payloads and no further fields. At an error of `Next`, the program exits
//!   with 1.

use crate::member::{Member, Place};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whose worker it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// vmware-go-kcl-v2.
    VmwareGoKcl,
    /// kinsumer.
    Kinsumer,
}

impl Library {
    fn variable(self) -> &'static str {
        match self {
            Library::VmwareGoKcl => "LEASEHOLD_VMWARE_GO_KCL",
            Library::Kinsumer => "LEASEHOLD_KINSUMER",
        }
    }

    /// Timers that let a fleet settle within seconds.
    pub fn quick(self) -> &'static [&'static str] {
        match self {
            // A lease, two looks at the shards, two renewals, two looks at a parent, two reads that bring nothing, and
            // two scans for stealing.
            Library::VmwareGoKcl => &[
                "--failover-ms=4000",
                "--sync-ms=500",
                "--refresh-ms=1000",
                "--parent-ms=500",
                "--idle-ms=200",
                "--scan-ms=1000",
            ],
            // Two looks at clients and shards, two looks of the leader, and two commits. What is five times as old as the
            // first two is dead.
            Library::Kinsumer => &["--check-ms=1000", "--leader-ms=1000", "--commit-ms=200"],
        }
    }

    /// The program given in the variable. Without the variable, prints one line, and the test ends at once: even on
    /// machines where all tests must run, since no installation here provides the program.
    ///
    /// # Panics
    /// If what was given is no file.
    pub fn given(self, test: &str) -> Option<PathBuf> {
        let variable = self.variable();
        let Some(path) = std::env::var_os(variable).map(PathBuf::from) else {
            let _ = writeln!(
                io::stderr(),
                "skipped {test}: expected {variable} to name a program, see tests/src/interop.rs"
            );
            return None;
        };
        assert!(path.is_file(), "{variable}: expected a program, found {}", path.display());
        Some(path)
    }
}

/// Starts a worker of a library.
///
/// # Panics
/// If it cannot be started.
pub fn start(library: Library, program: &Path, place: &Place, name: &str, more: &[&str]) -> Member {
    let mut command = Command::new(program);
    command.args(library.quick()).args(more);
    launch(command, place, name)
}

/// Starts a worker with this command and the options common to all programs.
///
/// # Panics
/// If it cannot be started.
pub fn launch(mut command: Command, place: &Place, name: &str) -> Member {
    command
        .args(["--endpoint", &place.kinesis])
        .args(["--stream", &place.stream])
        .args(["--table", &place.application])
        .args(["--worker", name])
        .env("AWS_EC2_METADATA_DISABLED", "true");
    if place.dynamodb != place.kinesis {
        command.args(["--dynamodb", &place.dynamodb]);
    }
    Member::start(command, place, name)
}
