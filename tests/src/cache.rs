//! Programs that tests fetch once and keep below the target directory.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// The directory of this package's sources.
pub const HOME: &str = env!("CARGO_MANIFEST_DIR");

/// Why a test cannot run on this machine.
#[derive(Debug)]
pub struct Missing(pub String);

/// Unwraps a test's requirement on this machine. Without the requirement, prints one line, and the test ends at once.
///
/// # Panics
/// If `LEASEHOLD_REQUIRE_SERVERS` is set: then nothing may be skipped.
pub fn available<T>(test: &str, found: Result<T, Missing>) -> Option<T> {
    match found {
        Ok(found) => Some(found),
        Err(Missing(what)) => {
            assert!(
                std::env::var_os("LEASEHOLD_REQUIRE_SERVERS").is_none(),
                "{test}: expected to be able to run, as LEASEHOLD_REQUIRE_SERVERS is set, found: {what}"
            );
            skipped(test, &what);
            None
        }
    }
}

/// As [`available`], for an SDK of another language: no run of the tests requires its toolchain and packages.
pub fn available_sdk<T>(test: &str, found: Result<T, Missing>) -> Option<T> {
    found.inspect_err(|Missing(what)| skipped(test, what)).ok()
}

fn skipped(test: &str, what: &str) {
    // Not `eprintln!`: its output is shown for failed tests only.
    let _ = writeln!(io::stderr(), "skipped {test}: {what}");
}

/// A directory of this name. `install` makes the directory, unless the same `recipe` made the directory before.
///
/// # Errors
/// What `install` says is missing.
pub fn installed(
    name: &str, recipe: &str, install: impl FnOnce(&Path) -> Result<(), Missing>,
) -> Result<PathBuf, Missing> {
    // Tests run side by side, and in processes of their own where cargo is called twice.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let home = directory().join(name);
    let stamp = home.join("installed");
    if fs::read_to_string(&stamp).is_ok_and(|made| made == recipe) {
        return Ok(home);
    }
    let failed = |error: io::Error| Missing(format!("{} cannot be made: {error}", home.display()));
    if home.exists() {
        fs::remove_dir_all(&home).map_err(failed)?;
    }
    fs::create_dir_all(&home).map_err(failed)?;
    install(&home)?;
    fs::write(&stamp, recipe).map_err(failed)?;
    Ok(home)
}

/// Runs a step of an installation.
///
/// # Errors
/// The program is missing, or the last line of its output.
pub fn step(command: &mut Command) -> Result<(), Missing> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| Missing(format!("expected `{program}` to be installed, found: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    Err(Missing(format!("`{program}` failed ({}): {}", output.status, last.unwrap_or("it printed nothing"))))
}

/// `target/test-servers`, wherever `target` is.
fn directory() -> PathBuf {
    let here = std::env::current_exe().unwrap_or_default();
    // …/target/debug/deps/system-0123456789abcdef
    here.ancestors().nth(3).map_or_else(std::env::temp_dir, Path::to_path_buf).join("test-servers")
}
