//! Today's exceptions from the rules, each with its reason. An unneeded line fails the test.

use crate::rules::{Finding, Rule};
use crate::source::Source;

/// A place that may break a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exception {
    /// The rule's name.
    pub rule: &'static str,
    /// The file.
    pub path: &'static str,
    /// What it is about, as the finding says.
    pub subject: &'static str,
    /// The reason for the exception.
    pub reason: &'static str,
}

const TABLE: &str = "one arm for each variant: a table, which says less when it is cut";
const CASES: &str = "a list of cases, of which each is a line or two";
const STORY: &str = "one story, step by step, read from its beginning to its end";
const MOVED: &str = "not cut yet: it goes when its crate is put in order";

const SERVICE: &str = "one service: a file for each operation, and each operation is a method";

const fn allow(
    rule: &'static str, path: &'static str, subject: &'static str, reason: &'static str,
) -> Exception {
    Exception { rule, path, subject, reason }
}

/// All exceptions.
#[rustfmt::skip]
pub const EXCEPTIONS: &[Exception] = &[
    allow("function-length", "engine/src/format/deadline/tests.rs", "changes_in_words", CASES),
    allow("function-length", "engine/src/format/kcl/tests/writes.rs", "every_change_in_words", CASES),
    allow("function-length", "sim/cli/src/explain/wording.rs", "notice", TABLE),
    allow("function-length", "sim/local-aws/src/dynamo/json/fuzz_tests.rs", "good_bodies", CASES),
    allow("function-length", "sim/src/oracles/delivery.rs", "observe", TABLE),
    allow("function-length", "sim/src/oracles/isolation.rs", "observe", TABLE),
    allow("function-length", "sim/src/oracles/lifecycle.rs", "observe", TABLE),
    allow("function-length", "sim/src/oracles/lineage.rs", "observe", TABLE),
    allow("function-length", "sim/src/oracles/memory.rs", "observe", TABLE),
    allow("function-length", "sim/src/oracles/resolution.rs", "observe", TABLE),
    allow("function-length", "sim/src/oracles/takeover.rs", "observe", TABLE),
    allow("function-length", "sim/src/oracles/waiting.rs", "observe", TABLE),
    allow("function-length", "sim/src/scenario/limits.rs", "check", CASES),
    allow("function-length", "tests/tests/differential/requests.rs", "requests", CASES),
    allow("function-length", "tests/tests/independent.rs", "two_workers_survive_a_split_a_merge_and_a_kill", STORY),
    allow("type-size", "engine/src/reader/machine.rs", "Reader", MOVED),
    allow("type-size", "engine/src/worker/context.rs", "Context", MOVED),
    allow("type-size", "engine/src/worker/lease/tests/mod.rs", "Owner", MOVED),
    allow("type-size", "engine/src/worker/shard_sync/mod.rs", "ShardSync", MOVED),
    allow("type-size", "sim/local-aws/src/dynamo/mod.rs", "Dynamo", SERVICE),
    allow("type-size", "sim/local-aws/src/dynamo/table.rs", "Table", SERVICE),
    allow("type-size", "sim/local-aws/src/kinesis/mod.rs", "Kinesis", SERVICE),
    allow("type-size", "sim/local-aws/src/kinesis/stream.rs", "Stream", SERVICE),
    allow("type-size", "sim/src/peers/kcl/mod.rs", "Worker", MOVED),
    allow("type-size", "sim/src/world/fleet/mod.rs", "Fleet", MOVED),
    allow("type-size", "sim/src/world/services/mod.rs", "Services", MOVED),
    allow("type-size", "sim/src/world/services/table.rs", "LeaseTable", MOVED),
];

/// Asks every rule about every file. Gives the findings without an exception, one line each, and then the exceptions
/// without a finding.
pub fn apply(sources: &[Source], rules: &[Rule], exceptions: &[Exception]) -> Vec<String> {
    let mut needed = vec![false; exceptions.len()];
    let mut lines = Vec::new();
    for rule in rules {
        for (source, finding) in rule.find(sources) {
            match excuse(rule, source, &finding, exceptions) {
                Some(n) => needed[n] = true,
                None => lines.push(format!(
                    "{}:{}: {} ({}: {})",
                    source.path, finding.line, finding.found, rule.name, rule.advice
                )),
            }
        }
    }
    let idle = exceptions.iter().zip(needed).filter(|(_, needed)| !needed);
    lines.extend(idle.map(|(exception, _)| {
        let Exception { rule, path, subject, .. } = exception;
        format!("{path}: the exception from {rule} for {subject:?} is needed no more: remove its line")
    }));
    lines
}

fn excuse(rule: &Rule, source: &Source, finding: &Finding, exceptions: &[Exception]) -> Option<usize> {
    exceptions.iter().position(|exception| {
        exception.rule == rule.name && exception.path == source.path && exception.subject == finding.subject
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::RULES;

    const KNOWN: Exception = Exception { rule: "unsafe", path: "a.rs", subject: "unsafe", reason: "a test" };

    #[test]
    fn a_finding_fails_unless_an_exception_names_it() {
        let sources = [Source::new("a.rs", "unsafe {}\n")];
        let lines = apply(&sources, RULES, &[]);
        assert_eq!(lines, ["a.rs:1: found `unsafe` (unsafe: nothing in this project is worth it)"]);
        assert_eq!(apply(&sources, RULES, &[KNOWN]), [""; 0]);
    }

    #[test]
    fn an_exception_that_nothing_needs_fails() {
        let sources = [Source::new("a.rs", "safe();\n")];
        assert_eq!(
            apply(&sources, RULES, &[KNOWN]),
            ["a.rs: the exception from unsafe for \"unsafe\" is needed no more: remove its line"]
        );
    }
}
