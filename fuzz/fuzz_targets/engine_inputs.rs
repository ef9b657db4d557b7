//! Any bytes as a life of an engine: the interpreter of the engine's own tests, which also checks the contract.
//!
//! Twelve bytes are one step: the first byte chooses the action, the rest its arguments.
#![no_main]

#[path = "../../engine/tests/interpreter/mod.rs"]
mod interpreter;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    interpreter::run(bytes);
});
