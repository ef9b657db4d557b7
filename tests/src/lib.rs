//! What the whole-system tests stand on: servers on loopback, started and stopped by the tests themselves.
//!
//! | module | what it offers |
//! |---|---|
//! | [`local`] | the in-memory AWS of this project, in process, with a gate that can refuse requests |
//! | [`dynoxide`] | an independent DynamoDB, in process |
//! | [`kinesis_mock`] | an independent Kinesis, a process of Node |
//! | [`python`] | a virtual environment with boto3 |
//! | [`account`] | an account on it: its clients, streams and tables |
//! | [`certificate`] | the certificate of a server, and programs that trust it |
//! | [`clients`], [`http`] | SDK clients, and JSON requests without any SDK |
//! | [`command`] | the `leasehold` command, run to its end |
//! | [`consume`] | processes of `leasehold consume` |
//! | [`interop`] | workers that others wrote |
//! | [`kcl_java`] | workers of the KCL for Java |
//! | [`member`] | workers as processes of their own, and the records that they print |
//! | [`subscriber`] | programs of SDKs for JavaScript and Go that subscribe to a shard |
//! | [`producer`] | records put all the time |
//! | [`proxy`] | a way to a server that a test can cut |
//! | [`watch`], [`history`], [`ledger`] | a fleet's output and writes over time: hand-overs, standstills, repeats |
//! | [`log`] | a worker's log, as lines |
//! | [`probe`] | a worker in this process, and its processed records |
//! | [`two_shards`] | an account with a stream of two shards, and workers |
//!
//! On machines without Node, Python or Java, tests that need them are skipped, with one line on stderr;
//! `LEASEHOLD_REQUIRE_SERVERS=1` turns a skipped test into a failed test, except for the SDKs of JavaScript and Go.

pub mod account;
pub mod cache;
pub mod certificate;
pub mod clients;
pub mod command;
pub mod consume;
pub mod dynoxide;
pub mod history;
pub mod http;
pub mod interop;
pub mod kcl_java;
pub mod kinesis_mock;
pub mod ledger;
pub mod local;
pub mod log;
pub mod member;
pub mod probe;
pub mod process;
pub mod producer;
pub mod proxy;
pub mod python;
pub mod subscriber;
pub mod two_shards;
pub mod wait;
pub mod watch;

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
#[derive(Debug)]
pub struct Readme;
