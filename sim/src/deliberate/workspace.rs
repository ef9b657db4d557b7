//! The copy of the workspace with the deliberate bugs.
//!
//! In the copy, the switch is a module of the engine, so that the sources of each crate can ask the switch. Only the
//! edits differ otherwise: no manifest has another dependency, and the lock file is the same.

use super::Bug;
use super::catalogue::FILES;
use super::edit::{Change, apply};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// The copy's folder, from the root of the workspace. The copy has a target folder of its own inside.
pub const FOLDER: &str = "target/deliberate-bugs";

/// Files by their paths from the root.
pub type Files = BTreeMap<PathBuf, Vec<u8>>;

/// The sources of the workspace.
#[derive(Clone, Debug)]
pub struct Sources {
    root: PathBuf,
}

const SWITCH: &str = "sim/src/deliberate/switch.rs";
const SWITCH_IN_ENGINE: &str = "engine/src/deliberate.rs";

impl Sources {
    /// The checkout that this program was built from.
    ///
    /// # Errors
    /// If the checkout is gone, or its catalogue differs from this program's catalogue, as a sentence.
    pub fn of_this_program() -> Result<Self, String> {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = package.parent().unwrap_or(package).to_owned();
        if !root.join(SWITCH).is_file() {
            return Err(format!(
                "expected the sources of this program in {}, found none: deliberate bugs are edits of the sources; run this in a \
                 checkout, as `cargo run --release -- mutants`",
                root.display()
            ));
        }
        let sources = Self { root };
        sources.compare_catalogue()?;
        Ok(sources)
    }

    /// The root folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Compares the catalogue's files with the files built into this program.
    fn compare_catalogue(&self) -> Result<(), String> {
        let there = read_folder(&self.root, Path::new("sim/mutants"))?;
        let mut built: BTreeMap<PathBuf, &str> =
            FILES.iter().map(|(id, text)| (PathBuf::from(format!("sim/mutants/{id}.toml")), *text)).collect();
        let mut differ = |path: &Path, text: &[u8]| built.remove(path).map(str::as_bytes) != Some(text);
        if let Some((path, _)) = there.iter().find(|(path, text)| differ(path, text)) {
            return Err(format!(
                "expected {} as it was when this program was built, found another text; build the program again (a new bug is \
                 named in sim/src/deliberate/catalogue.rs, too)",
                path.display()
            ));
        }
        match built.keys().next() {
            Some(path) => Err(format!(
                "expected the file {}, which this program was built with, found none; build the program again",
                path.display()
            )),
            None => Ok(()),
        }
    }

    /// The copy: all files needed for a build, with all bugs.
    ///
    /// # Errors
    /// If a file cannot be read, or edits do not fit: all errors, a sentence a line.
    pub fn with_bugs(&self) -> Result<Files, String> {
        let mut files = self.read()?;
        move_switch(&mut files)?;
        let mut changes: BTreeMap<&str, Vec<Change<'static>>> = BTreeMap::new();
        for bug in Bug::all()? {
            let (id, number) = (bug.id(), bug.number());
            for edit in bug.edits() {
                let change = Change { id, number, edit };
                changes.entry(&edit.file).or_default().push(change);
            }
        }
        let mut wrong = Vec::new();
        for (file, changes) in changes {
            let first = changes.first().map_or("", |change| change.id);
            let text = text_of(&files, file)
                .map_err(|sentence| vec![format!("sim/mutants/{first}.toml: {sentence}")]);
            match text.and_then(|text| apply(&text, &changes)) {
                Ok(text) => drop(files.insert(file.into(), text.into())),
                Err(sentences) => wrong.extend(sentences),
            }
        }
        if wrong.is_empty() { Ok(files) } else { Err(wrong.join("\n")) }
    }

    /// The files in the root, and the files of the members.
    fn read(&self) -> Result<Files, String> {
        #[derive(Deserialize)]
        struct Manifest {
            workspace: Workspace,
        }
        #[derive(Deserialize)]
        struct Workspace {
            members: Vec<PathBuf>,
        }
        let mut files = Files::new();
        for (path, kind) in list(&self.root, Path::new(""))? {
            if kind.is_file() {
                files.insert(path.clone(), read(&self.root, &path)?);
            }
        }
        let manifest: Manifest = toml::from_str(&text_of(&files, "Cargo.toml")?)
            .map_err(|error| format!("Cargo.toml: expected the members of a workspace: {error}"))?;
        for member in &manifest.workspace.members {
            files.append(&mut read_folder(&self.root, member)?);
        }
        Ok(files)
    }
}

