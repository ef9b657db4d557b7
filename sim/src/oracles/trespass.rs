//! Writes of other programs to rows that are not, or no longer, their own.
//!
//! vmware-go-kcl checkpoints and renews by whole items, from what it remembers of the row, and asks neither for the owner nor
//! for the deadline. The owner of such a row cannot know what is in it.

use super::Fact;
use super::fact::{Owner, Verb};

/// What another program wrote to a row that names somebody else, as the edit by hand that it amounts to.
pub(super) fn as_edit(told: &Fact) -> Option<Fact> {
    let mut edit = told.clone();
    let Fact::RowChanged { by, verb, before, .. } = &mut edit else {
        return None;
    };
    let owner = before.and_then(|row| row.owner)?;
    let takes = matches!(verb, Some(Verb::Take | Verb::Claim | Verb::BeginHandOver));
    if takes || by.is_some_and(|life| owner == Owner::Life(life)) {
        return None;
    }
    *verb = None;
    Some(edit)
}

#[cfg(test)]
mod tests {
    use super::super::fact::Mark;
    use super::super::history::{changed, row};
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
    fn what_is_free_its_own_or_taken_is_not() {
        assert!(!is_edit(1, Verb::Checkpoint, Some(1)));
        assert!(!is_edit(1, Verb::Checkpoint, None));
        assert!(!is_edit(1, Verb::Take, Some(2)));
        assert!(!is_edit(1, Verb::Claim, Some(2)));
    }
}
