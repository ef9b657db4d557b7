//! Leases by rank among members, as in kinsumer's tables: live members, turns of shards, and the first member's work
//! for all.
//!
//! | file | what |
//! |---|---|
//! | `members` | registering that this member lives, looking for other live members |
//! | `tasks` | requests to the tables of members, one at a time |
//! | `leader` | the first member's work for all |
//! | `ranks` | the leases whose turn it is |

mod leader;
mod members;
mod ranks;
mod tasks;
#[cfg(test)]
mod tests;

pub(super) use members::Members;
pub(super) use ranks::ask_leases;