/// Makes the switch a module of the engine. Unused code is no concern of the copy.
fn move_switch(files: &mut Files) -> Result<(), String> {
    let switch =
        replace_once(files, SWITCH, "const HAS_BUGS: bool = false;", "const HAS_BUGS: bool = true;")?;
    let engine = text_of(files, "engine/src/lib.rs")?;
    let lints = "[workspace.lints.rust]\n";
    let allowed = format!("{lints}unused = {{ level = \"allow\", priority = -1 }}\n");
    let manifest = replace_once(files, "Cargo.toml", lints, &allowed)?;
    for (file, text) in [
        (SWITCH_IN_ENGINE, switch),
        (
            SWITCH,
            "//! The switch of the deliberate bugs, which the engine asks, too.\n\npub use leasehold_engine::deliberate::*;\n"
                .to_owned(),
        ),
        (
            "engine/src/lib.rs",
            format!("{engine}\npub mod deliberate;\nextern crate self as leasehold_engine;\n"),
        ),
        ("Cargo.toml", manifest),
    ] {
        files.insert(file.into(), text.into());
    }
    Ok(())
}

fn replace_once(files: &Files, file: &str, find: &str, replace: &str) -> Result<String, String> {
    let text = text_of(files, file)?;
    match text.matches(find).count() {
        1 => Ok(text.replace(find, replace)),
        count => Err(format!("expected {find:?} once in {file}, found it {count} times")),
    }
}

fn text_of(files: &Files, file: &str) -> Result<String, String> {
    let bytes = files.get(Path::new(file)).ok_or_else(|| format!("expected the file {file}, found none"))?;
    String::from_utf8(bytes.clone())
        .map_err(|_| format!("expected a text in UTF-8 in {file}, found other bytes"))
}

/// Writes a copy into a folder, and removes all other files there but `target`. A file already correct is not touched,
/// to avoid another build of the file. Returns the number of files written or removed.
///
/// # Errors
/// If the folder or a file cannot be written, as a sentence.
pub fn write(files: &Files, folder: &Path) -> Result<usize, String> {
    let failed = |path: &Path, error: io::Error| {
        format!("{}: expected a file that can be written: {error}", folder.join(path).display())
    };
    std::fs::create_dir_all(folder).map_err(|error| failed(Path::new(""), error))?;
    let there = read_folder(folder, Path::new(""))?;
    let mut changed = 0;
    for path in there.keys().filter(|path| !files.contains_key(*path)) {
        std::fs::remove_file(folder.join(path)).map_err(|error| failed(path, error))?;
        changed += 1;
    }
    for (path, bytes) in files {
        if there.get(path) == Some(bytes) {
            continue;
        }
        let file = folder.join(path);
        let parent = file.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&file, bytes))
            .map_err(|error| failed(path, error))?;
        changed += 1;
    }
    Ok(changed)
}

/// The contents of a folder, without hidden files and build results.
fn list(root: &Path, folder: &Path) -> Result<Vec<(PathBuf, std::fs::FileType)>, String> {
    let failed = |error: io::Error| {
        format!("{}: expected a folder that can be read: {error}", root.join(folder).display())
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root.join(folder)).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        if !name.as_encoded_bytes().starts_with(b".") && name != "target" {
            found.push((folder.join(name), entry.file_type().map_err(failed)?));
        }
    }
    Ok(found)
}

fn read(root: &Path, path: &Path) -> Result<Vec<u8>, String> {
    let file = root.join(path);
    std::fs::read(&file)
        .map_err(|error| format!("{}: expected a file that can be read: {error}", file.display()))
}

/// All files of a folder and of its subfolders.
fn read_folder(root: &Path, folder: &Path) -> Result<Files, String> {
    let mut files = Files::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for (path, kind) in list(root, &folder)? {
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                let bytes = read(root, &path)?;
                files.insert(path, bytes);
            }
        }
    }
    Ok(files)
}
