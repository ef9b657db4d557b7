//! The deliberate bugs fit the sources: every edit finds its place. After a change of the engine, this test says at
//! once which bugs to move. Whether the oracles catch the bugs is another matter: see `mutants.rs`.

use leasehold_sim::deliberate::{Bug, FOLDER, HAS_BUGS, Sources, write};
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn every_edit_of_the_catalogue_finds_its_place() {
    if HAS_BUGS {
        println!("skipped: the edits are in these sources");
        return;
    }
    let sources = Sources::of_this_program().unwrap_or_else(|sentence| panic!("{sentence}"));
    let has_bug = sources.with_bugs().unwrap_or_else(|wrong| panic!("{wrong}"));
    let bugs = Bug::all().unwrap_or_else(|sentence| panic!("{sentence}"));
    let files: BTreeSet<&str> = bugs.iter().flat_map(|bug| bug.edits()).map(|edit| &*edit.file).collect();
    assert!(bugs.len() > 90 && files.len() > 2, "{} bugs, {files:?}", bugs.len());
    for file in files {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
        let sound = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(has_bug[Path::new(file)] != sound, "{file} is as it was");
    }
}

#[test]
fn a_second_copy_touches_nothing_and_removes_what_is_gone() {
    if HAS_BUGS {
        println!("skipped: the edits are in these sources");
        return;
    }
    let sources = Sources::of_this_program().unwrap_or_else(|sentence| panic!("{sentence}"));
    let mut files = sources.with_bugs().unwrap_or_else(|wrong| panic!("{wrong}"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(FOLDER);
    let _ = std::fs::remove_dir_all(&folder);
    let write = |files: &_| write(files, &folder).unwrap_or_else(|sentence| panic!("{sentence}"));
    assert_eq!(write(&files), files.len());
    assert_eq!(write(&files), 0);
    files.remove(Path::new("engine/src/lib.rs"));
    files.insert("Cargo.lock".into(), b"another".to_vec());
    assert_eq!(write(&files), 2);
    assert_eq!(write(&files), 0);
}
