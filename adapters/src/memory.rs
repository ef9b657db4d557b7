//! The memory limit of this process, and the default memory budget for records. Linux only; elsewhere the engine's
//! default holds.

use leasehold_engine::config::{Config, MEMORY_BUDGET};
use std::fs;
use std::path::Path;

/// Records take no more than this part of the memory: an answer is in memory twice during a read, and the application
/// also needs memory.
const PART: u64 = 4;
/// No budget is smaller.
const LEAST: u64 = 2 << 20;

/// With the memory for records as a number, if the application says none.
pub(crate) fn with_budget(config: Config) -> Config {
    match config.memory_budget() {
        0 => config.with_memory_budget(budget(limit(Path::new("/")))),
        _ => config,
    }
}

/// The memory for records, of a process with this limit in bytes.
fn budget(limit: Option<u64>) -> u64 {
    let part = limit.map_or(MEMORY_BUDGET, |limit| limit / PART);
    part.clamp(LEAST, MEMORY_BUDGET)
}

/// The memory limit of this process: the least of the limits of its control groups and the memory of the machine.
fn limit(root: &Path) -> Option<u64> {
    let read = |path: String| fs::read_to_string(root.join(path)).ok();
    let number = |path: String| read(path)?.trim().parse::<u64>().ok();
    let mut limits = Vec::new();
    // A container sees the process's group as its root.
    let groups = read("proc/self/cgroup".into()).unwrap_or_default();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (kind, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let (folder, file) = match kind {
            "" => ("sys/fs/cgroup", "memory.max"),
            kind if kind.split(',').any(|kind| kind == "memory") => {
                ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        for group in Path::new(path).ancestors() {
            let group = group.to_string_lossy();
            let group = group.trim_matches('/');
            limits.extend(number(format!("{folder}/{group}/{file}")));
        }
    }
    let machine = read("proc/meminfo".into()).unwrap_or_default();
    let total = machine.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total.and_then(|total| total.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    limits.extend(kib.map(|kib| kib.saturating_mul(1_024)));
    limits.into_iter().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A file system with these files.
    struct Files(std::path::PathBuf);

    impl Files {
        fn of(name: &str, files: &[(&str, &str)]) -> Self {
            let root = std::env::temp_dir().join(format!("leasehold-memory-{name}-{}", std::process::id()));
            for (path, text) in files {
                let path = root.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Self(root)
        }
    }

    impl Drop for Files {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const MACHINE: (&str, &str) = ("proc/meminfo", "MemTotal:        4096000 kB\nMemFree: 1 kB\n");

    #[test]
    fn the_least_limit_counts() {
        for (name, files, expected) in [
            ("machine", vec![MACHINE], Some(4_000 * MIB)),
            ("nothing", vec![], None),
            (
                "container",
                vec![MACHINE, ("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/memory.max", "268435456\n")],
                Some(256 * MIB),
            ),
            (
                "service",
                vec![
                    MACHINE,
                    ("proc/self/cgroup", "0::/system.slice/app.service\n"),
                    ("sys/fs/cgroup/system.slice/app.service/memory.max", "max\n"),
                    ("sys/fs/cgroup/system.slice/memory.max", "104857600\n"),
                ],
                Some(100 * MIB),
            ),
            (
                "version-1",
                vec![
                    MACHINE,
                    ("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/a\n"),
                    ("sys/fs/cgroup/memory/memory.limit_in_bytes", "52428800\n"),
                ],
                Some(50 * MIB),
            ),
        ] {
            let files = Files::of(name, &files);
            assert_eq!(limit(&files.0), expected, "{name}");
        }
    }

    #[test]
    fn records_take_a_part_of_it_and_no_more_than_the_default() {
        assert_eq!(budget(None), MEMORY_BUDGET);
        assert_eq!(budget(Some(64 << 30)), MEMORY_BUDGET);
        assert_eq!(budget(Some(512 * MIB)), 128 * MIB);
        assert_eq!(budget(Some(MIB)), LEAST);
        let said = Config::default().with_memory_budget(3 * MIB);
        assert_eq!(with_budget(said.clone()), said);
        assert!(with_budget(Config::default()).memory_budget() >= LEAST);
    }
}
