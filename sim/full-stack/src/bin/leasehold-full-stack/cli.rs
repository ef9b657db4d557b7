//! The command's options.

use clap::Parser;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

/// Runs worlds of the full-stack tier: the worker with the real AWS SDK clients on madsim.
#[derive(Clone, Debug, Parser)]
#[command(name = "cargo sim-stack")]
pub(crate) struct Args {
    /// Which worlds: A..B, without B.
    #[arg(long, value_name = "A..B", default_value = "0..20")]
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
    #[arg(long, hide = true)]
    pub world: Option<u64>,
    /// Switch DEBUG logging on, without output.
    #[arg(long, hide = true)]
    pub log: bool,
}

/// A range of seeds with at least one seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seeds(pub Range<u64>);

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let range = text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
        match range {
            Some(range) if !range.is_empty() => Ok(Self(range)),
            Some(_) => Err(format!("expected at least one seed, found none in {text}")),
            None => Err(format!("expected two numbers as in 0..300, found {text:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_without_seeds_is_refused() {
        assert_eq!("3..7".parse(), Ok(Seeds(3..7)));
        for bad in ["3..3", "7..3", "3", "a..b", "..3", ""] {
            assert!(bad.parse::<Seeds>().is_err(), "{bad}");
        }
    }
}
