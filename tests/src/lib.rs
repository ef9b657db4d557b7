//! Whole-system tests live in `tests/`; this crate is their home.
