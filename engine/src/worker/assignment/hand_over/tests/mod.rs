//! Hand-overs, by their parts.

mod answers;
mod requests;
