//! The names of all settings of a worker: as a flag, as a variable of the environment, and in a file.

use leasehold::{Config, OptionInfo};
use std::sync::LazyLock;
use strsim::levenshtein;

/// A setting's name, and the facts about its option.
#[derive(Clone, Copy, Debug)]
pub(super) enum Name {
    /// A setting beside the worker's options, or an option with another spelling in `Config::options`.
    Special(&'static str),
    Option(&'static OptionInfo),
}

/// All names, with the names of each group in a row at the end.
pub(super) static NAMES: LazyLock<Vec<Name>> = LazyLock::new(|| {
    let special =
        ["application", "stream", "initial_position", "format", "worker_id", "misplaced_aggregates"];
    let options = Config::options()
        .filter(|option| !special.contains(&option.name) && !matches!(option.name, "table" | "policies"));
    let (grouped, plain): (Vec<_>, Vec<_>) = options.partition(|option| option.name.contains('.'));
    let special = special.into_iter().map(Name::Special);
    special.chain(plain.into_iter().chain(grouped).map(Name::Option)).collect()
});

impl Name {
    /// The known name with this spelling.
    pub(super) fn of(name: &'static str) -> Self {
        NAMES.iter().find(|known| known.name() == name).copied().unwrap_or(Name::Special(name))
    }

    /// The spelling of files and of `Config::options`: `reader.max_records`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Name::Special(name) => name,
            Name::Option(info) => info.name,
        }
    }

    /// The spelling of the environment: `LEASEHOLD_READER_MAX_RECORDS`.
    pub(super) fn variable(self) -> String {
        let name = self.name().to_uppercase().replace('.', "_");
        format!("LEASEHOLD_{name}")
    }

    /// The spelling of the command line: `--reader-max-records`.
    pub(super) fn flag(self) -> String {
        match self.name() {
            "initial_position" => "--from".to_owned(),
            name => format!("--{}", name.replace(['_', '.'], "-")),
        }
    }
}

/// The name with this spelling in a file.
pub(super) fn known(name: &str) -> Result<Name, String> {
    if let Some(known) = NAMES.iter().find(|known| known.name() == name) {
        return Ok(*known);
    }
    let advice = match name {
        "table" => "write `application`, which is also the name of the lease table".to_owned(),
        "policies" => "write `format`, from which they follow".to_owned(),
        "from" => "write `initial_position`".to_owned(),
        name => match nearest(name, NAMES.iter().map(|known| known.name().to_owned())) {
            Some(meant) => format!("write `{meant}`, or leave it out"),
            None => "leave it out; `leasehold consume --help` lists the options".to_owned(),
        },
    };
    Err(format!("expected the name of an option, found `{name}`, which is none; {advice}"))
}

/// The intended name of a near misspelling.
pub(super) fn nearest(found: &str, names: impl Iterator<Item = String>) -> Option<String> {
    let near = names.map(|name| (levenshtein(found, &name), name)).min()?;
    (near.0 <= 2).then_some(near.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_three_spellings_each_of_which_is_one_name_s_alone() {
        let max = Name::of("reader.max_records");
        assert_eq!(max.flag(), "--reader-max-records");
        assert_eq!(max.variable(), "LEASEHOLD_READER_MAX_RECORDS");
        for spell in [Name::flag, Name::variable] {
            let mut all: Vec<String> = NAMES.iter().map(|name| spell(*name)).collect();
            let count = all.len();
            all.sort();
            all.dedup();
            assert_eq!(all.len(), count);
        }
    }

    #[test]
    fn names_that_are_nearly_right_are_recognised() {
        assert!(known("lease_duraton").unwrap_err().contains("write `lease_duration`"));
        assert!(known("table").unwrap_err().contains("write `application`"));
        assert!(known("sprockets").unwrap_err().contains("--help"));
        assert_eq!(known("stream").unwrap().name(), "stream");
    }
}
