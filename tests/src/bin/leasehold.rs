//! The `leasehold` command, for the tests of this package.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    leasehold_cli::main()
}
