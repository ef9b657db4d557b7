//! Programs that subscribe to a shard with the SDK of another language, in `tests/subscribers`.

use crate::cache::{HOME, Missing, installed, step};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program.
#[derive(Clone, Copy, Debug)]
pub enum Subscriber {
    /// For Node.
    Js,
    /// For the toolchain of Go.
    Go,
}

/// The command of a program, installed if need be. Its argument is the server's endpoint.
///
/// # Errors
/// Node, npm or Go is missing, or a package cannot be fetched.
pub fn command(subscriber: Subscriber) -> Result<Command, Missing> {
    match subscriber {
        Subscriber::Js => {
            step(Command::new("node").arg("--version"))?;
            let home = copied("subscriber-js", "js", |home| {
                // No script of a package runs at installation.
                let install = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
                step(Command::new("npm").args(install).current_dir(home))
            })?;
            let mut command = Command::new("node");
            command.arg("--no-warnings").arg(home.join("subscribe.mjs"));
            Ok(command)
        }
        Subscriber::Go => {
            step(Command::new("go").arg("version"))?;
            let build = ["build", "-o", "subscriber", "."];
            let home =
                copied("subscriber-go", "go", |home| step(Command::new("go").args(build).current_dir(home)))?;
            Ok(Command::new(home.join("subscriber")))
        }
    }
}

/// A copy of the sources, installed.
fn copied(
    name: &str, sources: &str, install: impl FnOnce(&Path) -> Result<(), Missing>,
) -> Result<PathBuf, Missing> {
    let sources = Path::new(HOME).join("subscribers").join(sources);
    let unreadable = |error: io::Error| Missing(format!("{} cannot be read: {error}", sources.display()));
    let files = files(&sources).map_err(unreadable)?;
    let recipe: String = files.iter().map(|(_, text)| text.as_str()).collect();
    installed(name, &recipe, |home| {
        for (file, text) in &files {
            let path = home.join(file);
            fs::write(&path, text)
                .map_err(|error| Missing(format!("{} cannot be written: {error}", path.display())))?;
        }
        install(home)
    })
}

/// The files of a folder with their texts, by name.
fn files(folder: &Path) -> io::Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        files.push((entry.file_name().to_string_lossy().into_owned(), fs::read_to_string(entry.path())?));
    }
    files.sort();
    Ok(files)
}
