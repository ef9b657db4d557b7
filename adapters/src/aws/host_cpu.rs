//! The CPU load of this host or container, as measured by KCL 3.x: of the control group if the group has a limit,
//! else of the whole machine. Linux only; elsewhere nothing is measured.

use std::collections::VecDeque;
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// KCL keeps so many values.
const KEPT: usize = 10;
/// Millionths of a percent.
const PERCENT: f64 = 1e6;

/// The mean load between two reports.
#[derive(Clone, Debug, Default)]
pub(super) struct HostCpu(Arc<Mutex<Measured>>);

#[derive(Debug, Default)]
struct Measured {
    last: Option<Reading>,
    recent: VecDeque<i64>,
}

/// What the system had counted at a moment.
#[derive(Clone, Copy, Debug)]
enum Reading {
    /// Of the control group: µs of CPU time used, how many CPUs it may use, and when.
    Group { used: f64, cpus: f64, at: Duration },
    /// Of the machine: ticks in all, and idle ticks.
    Machine { total: f64, idle: f64 },
}

impl HostCpu {
    /// The last values, the oldest first, in millionths of a percent. The newest value is the mean since the last
    /// call; -1 stands for a time without a measurement. Empty at the first call, and on systems without
    /// measurements. `at`: the time of a clock that only goes forward.
    pub(super) fn report(&self, at: Duration) -> Vec<i64> {
        let mut measured = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = read(at);
        let value = match (measured.last, now) {
            (Some(before), Some(now)) => busy(before, now),
            _ => None,
        };
        measured.last = now;
        if value.is_none() && measured.recent.is_empty() {
            return Vec::new();
        }
        let value = value.map_or(-PERCENT, |value| value * PERCENT);
        measured.recent.push_back(value.round() as i64);
        while measured.recent.len() > KEPT {
            measured.recent.pop_front();
        }
        measured.recent.iter().copied().collect()
    }
}

fn read(at: Duration) -> Option<Reading> {
    group(at).or_else(|| machine(&fs::read_to_string("/proc/stat").ok()?))
}

/// The control group (version 2), if the CPU time it may use is limited.
fn group(at: Duration) -> Option<Reading> {
    let read = |name: &str| fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok();
    let cpus = limit(&read("cpu.max")?)?;
    let used = used(&read("cpu.stat")?)?;
    Some(Reading::Group { used, cpus, at })
}

/// How many CPUs `cpu.max` allows: its quota by its period. None if there is no limit.
fn limit(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let quota: f64 = words.next()?.parse().ok()?;
    let period: f64 = words.next()?.parse().ok()?;
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

/// The CPU time of `cpu.stat`, in µs.
fn used(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
    line.trim().parse().ok()
}

/// The first line of `/proc/stat`: ticks of user, nice, system, idle and iowait, as KCL counts them.
fn machine(text: &str) -> Option<Reading> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<f64> = line.split_whitespace().take(5).map_while(|word| word.parse().ok()).collect();
    let [user, nice, system, idle, wait] = ticks.try_into().ok()?;
    Some(Reading::Machine { total: user + nice + system + idle + wait, idle })
}

/// The load from one reading to the next, in percent from 0 to 100.
fn busy(before: Reading, now: Reading) -> Option<f64> {
    let (part, whole) = match (before, now) {
        (Reading::Group { used: before, at: from, .. }, Reading::Group { used, cpus, at }) => {
            let micros = at.saturating_sub(from).as_secs_f64() * 1e6;
            (used - before, micros * cpus)
        }
        (Reading::Machine { total: before, idle: idle_before }, Reading::Machine { total, idle }) => {
            (total - before - (idle - idle_before), total - before)
        }
        _ => return None,
    };
    (whole > 0.0).then(|| (part / whole * 100.0).clamp(0.0, 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_busy_when_it_is_not_idle() {
        let before = machine("cpu  100 0 100 800 0 7 7\ncpu0 1 1 1 1 1\n").unwrap();
        let now = machine("cpu  140 10 120 920 10 9 9\n").unwrap();
        assert_eq!(busy(before, now), Some(40.0), "80 of 200 ticks");
        assert_eq!(busy(now, now), None, "no time has passed");
        assert!(machine("intr 5").is_none() && machine("cpu 1 2 3").is_none());
    }

    #[test]
    fn a_container_is_measured_by_its_limit() {
        assert_eq!(limit("50000 100000\n"), Some(0.5));
        assert_eq!(limit("max 100000\n"), None);
        assert_eq!(used("usage_usec 1500\nuser_usec 7\n"), Some(1500.0));
        let reading = |used, secs| Reading::Group { used, cpus: 2.0, at: Duration::from_secs(secs) };
        assert_eq!(busy(reading(0.0, 0), reading(5e6, 10)), Some(25.0));
        assert_eq!(busy(reading(0.0, 0), reading(1e9, 10)), Some(100.0), "bursts count as all");
    }

    #[test]
    fn the_last_ten_values_are_kept() {
        let cpu = HostCpu::default();
        assert!(cpu.report(Duration::ZERO).is_empty(), "there is no time to measure yet");
        for _ in 0..12 {
            cpu.report(Duration::ZERO);
        }
        let last = cpu.report(Duration::ZERO);
        assert!(last.len() <= KEPT);
        assert!(
            last.iter().all(|value| *value == -1_000_000 || (0..=100_000_000).contains(value)),
            "{last:?}"
        );
    }
}
