//! The command's options.

use clap::Parser;
use leasehold_testing::harness::{Which, range};
use std::path::PathBuf;
use std::str::FromStr;

/// Runs worlds of the full-stack tier: the worker with the real AWS SDK clients on madsim.
#[derive(Clone, Debug, Parser)]
#[command(name = "cargo sim-stack")]
pub(crate) struct Args {
    /// Worlds: A..B, without B. Or one world: 17 with all faults of its plan, 17:2,5 with the faults 2 and 5 of its plan.
    #[arg(long, value_name = "WORLDS", default_value = "0..20")]
    pub seeds: Seeds,
    /// How many worlds run at the same time.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=256))]
    pub jobs: u64,
    /// Print JSON: a line for each world, and a last line for all worlds.
    #[arg(long)]
    pub json: bool,
    /// Run every world twice, and every 25th also with DEBUG logging on; all must be the same.
    #[arg(long)]
    pub twice: bool,
    /// Write the traces of all workers into this directory.
    #[arg(long, value_name = "DIR")]
    pub traces: Option<PathBuf>,
    /// Run only this world, in this process.
    #[arg(long, hide = true, value_parser = which)]
    pub world: Option<Which>,
    /// Report a failure with all that happened.
    #[arg(long, hide = true)]
    pub tell: bool,
    /// Switch DEBUG logging on, without output.
    #[arg(long, hide = true)]
    pub log: bool,
}

/// The worlds to run; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seeds(pub Vec<Which>);

fn which(text: &str) -> Result<Which, String> {
    Which::parse(text).ok_or_else(|| format!("expected numbers as in 0..300, 17 or 17:2,5, found {text:?}"))
}

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match range(text) {
            Some(range) if range.is_empty() => {
                Err(format!("expected at least one seed, found none in {text}"))
            }
            Some(range) => Ok(Self(range.map(|seed| Which { seed, faults: None }).collect())),
            None => which(text).map(|which| Self(vec![which])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_without_seeds_is_refused() {
        let worlds = |text: &str| -> Vec<String> {
            let seeds: Seeds = text.parse().expect("worlds");
            seeds.0.iter().map(ToString::to_string).collect()
        };
        assert_eq!(worlds("3..5"), ["3", "4"]);
        assert_eq!((worlds("3"), worlds("3:1,2")), (vec!["3".to_owned()], vec!["3:1,2".to_owned()]));
        for bad in ["3..3", "7..3", "a..b", "..3", "3:a", ""] {
            assert!(bad.parse::<Seeds>().is_err(), "{bad}");
        }
    }
}
