//! A flag for each option of a worker, from the engine's own table of options.

use super::names::{NAMES, Name};
use super::settings::{Given, Source, Values};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use leasehold::OptionInfo;

/// The options given as flags.
#[derive(Clone, Debug, Default)]
pub(super) struct OptionFlags(pub(super) Values);

const HEADING: &str = "Options of the worker";

fn options() -> impl Iterator<Item = (Name, &'static OptionInfo)> {
    NAMES.iter().filter_map(|name| match name {
        Name::Option(info) => Some((*name, *info)),
        Name::Special(_) => None,
    })
}

fn flag(name: Name, info: &'static OptionInfo) -> Arg {
    let about = info.about();
    let first = about.split_once(". ").map_or(about.as_str(), |(first, _)| first);
    let told = format!("{first} [default: {}]", info.default);
    let whole = format!("{about} Default: {}. Range: {}.", info.default, info.range);
    let value = if info.default.ends_with('s') && info.default.contains(' ') { "TIME" } else { "VALUE" };
    Arg::new(info.name)
        .long(name.flag().trim_start_matches('-').to_owned())
        .value_name(value)
        .help(told)
        .long_help(whole)
        .help_heading(HEADING)
}

impl Args for OptionFlags {
    fn augment_args(command: Command) -> Command {
        command.args(options().map(|(name, info)| flag(name, info)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for OptionFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for (name, info) in options() {
            if let Some(text) = matches.get_one::<String>(info.name) {
                let given = Given { text: text.clone(), source: Source::Flag(name.flag()) };
                self.0.insert(info.name, given);
            }
        }
        Ok(())
    }
}
