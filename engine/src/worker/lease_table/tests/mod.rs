//! The lease table alone, by method.

mod balance;
mod lineage;
mod observe;
mod plain;
mod scan;
