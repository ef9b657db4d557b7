//! Workers of the released KCL for Java. Their program is `tests/interop/kcl-java`, with the common options of all
//! programs, the options of `Worker.java`, and the options in line 3 of its `Version.java`. Records are printed as in
//! the Go programs. Besides, the program prints events: lines with `event` and `shard`.

use crate::cache::{HOME, Missing, installed, step};
use crate::interop::launch;
use crate::member::{Member, Place};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A line of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kcl {
    /// The last of 2.x.
    Two,
    /// The last of 3.0 to 3.4. Their workers report and elect the leader in tables beside the lease table.
    ThreeFour,
    /// 3.5, whose workers do so in the lease table.
    Three,
}

/// Timers that let a fleet settle within seconds. A crashed worker's leases are taken by the second scan after; scans are
/// two lease durations apart.
const QUICK: &[&str] = &[
    "--failover-ms=3000",
    "--dispatch-ms=200",
    "--parent-ms=500",
    "--sync-ms=500",
    "--audit-ms=2000",
    "--idle-ms=200",
    "--leave-ms=4000",
];

impl Kcl {
    fn profile(self) -> &'static str {
        match self {
            Kcl::Two => "kcl2",
            Kcl::ThreeFour => "kcl34",
            Kcl::Three => "kcl3",
        }
    }
}

/// The program, built.
#[derive(Clone, Debug)]
pub struct Program {
    class_path: String,
}

impl Program {
    /// Fetches the library and builds the program around it, if need be.
    ///
    /// # Errors
    /// Java or Maven is missing, or the library cannot be fetched.
    pub fn install(kcl: Kcl) -> Result<Self, Missing> {
        step(Command::new("java").arg("-version"))?;
        let sources = Path::new(HOME).join("interop/kcl-java");
        let unreadable = |error: io::Error| Missing(format!("{} cannot be read: {error}", sources.display()));
        let recipe = recipe(&sources).map_err(unreadable)?;
        let home = installed(&format!("kcl-java-{}", kcl.profile()), &recipe, |home| {
            step(Command::new("mvn").arg("-version"))?;
            // What was fetched before needs no network.
            maven(&sources, home, kcl, &["--offline"]).or_else(|_| maven(&sources, home, kcl, &[]))
        })?;
        let libraries = fs::read_to_string(home.join("classpath")).map_err(unreadable)?;
        let classes = home.join("classes");
        let class_path = format!("{}:{}", classes.display(), libraries.trim());
        Ok(Self { class_path })
    }

    /// Starts a worker with quick timers.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(&self, place: &Place, name: &str, more: &[&str]) -> Member {
        let options: Vec<&str> = QUICK.iter().chain(more).copied().collect();
        self.start_by_default(place, name, &options)
    }

    /// Starts a worker with the library's own timers, but for these options.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start_by_default(&self, place: &Place, name: &str, more: &[&str]) -> Member {
        let mut command = Command::new("java");
        command
            // Several programs run at the same time, for a minute each.
            .args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"])
            .arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
            .arg("-Dorg.slf4j.simpleLogger.showDateTime=true")
            .arg("-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS")
            .args(["-cp", &self.class_path, "leasehold.kcl.Worker"])
            .args(more);
        launch(command, place, name)
    }
}

/// All inputs of the build, as one text.
fn recipe(sources: &Path) -> io::Result<String> {
    let mut files = vec![sources.join("pom.xml")];
    let mut folders = vec![sources.join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path: PathBuf = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    files.into_iter().map(fs::read_to_string).collect()
}

/// Builds the program. Maven writes its errors to stdout, and the first error names the cause.
fn maven(sources: &Path, home: &Path, kcl: Kcl, more: &[&str]) -> Result<(), Missing> {
    let mut command = Command::new("mvn");
    command
        .args(["--quiet", "--batch-mode"])
        .args(more)
        .arg(format!("-P{}", kcl.profile()))
        .arg(format!("-Dout={}", home.display()))
        .arg("compile")
        .current_dir(sources);
    let failed = |what: &str| Missing(format!("`mvn` cannot build a worker of the KCL for Java: {what}"));
    let output = command.output().map_err(|error| failed(&error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let error = text.lines().find(|line| line.contains("ERROR"));
    Err(failed(error.unwrap_or("it printed no error")))
}
