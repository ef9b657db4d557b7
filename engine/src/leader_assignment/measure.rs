//! How busy workers are, in relation to the average of comparable workers.

use super::Member;
use crate::fleet::FleetMetric;
use std::collections::BTreeMap;

/// The weight of a new value in the smoothed value.
const ALPHA: f64 = 0.5;

/// The smoothed value of a metric: the smoothed captured values. 0 without captured values.
pub(super) fn smoothed(metric: &FleetMetric) -> f64 {
    let captured = metric.recent.iter().filter(|value| **value >= 0);
    captured.map(|value| *value as f64).reduce(|old, new| ALPHA * new + (1.0 - ALPHA) * old).unwrap_or(0.0)
}

/// The reading of one member under a measure. The reading is in the unit of the measure, and not negative.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// The number of the member.
    pub member: usize,
    pub value: f64,
    /// The highest allowed value; infinite without a limit.
    pub limit: f64,
}

/// The subject of a measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Of<'a> {
    /// A worker's leases. The measure serves workers without metrics.
    Leases,
    /// The host of a worker.
    Host(&'a str),
}

/// A measure of the members that have it.
#[derive(Clone, Debug)]
pub(super) struct Measure<'a> {
    pub of: Of<'a>,
    pub readings: Vec<Reading>,
    pub average: f64,
}

impl Measure<'_> {
    /// How much of the average a value is. At an average of 0, all values are 0.
    pub(super) fn ratio(&self, value: f64) -> f64 {
        if self.average > 0.0 { value / self.average } else { 0.0 }
    }

    /// Computes the average anew.
    pub(super) fn weigh(&mut self) {
        let sum: f64 = self.readings.iter().map(|reading| reading.value).sum();
        self.average = sum / self.readings.len().max(1) as f64;
    }
}

/// All measures, each with its average. `assigned` is the weight of each member's leases.
pub(super) fn measures<'a>(members: &[Member<'a>], assigned: &[f64]) -> Vec<Measure<'a>> {
    let mut found: BTreeMap<Of<'a>, Vec<Reading>> = BTreeMap::new();
    for (member, known) in members.iter().enumerate() {
        let mut add = |of, value, limit| {
            let readings = found.entry(of).or_default();
            if readings.last().is_none_or(|last| last.member != member) {
                readings.push(Reading { member, value, limit });
            }
        };
        if known.metrics.is_empty() {
            add(Of::Leases, assigned[member], f64::INFINITY);
        }
        for metric in known.metrics {
            add(Of::Host(&metric.name), smoothed(metric), metric.limit as f64);
        }
    }
    let measure = |(of, readings)| {
        let mut measure = Measure { of, readings, average: 0.0 };
        measure.weigh();
        measure
    };
    found.into_iter().map(measure).collect()
}
