//! News of a fleet of KCL 3.x.

use super::Notice;
use crate::ids::WorkerId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How a worker comes by leases beside workers of KCL 3.x.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FleetRules {
    /// No such fleet exists.
    Own,
    /// The worker reports its metrics, and counts leases as before.
    Reporting,
    /// A leader assigns leases.
    Led,
}

impl Notice {
    /// Writes by which rules leases are had now.
    pub(super) fn fleet_sentence(
        f: &mut fmt::Formatter<'_>, rules: FleetRules, leader: Option<&WorkerId>, leads: bool, workers: u32,
        unknown: Option<&str>,
    ) -> fmt::Result {
        match rules {
            FleetRules::Own => {
                f.write_str("found no live fleet of KCL 3.x any more: leases are taken and handed over by count")?;
            }
            FleetRules::Reporting => f.write_str(
                "found a table of KCL 3.x: this worker reports its metrics there, and leases are taken and handed over by count",
            )?,
            FleetRules::Led => {
                write!(f, "found a fleet of KCL 3.x with {workers} live workers: ")?;
                match leader {
                    _ if leads => f.write_str("this worker leads, and assigns leases")?,
                    Some(leader) => write!(f, "{leader} leads, and assigns leases")?,
                    None => f.write_str("no worker leads yet")?,
                }
            }
        }
        match unknown {
            None => Ok(()),
            Some(version) => write!(
                f,
                "; its row Migration3.0 names {version:?}, expected a version from CLIENT_VERSION_2X to CLIENT_VERSION_3X: \
                 this worker takes what is assigned to it, and does not lead"
            ),
        }
    }
}
