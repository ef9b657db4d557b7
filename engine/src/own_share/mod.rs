//! What one worker takes for itself where no leader assigns leases. Pure: a worker does so after each scan, and `leasehold plan` for the
//! rows of a file.
//!
//! 1. It counts the leases that a whole scan showed ([`Balance`]), each as [`Standing`] says of it.
//! 2. It compares its share with what it has ([`next`]): it takes what is free ([`take`]), or asks owners for what they have
//!    above their share ([`ask`]), or steals from the busiest ([`steal`]).
//!
//! Which ones of several leases these are is drawn ([`drawn`]), so that two workers seldom want the same.

mod balance;
mod choice;
#[cfg(test)]
mod tests;

use crate::ids::LeaseIx;
pub use balance::{Balance, Counting, Ours, Standing};
pub(crate) use choice::{MAX_TAKES, evens_out};
pub use choice::{
    Stealing, Taking, Way, ask, by_load, drawn, is_plainly_of, may_be_asked, next, steal, take,
};

/// What stands for the lease of this place in a list.
pub fn number(index: usize) -> LeaseIx {
    LeaseIx::from_index(index)
}
