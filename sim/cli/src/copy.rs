//! The program with the deliberate bugs: built from a copy of the workspace, and run with this program's arguments.

use crate::exit::{Failure, Verdict};
use leasehold_sim::deliberate::{FOLDER, Sources, write};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A copy of the workspace with the bugs written into its sources.
pub(super) struct Prepared {
    /// Where it stands.
    pub folder: PathBuf,
    /// The number of files rewritten because of old content.
    pub changed: usize,
}

/// The build's arguments for `cargo`. The copy has the lock file of the workspace.
const BUILD: [&str; 6] =
    ["build", "--release", "--locked", "--package", "leasehold-cli", "--no-default-features"];

impl Prepared {
    /// The command to build the copy.
    pub(super) fn build(&self) -> Command {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
        let mut command = Command::new(cargo);
        command
            .args(BUILD)
            .arg("--manifest-path")
            .arg(self.folder.join("Cargo.toml"))
            .arg("--target-dir")
            .arg(self.folder.join("target"));
        command
    }

    /// The path of the built program.
    pub(super) fn program(&self) -> PathBuf {
        let name = format!("leasehold{}", std::env::consts::EXE_SUFFIX);
        self.folder.join("target/release").join(name)
    }
}

/// Writes the copy.
pub(super) fn prepare() -> Result<Prepared, Failure> {
    let sources = Sources::of_this_program().map_err(Failure::unusable)?;
    let files = sources.with_bugs().map_err(|wrong| {
        Failure::unusable(format!("the deliberate bugs do not fit the sources:\n{wrong}"))
    })?;
    let folder = sources.root().join(FOLDER);
    let changed = write(&files, &folder).map_err(Failure::under_way)?;
    Ok(Prepared { folder, changed })
}

/// Builds the program with the bugs, unless the build is up to date, and runs the program with this process's
/// arguments.
pub(super) fn hand_over() -> Result<Verdict, Failure> {
    let prepared = prepare()?;
    let mut build = prepared.build();
    let built = build.stdin(Stdio::null()).status();
    let built = built.map_err(|error| {
        Failure::under_way(format!(
            "expected Cargo, which builds the program with the deliberate bugs in it, as {:?}: {error}",
            build.get_program()
        ))
    })?;
    if !built.success() {
        return Err(Failure::under_way(format!(
            "expected a copy of the workspace in {} that can be built with the deliberate bugs in it, found errors (above); mend \
             the edit in sim/mutants/ that they name the place of",
            prepared.folder.display()
        )));
    }
    let program = prepared.program();
    let ended = Command::new(&program).args(std::env::args_os().skip(1)).status();
    let ended = ended.map_err(|error| {
        Failure::under_way(format!("expected a program that can be run as {}: {error}", program.display()))
    })?;
    match ended.code() {
        Some(0) => Ok(Verdict::Fine),
        Some(1) => Ok(Verdict::Found),
        _ => Err(Failure::under_way(format!(
            "expected results of {}, found that it ended with {ended}",
            program.display()
        ))),
    }
}
