//! The four required parts of a worker in a builder's type.
//!
//! A [`Builder`](crate::Builder) names its present parts in its type:
//!
//! | part | type before | setter | type after |
//! |---|---|---|---|
//! | the stream's client | [`NoKinesis`] | [`kinesis`](crate::Builder::kinesis) | [`Kinesis`] |
//! | the lease table's client | [`NoDynamoDb`] | [`dynamodb`](crate::Builder::dynamodb) | [`DynamoDb`] |
//! | the stream's name | [`NoStream`] | [`stream`](crate::Builder::stream) or `streams` | [`Stream`] |
//! | the application's name | [`NoApplication`] | [`application`](crate::Builder::application) | [`Application`] |
//!
//! [`Builder::build`](crate::Builder::build) requires all four parts: a program without one of them does not compile:
//!
//! ```text
//! error[E0277]: this worker cannot be built: expected `Kinesis`, found `NoKinesis`
//!    |
//! 14 |     .build()?;
//!    |      ^^^^^ call `.kinesis(client)`, `.dynamodb(client)`, `.stream(name)` and `.application(name)` before this
//! ```
//!
//! A function that changes a builder at any stage is generic:
//!
//! ```
//! use leasehold::{Builder, Misplaced};
//!
//! fn careful<K, D, S, A>(builder: Builder<K, D, S, A>) -> Builder<K, D, S, A> {
//!     builder.misplaced_aggregates(Misplaced::Keep)
//! }
//! ```
//!
//! A function that returns a full builder names [`CompleteBuilder`](crate::CompleteBuilder).

use super::services::{StreamSource, TableSource};
use std::fmt;

/// The builder has no Kinesis client yet: call [`kinesis`](crate::Builder::kinesis).
#[derive(Debug, Default)]
pub struct NoKinesis(());

/// The builder has no DynamoDB client yet: call [`dynamodb`](crate::Builder::dynamodb).
#[derive(Debug, Default)]
pub struct NoDynamoDb(());

/// The builder has no stream yet: call [`stream`](crate::Builder::stream).
#[derive(Debug, Default)]
pub struct NoStream(());

/// The builder has no application yet: call [`application`](crate::Builder::application).
#[derive(Debug, Default)]
pub struct NoApplication(());

/// The builder has what it reads records from.
pub struct Kinesis(pub(super) StreamSource);

/// The builder has what it keeps leases in.
pub struct DynamoDb(pub(super) TableSource);

/// The builder has the stream's name, or the streams of a worker that reads several.
#[derive(Debug)]
pub struct Stream(pub(super) Named);

/// What is to be read.
#[derive(Debug)]
pub(super) enum Named {
    One(String),
    #[cfg(feature = "aws")]
    Several(Vec<crate::aws::stream_ref::StreamRef>),
}

/// The builder has the application's name.
#[derive(Debug)]
pub struct Application(pub(super) String);

impl fmt::Debug for Kinesis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kinesis").finish_non_exhaustive()
    }
}

impl fmt::Debug for DynamoDb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamoDb").finish_non_exhaustive()
    }
}

/// A given part: [`Builder::build`](crate::Builder::build) requires all four parts to be given. Each part's type is
/// given only as itself, and no further type counts as a given part.
#[diagnostic::on_unimplemented(
    message = "this worker cannot be built: expected `{Part}`, found `{Self}`",
    label = "call `.kinesis(client)`, `.dynamodb(client)`, `.stream(name)` and `.application(name)` before this",
    note = "the four may be called in any order; their clients and names have no default"
)]
pub trait Given<Part> {
    #[doc(hidden)]
    fn given(self) -> Part;
}

impl<Part> Given<Part> for Part {
    fn given(self) -> Part {
        self
    }
}
