//! Rules of folders that are cut into rooms: a room names no other room, shows methods only, and leaves the router's methods to the
//! router's files.

use crate::imports::imports;
use crate::rules::Finding;
use crate::source::{Source, lines_with};
use std::collections::BTreeMap;

/// A folder that is cut into rooms.
struct House {
    folder: &'static str,
    /// The module that the folder is.
    module: &'static str,
    /// The struct that has all rooms.
    router: &'static str,
    /// The files in which its methods stand.
    router_files: &'static [&'static str],
    /// The crate's sources: no other file in this folder may add methods to the router.
    sources: &'static str,
    /// Each room, and the further rooms allowed in its files.
    rooms: &'static [(&'static str, &'static [&'static str])],
    /// Files outside of all rooms, and the rooms allowed in these files.
    others: &'static [(&'static str, &'static [&'static str])],
    /// Files of plain data.
    open: &'static [&'static str],
}

const HOUSES: &[House] = &[
    // `lease_table` is not a room: all rooms stand on the table, as on the context. The table has notes of held leases;
    // therefore the common base of all rooms' tests takes leases by the room of leases.
    House {
        folder: "engine/src/worker/",
        module: "worker",
        router: "impl Worker",
        router_files: &["mod.rs", "calls.rs"],
        sources: "engine/src/",
        rooms: &[
            ("assignment", &["kcl3", "ranked"]),
            ("kcl3", &[]),
            ("leadership", &[]),
            ("lease", &[]),
            ("ranked", &[]),
            ("row_writes", &[]),
            ("shard_sync", &[]),
            ("startup", &[]),
            ("stream_watch", &[]),
            ("streams", &["shard_sync", "stream_watch"]),
        ],
        others: &[("lease_table", &["kcl3"]), ("testing", &["lease"])],
        open: &[],
    },
    // The parts of a simulated world stand on each other, in one direction.
    House {
        folder: "sim/src/world/",
        module: "world",
        router: "impl World",
        router_files: &["mod.rs", "perform.rs"],
        sources: "sim/src/world/",
        rooms: &[
            ("services", &[]),
            ("chances", &[]),
            ("script", &[]),
            ("fleet", &["services", "chances"]),
            ("net", &["services", "chances", "fleet"]),
            ("judge", &["services", "chances", "fleet"]),
        ],
        others: &[],
        open: &["found.rs", "request.rs"],
    },
];

impl House {
    /// The house of a file, and the file's path within the house.
    fn of(source: &Source) -> Option<(&'static Self, &str)> {
        let mut houses = HOUSES.iter();
        houses.find_map(|house| Some((house, source.path.strip_prefix(house.folder)?)))
    }

    /// The rooms allowed in a file or a folder, besides its own.
    fn may_name(&self, own: &str) -> &'static [&'static str] {
        let mut all = self.rooms.iter().chain(self.others);
        all.find(|(room, _)| *room == own).map_or(&[], |(_, known)| known)
    }
}

/// Finds methods of a router outside its file.
pub(crate) fn router(source: &Source) -> Vec<Finding> {
    let each = HOUSES.iter().flat_map(|house| {
        let path = source.path.strip_prefix(house.sources);
        let home = source.path.strip_prefix(house.folder);
        let home = home.is_some_and(|path| house.router_files.contains(&path));
        let lines = source.code_lines_with(house.router);
        let wrong = path.is_some() && !home;
        let finding = |line| Finding {
            line,
            subject: house.router.to_owned(),
            found: format!("found `{}`", house.router),
        };
        lines.filter(move |_| wrong).map(finding)
    });
    each.collect()
}

/// Finds code of a room, or of the base below the rooms, that names another room.
pub(crate) fn rooms(source: &Source) -> Vec<Finding> {
    let Some((house, path)) = House::of(source) else {
        return Vec::new();
    };
    let own = path.split('/').next().unwrap_or_default().trim_end_matches(".rs");
    // The router knows all rooms.
    if house.router_files.contains(&path) {
        return Vec::new();
    }
    let known = house.may_name(own);
    let rooms = house.rooms.iter().map(|(room, _)| *room);
    let others = rooms.filter(|room| *room != own && !known.contains(room));
    let imported = imports(source);
    others
        .flat_map(|room| {
            let names = [format!("{}::{room}::", house.module), format!("super::{room}::")];
            let mut found = BTreeMap::new();
            for name in names {
                found.extend(source.code_lines_with(&name).map(|line| (line, name.clone())));
                // A group hides the path, and an import of the room itself ends with its name.
                let hidden = imported
                    .iter()
                    .filter(|(_, path)| lines_with(&format!("{path}::"), &name).next().is_some());
                found.extend(hidden.map(|(line, _)| (*line, name.clone())));
            }
            found.into_iter().map(|(line, name)| Finding {
                line,
                subject: room.to_owned(),
                found: format!("found `{name}`"),
            })
        })
        .collect()
}

