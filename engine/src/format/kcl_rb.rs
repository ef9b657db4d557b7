//! The lease table of kcl-rb, version 1.
//!
//! | attribute | type | what it says |
//! |---|---|---|
//! | `shard_id` | S, hash key | the lease |
//! | `assigned_to` | S or NULL | the owner |
//! | `lease_timeout` | S | until when, in whole seconds, as Ruby's `Time#to_s` in UTC |
//! | `checkpoint` | S or NULL | a sequence number or `SHARD_END` |
//!
//! What is ours begins with `leasehold_`; among it the exact deadline, since whole seconds cannot tell a lease that was
//! released and taken again from one that was not.
//!
//! Its own workers take a lease *while* it is held, fail when it has expired, and write without guards. Nothing written
//! here can keep a running one of them from reading the same shard: stop all of them first, then begin. They must not be
//! started again before all of ours have stopped, which leaves no owner in any row.

use super::deadline::Columns;
use crate::calendar::{read_ruby, spell_ruby};

/// Its attributes.
pub(super) const COLUMNS: Columns = Columns {
    key: "shard_id",
    owner: "assigned_to",
    timeout: "lease_timeout",
    checkpoint: "checkpoint",
    parent: "parent_shard_id",
    claim: "leasehold_claim",
    start: "leasehold_start",
    began: "leasehold_began",
    sub: "leasehold_sub_sequence",
    parents: "leasehold_parents",
    children: "leasehold_children",
    range_start: "leasehold_range_start",
    range_end: "leasehold_range_end",
    stream: "leasehold_stream",
    exact: Some("leasehold_deadline"),
    spell: spell_ruby,
    read: read_ruby,
    time: "a time of 1970 or later as Ruby spells it, such as 2021-05-03 06:11:41 UTC",
    says_none: false,
};
