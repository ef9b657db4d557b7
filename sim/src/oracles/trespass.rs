//! Writes of other programs to rows of different owners.
//!
//! vmware-go-kcl checkpoints and renews by whole items, from its memory of the row, and guards by neither the owner nor
//! the deadline. The owner of such a row cannot know the row's content.

use super::Fact;
use super::fact::{Owner, Verb, owner};

/// Another program's write to a foreign row, in the form of an equal edit by hand.
pub(super) fn as_edit(told: &Fact) -> Option<Fact> {
    let mut edit = told.clone();
    let Fact::RowChanged { by, verb, before, .. } = &mut edit else {
        return None;
    };
    let owner = owner(*before)?;
    let takes = matches!(verb, Some(Verb::Take | Verb::Claim | Verb::BeginHandOver));
    if takes || by.is_some_and(|life| owner == Owner::Life(life)) {
        return None;
    }
    *verb = None;
    Some(edit)
}

/// Whether a person took a lease from its owner without the owner's knowledge: the lease is then free, or belongs to
/// the requesting worker. A worker that takes the lease at the next scan starts beside the owner. The owner's next
/// write is refused.
pub(super) fn disowns(told: &Fact) -> bool {
    match *told {
        Fact::RowChanged { verb: None, before, after: after @ Some(_), .. } => {
            owner(before).is_some() && owner(after) != owner(before)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::fact::Mark;
    use super::super::testing::{changed, row};
    use super::*;

    fn is_edit(by: u32, verb: Verb, owner: Option<u32>) -> bool {
        let [before, after] = [3, 4].map(|counter| Some(row(owner, counter, Mark::At(1))));
        let told = changed(0, Some(by), verb, before, after);
        as_edit(&told).is_some_and(|edit| matches!(edit, Fact::RowChanged { verb: None, .. }))
    }

    #[test]
    fn a_row_of_somebody_else_is_trespassed_on() {
        assert!(is_edit(1, Verb::Checkpoint, Some(2)));
        assert!(is_edit(1, Verb::Renew, Some(2)));
    }

    #[test]
    fn a_person_disowns_who_has_a_lease() {
        let edit = |verb, owners: [Option<u32>; 2]| {
            let [before, after] = owners.map(|owner| Some(row(owner, 3, Mark::At(1))));
            let mut told = changed(0, None, Verb::Release, before, after);
            if let Fact::RowChanged { verb: of, .. } = &mut told {
                *of = verb;
            }
            disowns(&told)
        };
        assert!(edit(None, [Some(1), None]) && edit(None, [Some(1), Some(2)]));
        assert!(!edit(None, [Some(1), Some(1)]) && !edit(None, [None, None]));
        assert!(!edit(Some(Verb::Release), [Some(1), None]));
    }

    #[test]
    fn a_write_to_a_free_an_own_or_a_taken_row_is_no_trespass() {
        assert!(!is_edit(1, Verb::Checkpoint, Some(1)));
        assert!(!is_edit(1, Verb::Checkpoint, None));
        assert!(!is_edit(1, Verb::Take, Some(2)));
        assert!(!is_edit(1, Verb::Claim, Some(2)));
    }
}
