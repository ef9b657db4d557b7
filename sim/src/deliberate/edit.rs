//! Edits: the changes of a deliberate bug in a file, and the merge of several bugs' changes.
//!
//! Searches ignore white space, so line breaks do not matter. In a replacement, the word `BUG` stands for the question
//! whether the bug is on. The word `FOUND` stands for the text at the place: the file's text, or its form after an
//! inner edit or after an earlier bug's edit of the same place.

use serde::Deserialize;
use std::ops::Range;

/// One change of one file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The file, from the root of the workspace.
    pub file: String,
    /// The beginning of the item around `find`, such as `fn backoff(`. The beginning occurs once in the file. The item
    /// ends with the first closing brace at its indentation. By default, the search for `find` covers the whole file.
    pub within: Option<String>,
    /// The text to replace. The text occurs once.
    pub find: String,
    /// The replacement.
    pub replace: String,
}

/// An edit and its bug.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// The bug's name.
    pub id: &'a str,
    /// The bug's number. Of two bugs with changes at the same place, the bug with the greater number comes later.
    pub number: u16,
    /// The edit.
    pub edit: &'a Edit,
}

/// A change and its place.
#[derive(Clone, Debug)]
struct Place<'a> {
    range: Range<usize>,
    change: Change<'a>,
}

/// The text of a file with the changes of all bugs.
///
/// # Errors
/// All errors of the edits, a sentence each.
pub fn apply(text: &str, changes: &[Change<'_>]) -> Result<String, Vec<String>> {
    let mut places = Vec::new();
    let mut wrong = Vec::new();
    for change in changes {
        match locate(text, change.edit) {
            Ok(range) => places.push(Place { range, change: *change }),
            Err(sentence) => wrong.push(format!("sim/mutants/{}.toml: {sentence}", change.id)),
        }
    }
    // An outer place comes before its inner places.
    places.sort_by_key(|place| {
        let Range { start, end } = place.range;
        (start, usize::MAX - end, u16::MAX - place.change.number)
    });
    wrong.extend(collisions(&places));
    if wrong.is_empty() { Ok(assemble(text, 0..text.len(), &places)) } else { Err(wrong) }
}

/// Changes in conflict with each other.
fn collisions(places: &[Place<'_>]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (n, outer) in places.iter().enumerate() {
        let (id, edit) = (outer.change.id, outer.change.edit);
        let overlapping = places[n + 1..].iter().take_while(|place| place.range.start < outer.range.end);
        for inner in overlapping {
            let other = inner.change.id;
            if inner.range.end > outer.range.end {
                wrong.push(format!(
                    "`{id}` and `{other}`: expected places in {} that are apart, the same, or one inside the other, found two \
                     that overlap: {:?} and {:?}; make one of them longer or shorter",
                    edit.file, edit.find, inner.change.edit.find
                ));
            } else if words(&edit.replace).all(|(word, _)| word != "FOUND") {
                wrong.push(format!(
                    "`{id}` and `{other}`: expected `FOUND` in what `{id}` writes in place of {:?} in {}, since `{other}` changes \
                     that text, too, found {:?}",
                    edit.find, edit.file, edit.replace
                ));
            }
        }
    }
    wrong
}

/// A part of the text with the changes at `places`. No place reaches beyond the part.
fn assemble(text: &str, part: Range<usize>, places: &[Place<'_>]) -> String {
    let mut whole = String::new();
    let mut at = part.start;
    let mut rest = places;
    while let [outer, others @ ..] = rest {
        let inside = others.iter().take_while(|place| place.range.start < outer.range.end);
        let (inner, after) = others.split_at(inside.count());
        whole.push_str(&text[at..outer.range.start]);
        let found = assemble(text, outer.range.clone(), inner);
        whole.push_str(&replaced(&outer.change, &found));
        at = outer.range.end;
        rest = after;
    }
    whole.push_str(&text[at..part.end]);
    whole
}

/// The replacement, with `BUG` and `FOUND` filled in.
fn replaced(change: &Change<'_>, found: &str) -> String {
    let mut text = String::new();
    for (word, between) in words(&change.edit.replace) {
        match word {
            "BUG" => text.push_str(&format!("leasehold_engine::deliberate::on({})", change.number)),
            "FOUND" => text.push_str(found),
            word => text.push_str(word),
        }
        text.push_str(between);
    }
    text
}

/// A text as words, each with the text up to the next word.
pub(super) fn words(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let next = after.find(in_word).unwrap_or(after.len());
        let (between, after) = after.split_at(next);
        rest = after;
        Some((word, between))
    })
}

