//! Fleets of the released KCL for Java and of our own workers, on one table.
//!
//! | file | what it checks |
//! |---|---|
//! | `beside.rs` | both in one fleet: joining, leaving, crashes of either, a split, a merge; KCL 2, and KCL 3 as it runs beside KCL 2 |
//! | `replace.rs` | a fleet that is moved over worker by worker, and back; a fleet on its way from KCL 2 to KCL 3, and back |
//! | `kcl3.rs` | KCL 3 as it runs by default: its leader assigns leases to ours, and ours to its workers |
//! | `kcl34.rs` | KCL 3.4, whose workers know each other from tables of their own, and its replacement by KCL 3.5 |
//! | `led.rs` | the scenes that these two share |
//! | `independent.rs` | both in one fleet on servers that others wrote: kinesis-mock and dynoxide; KCL 2, and KCL 3 as it runs by default |
//! | `several_streams.rs` | an application of several streams, read by both: KCL 2, and KCL 3 as it runs by default |
//! | `compare.rs` | the same scenes at the defaults of each, measured: a table; takes some minutes |
//! | `migrate.rs` | a fleet that goes over from the rules of KCL 2 to those of KCL 3, led by a worker of KCL or of ours, and back; takes a quarter of an hour |
//!
//! Leases last 3 s here, and scans are two of them apart, so each scene takes about a minute.

mod beside;
mod compare;
mod independent;
mod kcl3;
mod kcl34;
mod led;
mod migrate;
mod replace;
mod several_streams;
