//! What `--until-caught-up` waits for, in lines of the log at growing pauses.

use std::time::Duration;

/// The first line comes after this time. Each further line comes after twice the time, a minute at most.
const PATIENCE: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(60);

/// A line names no more hindrances.
const NAMED: usize = 3;

/// What keeps the command from its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hindrance {
    /// Records are read, and more are left. The command ends by itself.
    Records(String),
    /// Anything else. A person may be needed.
    Other(String),
}

/// Tells hindrances.
#[derive(Debug)]
pub(super) struct Teller {
    due: Duration,
    pause: Duration,
}

impl Default for Teller {
    fn default() -> Self {
        Self { due: PATIENCE, pause: PATIENCE }
    }
}

impl Teller {
    /// A line, if one is due: whether the line is a warning, and the line. `at`: the time since the command began.
    pub(super) fn line(&mut self, at: Duration, hindrances: &[Hindrance]) -> Option<(bool, String)> {
        if at < self.due || hindrances.is_empty() {
            return None;
        }
        self.pause = (self.pause * 2).min(LONGEST);
        self.due = at + self.pause;
        let other = |hindrance: &&Hindrance| matches!(hindrance, Hindrance::Other(_));
        let warns = hindrances.iter().any(|hindrance| other(&hindrance));
        // Records that are left are no news beside other hindrances.
        let told: Vec<&str> = hindrances
            .iter()
            .filter(|hindrance| !warns || other(hindrance))
            .map(|(Hindrance::Records(text) | Hindrance::Other(text))| text.as_str())
            .collect();
        let more = match told.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let named = told.iter().take(NAMED).copied().collect::<Vec<_>>().join("; ");
        Some((warns, format!("--until-caught-up has waited for {} s so far: {named}{more}", at.as_secs())))
    }

    /// Logs a line, if one is due.
    pub(super) fn tell(&mut self, at: Duration, hindrances: &[Hindrance]) {
        match self.line(at, hindrances) {
            Some((true, line)) => tracing::warn!(target: "leasehold", kind = "not-caught-up", "{line}"),
            Some((false, line)) => tracing::info!(target: "leasehold", kind = "not-caught-up", "{line}"),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_within_seconds_and_then_ever_more_seldom() {
        let mut teller = Teller::default();
        let hindrance = [Hindrance::Other("the row of a cannot be read".to_owned())];
        let told = (0..200).filter(|at| teller.line(Duration::from_secs(*at), &hindrance).is_some());
        assert_eq!(told.collect::<Vec<_>>(), [5, 15, 35, 75, 135, 195]);
        assert_eq!(teller.line(Duration::from_secs(900), &[]), None);
    }

    #[test]
    fn a_line_names_few_hindrances_and_records_only_without_them() {
        let records = |n: u32| Hindrance::Records(format!("r{n}"));
        let line = |hindrances: &[Hindrance]| Teller::default().line(PATIENCE, hindrances);
        let said = "--until-caught-up has waited for 5 s so far";
        let all: Vec<Hindrance> = (0..5).map(records).collect();
        assert_eq!(line(&all), Some((false, format!("{said}: r0; r1; r2; and 2 more"))));
        let other = [records(0), Hindrance::Other("o".to_owned())];
        assert_eq!(line(&other), Some((true, format!("{said}: o"))));
    }
}
