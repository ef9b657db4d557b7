//! The line to repeat a failed world: a command for the same package, the same file of tests and the same test.

use crate::harness::{SEED, Which};
use std::env;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The line to repeat a world with only these faults.
pub(crate) fn line(seed: u64, faults: &[usize]) -> String {
    let which = Which { seed, faults: Some(faults.to_vec()) };
    format!("{SEED}={which} {}", Test::of_this_thread().command())
}

/// The running test. Unknown parts are left out of the command; the command then runs more tests.
#[derive(Debug, Default, PartialEq, Eq)]
struct Test {
    package: Option<String>,
    /// `--lib`, or `--test` and the name of a file.
    target: Option<String>,
    name: Option<String>,
    /// Ignored tests run, too.
    ignored: bool,
}

impl Test {
    #[expect(clippy::disallowed_methods, reason = "cargo says in the environment which package it tests")]
    fn of_this_thread() -> Self {
        let thread = std::thread::current();
        // The test harness runs each test on a thread of its name, even with --test-threads=1. Other harnesses may run
        // tests on the main thread.
        let name = thread.name().filter(|name| *name != "main").map(str::to_owned);
        let package = env::var("CARGO_PKG_NAME").ok();
        let target = match (env::var_os("CARGO_MANIFEST_DIR"), env::current_exe(), &package) {
            (Some(folder), Ok(program), Some(package)) => target(&PathBuf::from(folder), &program, package),
            _ => None,
        };
        Self {
            package,
            target,
            name,
            ignored: env::args().any(|arg| arg == "--ignored" || arg == "--include-ignored"),
        }
    }

    fn command(&self) -> String {
        let mut command = "cargo test".to_owned();
        // Writing to a String cannot fail.
        if let Some(package) = &self.package {
            let _ = write!(command, " -p {package}");
        }
        if let Some(target) = &self.target {
            let _ = write!(command, " {target}");
        }
        let mut more = Vec::new();
        if let Some(name) = &self.name {
            let _ = write!(command, " {name}");
            // Without `--exact`, tests whose names contain this test's name run the same world.
            more.push("--exact");
        }
        if self.ignored {
            more.push("--include-ignored");
        }
        if !more.is_empty() {
            let _ = write!(command, " -- {}", more.join(" "));
        }
        command
    }
}

/// Cargo's selection for the tests of a program. Cargo names the program after them: `chaos-0123456789abcdef`.
fn target(folder: &Path, program: &Path, package: &str) -> Option<String> {
    let stem = program.file_stem()?.to_str()?;
    let (name, _) = stem.rsplit_once('-')?;
    let tests = folder.join("tests");
    if tests.join(format!("{name}.rs")).exists() || tests.join(name).join("main.rs").exists() {
        return Some(format!("--test {name}"));
    }
    (name == package.replace('-', "_") && folder.join("src/lib.rs").exists()).then(|| "--lib".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_is_named() {
        let name = "chaos::repeat::tests::this_test_is_named";
        let line = line(17, &[2, 5]);
        let expected =
            format!("LEASEHOLD_CHAOS_SEED=17:2,5 cargo test -p leasehold-testing --lib {name} -- --exact");
        assert!(line.starts_with(&expected), "{line}");
    }

    #[test]
    fn an_unknown_part_is_left_out() {
        assert_eq!(Test::default().command(), "cargo test");
        let test = Test { name: Some("late".to_owned()), ignored: true, ..Test::default() };
        assert_eq!(test.command(), "cargo test late -- --exact --include-ignored");
    }

    #[test]
    fn a_program_of_tests_is_told_by_its_file() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let of = |program: &str| target(folder, Path::new(program), "leasehold-testing");
        assert_eq!(of("/deps/chaos-0123").as_deref(), Some("--test chaos"));
        assert_eq!(of("/deps/leasehold_testing-0123").as_deref(), Some("--lib"));
        assert_eq!((of("/deps/another-0123"), of("/rust_out")), (None, None));
    }
}
