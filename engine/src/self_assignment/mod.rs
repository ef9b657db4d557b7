//! The leases that one worker takes for itself where no leader assigns leases. Pure: a worker chooses so after each
//! scan, and `leasehold plan` chooses for the rows of a file.
//!
//! 1. The worker counts the leases of a whole scan ([`Balance`]), each with its [`Standing`].
//! 2. The worker compares the share with the number of leases held ([`next`]): the worker takes free leases ([`take`]),
//!    or requests leases from owners above their share ([`request`]), or steals from the busiest owner ([`steal`]).
//!
//! A draw chooses among several leases ([`drawn`]), so two workers seldom want the same lease.

mod balance;
mod choice;
#[cfg(test)]
mod tests;

use crate::ids::LeaseIx;
pub use balance::{Balance, Counting, Ours, Standing};
pub(crate) use choice::{MAX_TAKES, evens_out};
pub use choice::{
    Stealing, Taking, Way, by_load, drawn, is_plainly_of, may_be_requested, next, request, steal, take,
};

/// The index of the lease at this place in a list.
pub fn number(index: usize) -> LeaseIx {
    LeaseIx::from_index(index)
}
