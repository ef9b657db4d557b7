//! A format reads a new item as the row behind this item.

use leasehold_engine::format::{Format, LeaseFormat};
use leasehold_engine::ids::WorkerId;
use leasehold_engine::row::{Change, HandsOver, LeaseRow, RowRead};

/// A created row reads back as its source, as far as the format's rows can hold the content. KCL's rows hold all but
/// two parts: the amount of reading, known only to an owner, and workers with an empty name.
pub(super) fn check(format: Format, row: LeaseRow) {
    let create = |row: LeaseRow| {
        let mut fresh = None;
        format.encode(&Change::Create(Box::new(row))).carry_out(&mut fresh).expect("there is no such row");
        match fresh.map(|item| format.decode(&item)) {
            Some(RowRead::Lease(row)) => row,
            other => panic!("{format}: a creation made {other:?}"),
        }
    };
    let created = create(row.clone());
    if format == Format::Kcl {
        assert_eq!(sorted(created.clone()), sorted(without_nameless(row)));
    }
    assert_eq!(sorted(create(created.clone())), sorted(created), "{format}");
}

fn without_nameless(row: LeaseRow) -> LeaseRow {
    let is_nameless = |worker: &WorkerId| worker.as_str().is_empty();
    let hands_over = match row.actual_owner() {
        Some(owner) if is_nameless(owner) => HandsOver::No,
        _ => row.hands_over,
    };
    LeaseRow {
        throughput: None,
        owner: row.owner.filter(|owner| !is_nameless(owner)),
        handing_over: row.handing_over.filter(|owner| !is_nameless(owner)),
        hands_over,
        ..row
    }
}

/// A row with its relatives in order: in an item the relatives are a set of strings.
fn sorted(mut row: LeaseRow) -> LeaseRow {
    row.parents.sort_unstable();
    row.children.sort_unstable();
    row
}
