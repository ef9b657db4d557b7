//! Fleets of the released KCL for Java and of our own workers, on one table.
//!
//! | file | subject |
//! |---|---|
//! | `beside.rs` | both in one fleet: joining, leaving, crashes of either, a split, a merge; KCL 2, and KCL 3 with its setting for fleets with KCL 2 |
//! | `replace.rs` | a fleet moved over worker by worker, and back; a fleet on its way from KCL 2 to KCL 3, and back |
//! | `kcl3.rs` | KCL 3 at its defaults: its leader assigns leases to ours, and ours to its workers |
//! | `kcl34.rs` | KCL 3.4, with reports and leader in tables of their own, and its replacement by KCL 3.5 |
//! | `led.rs` | the common scenes of these two |
//! | `fan_out.rs` | KCL 3 that reads by fan-out, its default: alone, and beside ours |
//! | `independent.rs` | both in one fleet on independent servers: kinesis-mock and dynoxide; KCL 2, and KCL 3 at its defaults |
//! | `several_streams.rs` | an application of several streams, read by both: KCL 2, and KCL 3 at its defaults |
//! | `compare.rs` | the same scenes at the defaults of each, measured: a table; takes some minutes |
//! | `crashes.rs` | crashes of ours beside KCL 3, at the defaults of both, measured: tables; takes three quarters of an hour |
//! | `migrate.rs` | a fleet's way from the rules of KCL 2 to those of KCL 3, led by a worker of KCL or of ours, and back; takes a quarter of an hour |
//!
//! Leases last 3 s here, and scans are two lease durations apart: each scene takes about a minute.

mod beside;
mod compare;
mod crashes;
mod fan_out;
mod independent;
mod kcl3;
mod kcl34;
mod led;
mod migrate;
mod replace;
mod several_streams;
