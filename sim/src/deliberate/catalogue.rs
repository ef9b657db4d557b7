//! The catalogue: one file for each deliberate bug, in `sim/mutants/`.

use super::edit::Edit;
use crate::oracles::Property;
use leasehold_engine::format::Format;
use serde::Deserialize;
use std::sync::LazyLock;

/// The contents of a deliberate bug's file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    /// The bug's error, in a sentence.
    pub(super) about: String,
    /// The properties broken by the bug. The first is the property meant for the bug.
    pub(super) properties: Vec<Property>,
    /// The table format of the hunt's worlds.
    #[serde(default)]
    pub(super) format: Format,
    /// Whether workers of other programs run beside ours in the hunt's worlds.
    #[serde(default)]
    pub(super) mixed: bool,
    /// A world known to show the bug. The hunt begins there. Absent: the hunt is short without a known world.
    pub(super) known_world: Option<u64>,
    /// The bug shows in one world of many thousands. Only nightly runs hunt the bug.
    #[serde(default)]
    pub(super) rare: bool,
    /// The edits of the sources.
    pub(super) edits: Vec<Edit>,
}

/// Names, each with the text of its file.
macro_rules! entries {
    ($($id:literal)*) => {
        &[$(($id, include_str!(concat!("../../mutants/", $id, ".toml")))),*]
    };
}

/// The files of the catalogue, in the order of their names. The place of a bug's file is the bug's number.
pub(super) const FILES: &[(&str, &str)] = entries! {
    "aggregate-of-others"
    "aggregate-whole"
    "another-time-once"
    "any-table"
    "asked-waits"
    "asks-for-all"
    "asks-the-dead"
    "asks-to-and-fro"
    "assigned-is-left"
    "assignments-forgotten"
    "attempts-never-anew"
    "begins-anew"
    "believe-one-listing"
    "blind-to-counter"
    "blocked-hastily"
    "blocked-keeps"
    "broken-is-applied"
    "brought-over-from-horizon"
    "budget-ignored"
    "call-late-too-soon"
    "call-never-late"
    "calls-unpaced"
    "changed-is-new"
    "checkpoint-on-delivery"
    "checkpoint-seldom"
    "child-counted-twice"
    "children-from-latest"
    "children-of-one-answer"
    "children-of-others"
    "children-unnamed"
    "claims-forgotten"
    "claims-unweighed"
    "clock-tells-death"
    "close-too-early"
    "closes-unsaved"
    "condition-is-throttled"
    "consumer-awaited"
    "consumer-doubted-seldom"
    "consumer-of-another-stream"
    "consumer-of-before"
    "consumer-undoubted"
    "consumer-unregistered"
    "counter-begins-anew"
    "create-when-fenced"
    "dead-members-count"
    "denied-is-taken"
    "denied-once"
    "denied-place-left"
    "drains-slowly"
    "due-regardless"
    "earlier-moment-unsaved"
    "empty-is-end"
    "empty-listing-believed"
    "end-at-checkpoint"
    "end-before-children"
    "end-is-beginning"
    "end-of-one-answer"
    "end-unacknowledged"
    "end-without-number"
    "end-without-permission"
    "ended-subscription-kept"
    "ended-subscription-rests"
    "expire-early"
    "expiry-by-their-clock"
    "failures-stay"
    "fence-asks-one-clock"
    "filled-from-one-listing"
    "finished-removed-early"
    "first-listing-page-only"
    "first-look-believed"
    "first-members-page-only"
    "first-page-only"
    "floor-share"
    "follows-the-dead"
    "foreign-numbers-taken"
    "forgets-by-one-listing"
    "forgets-what-is-lost"
    "forgets-what-moves"
    "future-counts-as-now"
    "future-moment-from-the-oldest"
    "future-moment-seldom"
    "future-subscribed"
    "gap-believed"
    "give-back-goes-on"
    "given-is-left"
    "given-is-no-news"
    "gives-to-the-unsure"
    "hand-over-in-cooldown"
    "hand-over-too-early"
    "hand-over-unfinished"
    "hand-overs-last"
    "handed-on-forgotten"
    "hash-keys-corrected-once"
    "hold-too-long"
    "hole-beside-the-finished"
    "identity-by-name"
    "identity-not-compared"
    "idle-events-hold-memory"
    "keeps-others-turns"
    "keeps-without-limit"
    "kept-gap-skipped"
    "lapsed-is-lost"
    "last-unknown-counts"
    "late-counts-as-apart"
    "leader-is-hasty"
    "leader-waits-long"
    "leads-without-lock"
    "leaves-to-newcomers"
    "limit-not-halved"
    "lineage-not-asked"
    "list-always"
    "listing-gives-up"
    "listing-outlives-stream"
    "lock-elsewhere"
    "lock-renewed-late"
    "lock-stays"
    "looks-unpaced"
    "lost-dead-letter"
    "lost-iterator-at-latest"
    "lost-stream-stops"
    "lost-untold"
    "migrates-at-once"
    "missed-ages-others"
    "missed-in-flight"
    "missed-renews-only"
    "missed-unhurried"
    "moment-counts-twice"
    "names-of-all-are-ours"
    "never-asks"
    "never-chases"
    "never-checkpoint"
    "never-expire"
    "never-steals"
    "never-tidies"
    "no-abort"
    "no-adoption"
    "no-audit"
    "no-backoff"
    "no-budget"
    "no-close-when-lost"
    "no-co-parent-wait"
    "no-consumer-no-shard"
    "no-fence"
    "no-handler-pause"
    "no-parent-wait"
    "no-patience"
    "no-release"
    "no-settle"
    "no-take-of-unowned"
    "null-fails-guard"
    "null-owner-unread"
    "older-shard-unheeded"
    "one-child-only"
    "one-handler-at-a-time"
    "one-parent-only"
    "one-read-at-a-time"
    "one-refusal-resigns"
    "one-row-refuses-all"
    "open-end-waits"
    "order-unheeded"
    "other-key-once"
    "parents-of-row-believed"
    "parents-unsaid"
    "part-is-whole"
    "partial-is-whole"
    "pause-unheeded"
    "paused-not-renewed"
    "place-unpolled"
    "polled-for-ever"
    "promise-overdue-at-once"
    "pushed-beyond-buffer"
    "pushed-end-believed"
    "put-for-update"
    "quick-scans-unpaced"
    "quota-ignored"
    "range-end-excluded"
    "range-of-one-answer"
    "range-unsaid"
    "read-on-at-latest"
    "reads-without-limit"
    "refusals-forgotten"
    "registers-once"
    "relatives-bare"
    "release-in-cooldown"
    "release-without-number"
    "removed-unbegun"
    "removes-live-reports"
    "renew-gives-up"
    "renew-late"
    "renewer-is-dead"
    "report-stays"
    "reports-for-ever"
    "reports-seem-new"
    "reports-seldom"
    "reservation-kept"
    "restart-skips-parts"
    "restore-when-fenced"
    "retries-regardless"
    "row-twice-seen"
    "row-without-moment"
    "scan-gives-up"
    "second-refusal-resigns"
    "server-error-is-applied"
    "set-aside-whole-batch"
    "shares-once"
    "silence-unheard"
    "skip-failed-batch"
    "small-reads-starve"
    "some-children-are-all"
    "spoiled-untold"
    "stall-forgotten"
    "stall-unnoticed"
    "stamp-at-receipt"
    "starts-over"
    "steal-from-equal"
    "steals-all"
    "steals-from-ours"
    "steals-where-led"
    "stolen-by-former-life"
    "strange-for-ever"
    "stream-missing-once"
    "stuck-claim-stays"
    "sub-unread"
    "sub-unwritten"
    "subscribed-at-tip"
    "suspension-unnoticed"
    "take-leaves-name"
    "take-unguarded"
    "take-while-stopping"
    "take-without-moment"
    "takes-before-leader"
    "takes-forgotten"
    "takes-in-drops"
    "takes-outlive-stream"
    "takes-unrecognised"
    "timeout-is-not-sent"
    "timestamp-of-the-present"
    "token-reused"
    "turn-for-ever"
    "unguarded-create"
    "unknown-child-is-created"
    "unknown-is-failure"
    "unknown-is-success"
    "unlisted-is-ended"
    "unlisted-rows-cover"
    "unnamed-child-unheeded"
    "unnamed-is-another"
    "unpaced"
    "unread-is-read"
    "vain-takes-at-once"
    "waits-for-the-given"
    "weak-ends-of-one-moment"
    "wrong-range-refused"
};

