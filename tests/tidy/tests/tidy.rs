//! Every rule is asked about every file of the workspace.

use leasehold_tidy::{EXCEPTIONS, RULES, apply, clippy_lists, workspace};

#[test]
fn every_file_follows_the_rules() {
    let sources = workspace().expect("the workspace can be read");
    let wrong = apply(&sources, RULES, EXCEPTIONS);
    assert!(wrong.is_empty(), "{} places:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_exception_has_a_reason() {
    for exception in EXCEPTIONS {
        assert!(!exception.reason.is_empty(), "{exception:?}");
    }
}

/// Clippy reads the nearest file only.
#[test]
fn the_engine_forbids_all_that_the_workspace_forbids() {
    let sources = workspace().expect("the workspace can be read");
    let lists = |path: &str| {
        let source = sources.iter().find(|source| source.path == path);
        clippy_lists(&source.unwrap_or_else(|| panic!("expected {path}, found none")).text)
    };
    let (all, engine) = (lists("clippy.toml"), lists("engine/clippy.toml"));
    let missing: Vec<_> = all.iter().filter(|entry| !engine.contains(entry)).collect();
    assert!(missing.is_empty(), "engine/clippy.toml lacks {missing:?}");
    assert!(all.len() > 20 && engine.len() > all.len());
}
