//! Leases by rank among members, as in kinsumer's tables: which members live, whose turn a shard is, and what the first member does for
//! all.
//!
//! | file | what |
//! |---|---|
//! | `members` | saying that this member lives, looking which other members do |
//! | `tasks` | what is asked of the tables of members, one request at a time |
//! | `leader` | what the first member does for all |
//! | `ranks` | the leases whose turn it is |

mod leader;
mod members;
mod ranks;
mod tasks;
#[cfg(test)]
mod tests;

pub(super) use members::Members;
pub(super) use ranks::ask_leases;
