//! In-memory DynamoDB.
pub mod decimal;
pub mod error;
pub mod expr;
pub mod key;
pub mod value;
