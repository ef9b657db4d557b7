//! Scenes: the behaviour of fleets, step by step. All scenes are one program, as each separate program would link the
//! engine anew.
#![allow(unreachable_pub, reason = "a program of tests shows nothing to anybody")]

mod asking;
mod claims;
mod discovery;
mod doubts;
mod edits;
mod endings;
mod fleet;
mod fleet_options;
mod forgotten;
mod formats;
mod holding;
mod kcl3;
mod kcl34;
mod kcl34_looks;
mod kcl3_leader;
mod leading;
mod members;
mod migrating;
mod missed;
mod orphans;
mod positions;
mod rates;
mod reads;
mod regressions;
mod reshards;
mod rig;
mod several_streams;
mod shares;
mod stalls;
mod standstill;
mod stops;
mod table_requests;
mod takes;
mod turns;
mod two_streams;