/// The contents of the files.
static ENTRIES: LazyLock<Result<Vec<Entry>, String>> =
    LazyLock::new(|| FILES.iter().map(|(id, text)| read(id, text)).collect());

/// The contents of the files, in the files' order.
///
/// # Errors
/// The first unreadable file, as a sentence.
pub(super) fn entries() -> Result<&'static [Entry], String> {
    ENTRIES.as_deref().map_err(Clone::clone)
}

fn read(id: &str, text: &str) -> Result<Entry, String> {
    let wrong = |sentence: String| format!("sim/mutants/{id}.toml: {sentence}");
    let entry: Entry = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
    if entry.properties.is_empty() {
        return Err(wrong(
            "expected the property that is meant for it in `properties`, found none".to_owned(),
        ));
    }
    let asks = |edit: &Edit| super::edit::words(&edit.replace).any(|(word, _)| word == "BUG");
    if !entry.edits.is_empty() && !entry.edits.iter().any(asks) {
        return Err(wrong(
            "expected the word `BUG`, the question whether it is on, in a `replace`, found it in none"
                .to_owned(),
        ));
    }
    Ok(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EDIT: &str =
        "about = ''\nproperties = ['every-record-delivered']\n[[edits]]\nfile = 'a.rs'\nfind = 'a'\n";

    fn refused(text: &str) -> String {
        read("a-bug", text).expect_err("an entry that says too little or too much")
    }

    #[test]
    fn an_entry_says_what_is_needed_and_no_more() {
        assert!(read("a-bug", &format!("{EDIT}replace = '!BUG && a'")).is_ok());
        for (text, expected) in [
            ("about = ''\nproperties = []\nedits = []\n", "found none"),
            ("about = ''\nproperties = ['no-such']\nedits = []\n", "no-such"),
            ("about = ''\nproperties = ['every-record-delivered']\nedits = []\ncolour = 'red'\n", "colour"),
            (&format!("{EDIT}replace = 'BUGS'"), "`BUG`"),
        ] {
            let sentence = refused(text);
            assert!(sentence.starts_with("sim/mutants/a-bug.toml: "), "{sentence}");
            assert!(sentence.contains(expected), "{sentence}");
        }
    }
}
