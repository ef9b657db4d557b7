//! Every hazard of the catalogue shows in its own program, and no hazard shows in Leasehold.
#![allow(clippy::disallowed_methods, reason = "LEASEHOLD_BLESS says that texts are to be written anew")]

use leasehold_sim::hazards::{HAZARDS, table};
use std::collections::BTreeSet;
use std::path::Path;

/// Where the table of `sim/docs/hazards.md` is.
const BEGIN: &str = "<!-- leasehold sim --hazards -->\n";
const END: &str = "\n<!-- end -->";

#[test]
fn every_hazard_shows_in_its_program_and_not_in_ours() {
    let mut wrong = Vec::new();
    let mut shown = Vec::new();
    for hazard in HAZARDS {
        match hazard.show() {
            Ok(found) => {
                if let Some(why) = &found.wrong {
                    wrong.push(format!("{}: {why}", hazard.id));
                }
                shown.push(found);
            }
            Err(why) => wrong.push(why),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/hazards.md");
    let text = std::fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    let (before, rest) = text.split_once(BEGIN).expect("the page of hazards has a place for the table");
    let (old, after) = rest.split_once(END).expect("and its end");
    let new = table(&shown);
    if std::env::var_os("LEASEHOLD_BLESS").is_some_and(|value| value == "1") {
        let whole = format!("{before}{BEGIN}{new}{END}{after}");
        std::fs::write(&page, whole).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    } else {
        assert_eq!(
            old, new,
            "the table in sim/docs/hazards.md (if that is as it should be: LEASEHOLD_BLESS=1)"
        );
    }
}

#[test]
fn every_file_is_in_the_catalogue_once() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("hazards");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let files: BTreeSet<String> = entries
        .filter_map(|entry| {
            entry.ok()?.file_name().into_string().ok()?.strip_suffix(".toml").map(str::to_owned)
        })
        .collect();
    let ids: BTreeSet<String> = HAZARDS.iter().map(|hazard| hazard.id.to_owned()).collect();
    assert_eq!(files, ids);
    assert_eq!(ids.len(), HAZARDS.len(), "two hazards have one name");
}
