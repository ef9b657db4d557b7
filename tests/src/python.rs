//! A virtual environment with boto3.

use crate::cache::{HOME, Missing, installed, step};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The interpreter of the environment. A missing environment is made first.
///
/// # Errors
/// Python, venv or pip is missing or fails.
pub fn boto3() -> Result<PathBuf, Missing> {
    let file = Path::new(HOME).join("python/requirements.txt");
    let requirements = fs::read_to_string(&file)
        .map_err(|error| Missing(format!("{} cannot be read: {error}", file.display())))?;
    let home = installed("boto3", &requirements, |home| {
        step(Command::new("python3").args(["-m", "venv"]).arg(home))?;
        step(
            Command::new(home.join("bin/python"))
                .args([
                    "-m",
                    "pip",
                    "install",
                    "--quiet",
                    "--disable-pip-version-check",
                    "--only-binary",
                    ":all:",
                    "-r",
                ])
                .arg(&file),
        )
    })?;
    Ok(home.join("bin/python"))
}