/// Finds a field of a room visible from outside its folder.
pub(crate) fn private_fields(source: &Source) -> Vec<Finding> {
    let Some((house, path)) = House::of(source) else {
        return Vec::new();
    };
    if house.open.contains(&path) {
        return Vec::new();
    }
    // In a file beside the others, `super` is the router.
    let inside = path.contains('/') && !path.ends_with("/mod.rs");
    let shown = match inside {
        true => format!("pub(in crate::{}) ", house.module),
        false => "pub(super) ".to_owned(),
    };
    let outside = [shown.as_str(), "pub(crate) ", "pub "];
    let field = |line: &str| {
        let line = line.trim_start();
        let name = outside.iter().find_map(|start| line.strip_prefix(start));
        name.and_then(|name| name.split_once(": "))
            .is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
    };
    let lines = source.text.lines().zip(1..).filter(|(line, _)| field(line));
    lines
        .map(|(line, number)| Finding {
            line: number,
            subject: line.trim().trim_end_matches(',').to_owned(),
            found: format!("found `{}`", line.trim()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::rules::tests::{found_by, one};

    #[test]
    fn a_room_names_no_other_room() {
        let text = "use crate::worker::lease::HeldLease;\nuse crate::worker::lease_table::Lease;\n";
        assert_eq!(found_by("rooms", "engine/src/worker/startup.rs", text), one(1, "lease"));
        assert_eq!(found_by("rooms", "engine/src/worker/lease/lane.rs", text), []);
        assert_eq!(found_by("rooms", "engine/src/worker/lease_table/mod.rs", text), one(1, "lease"));
        let text = "use super::startup::Startup;\n";
        assert_eq!(found_by("rooms", "engine/src/worker/mod.rs", text), []);
        assert_eq!(found_by("rooms", "engine/src/worker/leadership.rs", text), one(1, "startup"));
        let text = "use crate::worker::{\n    lease::{HeldLease, Lane},\n    lease_table::Lease,\n};\nuse super::{startup};\n";
        let path = "engine/src/worker/leadership.rs";
        assert_eq!(found_by("rooms", path, text), [(2, "lease".to_owned()), (5, "startup".to_owned())]);
    }

    #[test]
    fn a_part_of_a_world_names_only_what_it_stands_on() {
        let text = "use crate::world::fleet::Fleet;\nuse crate::world::context::Context;\n";
        assert_eq!(found_by("rooms", "sim/src/world/net/send.rs", text), []);
        for path in ["services/truth.rs", "chances.rs", "script.rs", "context.rs"] {
            let path = format!("sim/src/world/{path}");
            assert_eq!(found_by("rooms", &path, text), one(1, "fleet"), "{path}");
        }
        let text = "use super::judge::Judge;\n";
        assert_eq!(found_by("rooms", "sim/src/world/mod.rs", text), []);
        assert_eq!(found_by("rooms", "sim/src/world/fleet/mod.rs", text), one(1, "judge"));
    }

    #[test]
    fn a_room_hides_its_fields() {
        let rule = "private-fields";
        let text = "    pub(super) now: Mono,\n    pub(super) fn a(&self) {}\n    b: u32,\n";
        assert_eq!(found_by(rule, "engine/src/worker/startup.rs", text).len(), 1);
        assert_eq!(found_by(rule, "engine/src/worker/shard_sync/mod.rs", text).len(), 1);
        assert_eq!(found_by(rule, "engine/src/worker/lease/lane.rs", text), []);
        let text = "    pub(in crate::worker) now: Mono,\n";
        assert_eq!(found_by(rule, "engine/src/worker/lease/lane.rs", text).len(), 1);
        let text = "    pub(in crate::world) now: Time,\n    pub(super) at: Time,\n";
        assert_eq!(found_by(rule, "sim/src/world/fleet/worker.rs", text).len(), 1);
        assert_eq!(found_by(rule, "sim/src/world/context.rs", text).len(), 1);
        assert_eq!(found_by(rule, "sim/src/world/found.rs", "    pub now: Time,\n"), []);
    }

    #[test]
    fn only_the_files_of_a_router_add_methods_to_it() {
        let text = "impl Worker {\n}\n";
        assert_eq!(found_by("router", "engine/src/worker/mod.rs", text), []);
        assert_eq!(found_by("router", "engine/src/worker/calls.rs", text), []);
        assert_eq!(found_by("router", "engine/src/worker/context.rs", text).len(), 1);
        assert_eq!(found_by("router", "engine/src/worker/lease/mod.rs", text).len(), 1);
        let text = "impl World {\n}\n";
        assert_eq!(found_by("router", "sim/src/world/mod.rs", text), []);
        assert_eq!(found_by("router", "sim/src/world/judge/mod.rs", text).len(), 1);
        assert_eq!(found_by("router", "sim/src/exhaust/step.rs", text), []);
    }
}
