//! Names that are of more than one type in their crate today. A line that says another number than the crate has fails the test, so
//! the list only shrinks.

/// The folder of a crate, and its names with the number of their definitions.
#[rustfmt::skip]
pub(crate) const NAMES: &[(&str, &[(&str, usize)])] = &[
    (
        "adapters",
        &[
            ("Answer", 2), ("Collected", 2), ("Counts", 2), ("Directory", 3), ("End", 2),
            ("Error", 3), ("Failure", 3), ("Group", 2), ("Inner", 3), ("Kind", 2), ("Line", 3),
            ("Named", 2), ("Notes", 2), ("Plan", 2), ("Reading", 2), ("Report", 2), ("Rig", 4),
            ("Running", 3), ("Signals", 2), ("Sink", 3), ("State", 6),
        ],
    ),
    (
        "engine",
        &[
            ("Answer", 2), ("Claim", 2), ("Fleet", 2), ("Flight", 2), ("Held", 2), ("Kind", 2),
            ("LeaseTable", 2), ("Life", 2), ("Lineage", 3), ("Loads", 2), ("Member", 2), ("Members", 2),
            ("Named", 2), ("Owner", 2), ("Phase", 2), ("Place", 3), ("Plain", 2), ("Plan", 2),
            ("Reading", 3), ("Row", 2), ("Said", 2), ("Scene", 2), ("Seen", 2), ("Sentence", 2),
            ("Shard", 3), ("Shown", 3), ("Side", 2), ("Source", 2), ("Stage", 2), ("Standing", 3),
            ("Step", 4), ("Streams", 2), ("Turn", 2), ("Unread", 2), ("Verdict", 3), ("View", 2),
            ("Way", 2), ("Worker", 2), ("World", 3),
        ],
    ),
    (
        "sim",
        &[
            ("Ask", 2), ("Asked", 2), ("Begun", 2), ("Belief", 2), ("Consumer", 2), ("Cost", 2),
            ("Delivery", 3), ("Entry", 3), ("Fleet", 3), ("Flight", 2), ("Given", 3), ("Held", 2),
            ("Identity", 2), ("Kind", 2), ("Lane", 2), ("Lease", 2), ("Life", 4), ("Mark", 2),
            ("Member", 2), ("Memory", 2), ("Moves", 2), ("Ownership", 2), ("Path", 2), ("Place", 3),
            ("Progress", 3), ("Reach", 2), ("Reading", 2), ("Request", 3), ("Row", 2),
            ("Search", 2), ("Seen", 3), ("Setting", 2), ("Settings", 2), ("Shard", 5), ("ShardNo", 2),
            ("Stage", 2), ("Stake", 2), ("Standstill", 2), ("Start", 2), ("Truth", 2), ("View", 2),
            ("Waiting", 2), ("What", 2), ("Worker", 5), ("World", 2),
        ],
    ),
    (
        "sim/cli",
        &[
            ("Consumer", 2), ("Fleet", 2), ("Life", 2), ("Lines", 2), ("Table", 2),
            ("Told", 3),
        ],
    ),
    (
        "sim/local-aws",
        &[
            ("ApiError", 2), ("Consumer", 2), ("Cursor", 2), ("Kind", 2), ("Open", 2), ("Refusal", 2),
            ("Stream", 2),
        ],
    ),
    (
        "sim/testing",
        &[
            ("Inner", 2), ("Writer", 2),
        ],
    ),
    (
        "tests",
        &[
            ("Fleet", 4), ("Member", 2), ("Running", 2), ("Scene", 2), ("Seen", 3),
            ("Tables", 2),
        ],
    ),
];