fn in_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The place of an edit's text.
fn locate(text: &str, edit: &Edit) -> Result<Range<usize>, String> {
    let whole = 0..text.len();
    let Some(within) = &edit.within else {
        return once(text, whole, &edit.find).map_err(|found| {
            format!("expected `find` once in {}, found it {found}: {:?}", edit.file, edit.find)
        });
    };
    let beginning = once(text, whole, within)
        .map_err(|found| format!("expected `within` once in {}, found it {found}: {within:?}", edit.file))?;
    let item = beginning.start..end_of_item(text, beginning.start);
    once(text, item, &edit.find).map_err(|found| {
        format!("expected `find` once within {within:?} of {}, found it {found}: {:?}", edit.file, edit.find)
    })
}

/// The end of the item begun there: after the first line with only a closing brace at the item's indentation.
fn end_of_item(text: &str, begin: usize) -> usize {
    let line = text[..begin].rfind('\n').map_or(0, |newline| newline + 1);
    let indentation = text[line..].len() - text[line..].trim_start_matches(' ').len();
    let close = format!("\n{}}}\n", " ".repeat(indentation));
    text[begin..].find(&close).map_or(text.len(), |at| begin + at + close.len())
}

/// The place of a text in a part of another text, if the text occurs once; else the places found, in words.
fn once(text: &str, part: Range<usize>, find: &str) -> Result<Range<usize>, String> {
    let wanted: Vec<char> = find.chars().filter(|c| !c.is_whitespace()).collect();
    if wanted.is_empty() {
        return Err("nowhere, since it is empty".to_owned());
    }
    let mut places = Vec::new();
    let mut longest = (0, part.start);
    for (start, _) in text[part.clone()].char_indices() {
        let start = part.start + start;
        let (length, end) = common(&text[start..part.end], &wanted);
        if length == wanted.len() && stands_alone(text, &(start..start + end), &wanted) {
            places.push(start..start + end);
        }
        if length > longest.0 {
            longest = (length, start + end);
        }
    }
    let line = |at: usize| text[..at].lines().count().max(1);
    match &places[..] {
        [place] => Ok(place.clone()),
        [] if longest.0 * 2 < wanted.len() => Err("nowhere".to_owned()),
        [] => Err(format!(
            "nowhere (its beginning is there up to line {}, which goes on with {:?})",
            line(longest.1),
            text[longest.1..].lines().next().unwrap_or_default().trim()
        )),
        places => {
            let lines: Vec<String> = places.iter().map(|place| line(place.start + 1).to_string()).collect();
            Err(format!("{} times, in lines {}", lines.len(), lines.join(", ")))
        }
    }
}

/// The number of characters of `wanted` at a text's beginning, and their length in the text. White space in the text
/// does not count.
fn common(text: &str, wanted: &[char]) -> (usize, usize) {
    let (mut length, mut end) = (0, 0);
    for (at, c) in text.char_indices() {
        if c.is_whitespace() && length > 0 {
            continue;
        }
        if wanted.get(length) != Some(&c) {
            break;
        }
        (length, end) = (length + 1, at + c.len_utf8());
    }
    (length, end)
}

