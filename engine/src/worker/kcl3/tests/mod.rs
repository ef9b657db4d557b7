//! Being in a fleet with workers of KCL 3.x, by method.

mod beside;
mod discovery;
mod lock;
mod migration;
mod workers;
