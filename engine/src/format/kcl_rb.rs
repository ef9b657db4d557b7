//! The lease table of kcl-rb, version 1.
//!
//! | attribute | type | what it says |
//! |---|---|---|
//! | `shard_id` | S, hash key | the lease |
//! | `assigned_to` | S or NULL | the owner |
//! | `lease_timeout` | S | until when, in whole seconds, as Ruby's `Time#to_s` in UTC |
//! | `checkpoint` | S or NULL | a sequence number or `SHARD_END` |
//!
//! Attributes of ours begin with `leasehold_`. The exact deadline is among them: whole seconds cannot tell a lease
//! released and taken again from an untouched lease.
//!
//! Workers of kcl-rb take a lease *while* another worker holds it, fail when the lease has expired, and write without
//! guards. No write of ours can keep a running kcl-rb worker from reading the same shard: stop all kcl-rb workers
//! first, then begin. Do not start them again before all workers of ours have stopped; the last stop leaves no owner in
//! any row.

use super::deadline::Columns;
use crate::calendar::{read_ruby, spell_ruby};

/// The table's attributes.
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
