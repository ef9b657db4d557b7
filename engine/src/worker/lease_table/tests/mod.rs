//! The lease table alone, by method.

mod balance;
mod beside;
mod fleet;
mod lineage;
mod observe;
mod plain;
mod scan;