/// Whether the place neither begins nor ends within a word.
fn stands_alone(text: &str, place: &Range<usize>, wanted: &[char]) -> bool {
    let before = text[..place.start].chars().next_back();
    let after = text[place.end..].chars().next();
    let cut = |neighbour: Option<char>, edge: Option<&char>| {
        neighbour.is_some_and(in_word) && edge.is_some_and(|c| in_word(*c))
    };
    !cut(before, wanted.first()) && !cut(after, wanted.last())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
fn take(&self) {
    let most = self.share()
        .min(8);
    if most > 0 && self.ready {
        self.go();
    }
}

fn give(&self) {
    if most > 0 {
        self.go();
    }
}
";

    fn edit(within: Option<&str>, find: &str, replace: &str) -> Edit {
        Edit {
            file: "engine/src/take.rs".to_owned(),
            within: within.map(str::to_owned),
            find: find.to_owned(),
            replace: replace.to_owned(),
        }
    }

    /// Applies edits as the edits of bugs named a, b, c.
    fn applied(edits: &[Edit]) -> Result<String, String> {
        let ids = ["a", "b", "c"];
        let changes: Vec<Change<'_>> = (0..)
            .zip(ids.iter().zip(edits))
            .map(|(number, (id, edit))| Change { id, number, edit })
            .collect();
        apply(TEXT, &changes).map_err(|wrong| wrong.join("\n"))
    }

    const ON: &str = "leasehold_engine::deliberate::on";

    #[test]
    fn an_edit_replaces_its_place_wherever_lines_are_broken() {
        let edits = [edit(None, "self.share().min(8)", "if BUG { 0 } else { FOUND }")];
        let text = applied(&edits).expect("an edit that fits");
        let begun =
            format!("let most = if {ON}(0) {{ 0 }} else {{ self.share()\n        .min(8) }};\n    if most");
        assert!(text.contains(&begun), "{text}");
        assert!(text.ends_with("fn give(&self) {\n    if most > 0 {\n        self.go();\n    }\n}\n"));
    }

    #[test]
    fn an_item_says_which_of_several_places_is_meant() {
        let edits = [edit(Some("fn give("), "most > 0", "(FOUND || BUG)")];
        let text = applied(&edits).expect("an edit that fits");
        assert_eq!(text.matches("most > 0").count(), 2);
        assert!(text.contains(&format!("fn give(&self) {{\n    if (most > 0 || {ON}(0)) {{")), "{text}");
    }

    #[test]
    fn two_bugs_hang_on_the_same_place_or_one_inside_the_other() {
        let edits = [
            edit(Some("fn take("), "most > 0", "(FOUND || BUG)"),
            edit(Some("fn take("), "most > 0", "(FOUND && !BUG)"),
            edit(None, "most > 0 && self.ready", "BUG || FOUND"),
        ];
        let expected = format!("if {ON}(2) || ((most > 0 || {ON}(0)) && !{ON}(1)) && self.ready {{");
        let text = applied(&edits).expect("edits that fit");
        assert!(text.contains(&expected), "{text}");
    }

    #[test]
    fn a_place_that_is_not_there_once_is_named() {
        for (edit, expected) in [
            (
                edit(None, "most > 0", "BUG"),
                "sim/mutants/a.toml: expected `find` once in engine/src/take.rs, found it 2 times, in lines 4, 10: \"most > 0\"",
            ),
            (
                edit(None, "self.share().min(9)", "BUG"),
                "sim/mutants/a.toml: expected `find` once in engine/src/take.rs, found it nowhere (its beginning is there up to line 3, which \
                 goes on with \"8);\"): \"self.share().min(9)\"",
            ),
            (edit(None, "steal()", "BUG"), "found it nowhere: \"steal()\""),
            (edit(None, " \n", "BUG"), "found it nowhere, since it is empty"),
            // Not the first half of a word.
            (edit(None, "self.read", "BUG"), "found it nowhere"),
            (
                edit(Some("fn lend("), "most > 0", "BUG"),
                "sim/mutants/a.toml: expected `within` once in engine/src/take.rs, found it nowhere",
            ),
            (
                edit(Some("fn give("), "self.ready", "BUG"),
                "sim/mutants/a.toml: expected `find` once within \"fn give(\" of engine/src/take.rs, found it nowhere",
            ),
        ] {
            let wrong = applied(&[edit]).expect_err("an edit that does not fit");
            assert!(wrong.contains(expected), "{wrong}\n{expected}");
        }
    }

    #[test]
    fn bugs_that_get_in_each_others_way_are_named() {
        let overlap =
            [edit(None, "most > 0 && self.ready", "(FOUND || BUG)"), edit(None, "self.ready {", "BUG {")];
        let wrong = applied(&overlap).expect_err("places that overlap");
        assert!(wrong.starts_with("`a` and `b`: expected places"), "{wrong}");
        let lost = [edit(None, "most > 0 && self.ready", "BUG"), edit(None, "self.ready", "(FOUND || BUG)")];
        let wrong = applied(&lost).expect_err("an edit that leaves another one out");
        assert!(wrong.starts_with("`a` and `b`: expected `FOUND`"), "{wrong}");
        let same = [edit(None, "self.ready", "(FOUND || BUG)"), edit(None, "self.ready", "!BUG")];
        let wrong = applied(&same).expect_err("a later bug that leaves an earlier one out");
        assert!(wrong.starts_with("`b` and `a`: expected `FOUND`"), "{wrong}");
    }
}
