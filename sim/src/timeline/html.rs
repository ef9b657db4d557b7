//! A timeline as one HTML file, with style, script and data inside. The page loads no other file.
//!
//! All texts come from names chosen by people and other programs. Each text is escaped for its place.

use super::picture::{Mark, MarkKind, Timeline};
use super::words;
use leasehold_engine::shown::{is_hidden, shown};
use std::fmt::Write;

const TEMPLATE: &str = include_str!("timeline.html");
const STYLE: &str = include_str!("timeline.css");
const LABELS: &str = include_str!("labels.js");
const SCRIPT: &str = include_str!("timeline.js");

/// The greatest number of rows in the table, for people unable to see the drawing.
const MOST_ROWS: usize = 400;

/// The whole page.
pub fn page(timeline: &Timeline) -> String {
    let title = escape(&timeline.title);
    let parts = [
        ("{{title}}", title.as_str()),
        ("{{style}}", STYLE),
        ("{{heading}}", title.as_str()),
        ("{{summary}}", &summary(timeline)),
        ("{{table}}", &table(timeline)),
        ("{{data}}", &data(timeline)),
        ("{{labels}}", LABELS),
        ("{{script}}", SCRIPT),
    ];
    // Each search begins after the place before. So no inserted text is taken for a place.
    let (mut page, mut rest) = (String::new(), TEMPLATE);
    for (place, text) in parts {
        if let Some((before, after)) = rest.split_once(place) {
            page.push_str(before);
            page.push_str(text);
            rest = after;
        }
    }
    page.push_str(rest);
    page
}

/// Text for the content of an element or a quoted attribute.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(c),
            // HTML does not allow control characters, in any spelling. Other hidden characters change the direction of
            // writing.
            c if is_hidden(c) => escaped.push_str(&shown(c.encode_utf8(&mut [0; 4]))),
            c => escaped.push(c),
        }
    }
    escaped
}

/// The timeline as JSON for a script element. The texts `</script>` and `<!--` would end or confuse the element. In
/// JSON, `<` occurs only in texts, and texts have another spelling for `<`.
fn data(timeline: &Timeline) -> String {
    // Only maps and numbers unknown to JSON can fail here. A timeline has neither.
    let json = serde_json::to_string(timeline).unwrap_or_else(|_| "null".to_owned());
    let mut data = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => data.push_str("\\u003c"),
            // JSON itself escapes the other control characters. Hidden characters would turn the direction of the
            // script's text.
            c if is_hidden(c) => data.push_str(&shown(c.encode_utf8(&mut [0; 4])).replace('\\', "\\\\")),
            c => data.push(c),
        }
    }
    data
}

fn summary(timeline: &Timeline) -> String {
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let mut text = format!(
        "<p class=\"verdict {}\">{}</p>\n<p class=\"sub\">{}</p>\n<p class=\"sub\">{}, {}, {} \
         over {}",
        if timeline.violations.is_empty() { "fine" } else { "bad" },
        escape(&timeline.verdict),
        escape(&timeline.subtitle),
        count(timeline.workers.len(), "worker"),
        count(timeline.shards.len(), "shard"),
        count(timeline.marks.len(), "event"),
        words::seconds(timeline.end),
    );
    if timeline.left_out > 0 {
        let _ = write!(text, "; {} more were left out, checkpoints first", timeline.left_out);
    }
    text.push_str(".</p>");
    text
}

/// The most important marks, as a table.
fn table(timeline: &Timeline) -> String {
    let weight = |mark: &Mark| match mark.kind {
        MarkKind::Violation => 0,
        MarkKind::Worker | MarkKind::Steal | MarkKind::Lost | MarkKind::Fence | MarkKind::End => 1,
        MarkKind::Take | MarkKind::Release | MarkKind::Stream => 2,
        MarkKind::Fault | MarkKind::Trouble => 3,
        MarkKind::Row | MarkKind::Processing | MarkKind::Notice => 4,
        MarkKind::Checkpoint => 5,
    };
    let mut picked: Vec<usize> = (0..timeline.marks.len()).collect();
    picked.sort_by_key(|n| weight(&timeline.marks[*n]));
    picked.truncate(MOST_ROWS);
    picked.sort_unstable();
    let mut text = String::new();
    for mark in picked.iter().map(|n| &timeline.marks[*n]) {
        let worker = mark.worker.and_then(|worker| timeline.workers.get(worker as usize));
        let shard = mark.shard.and_then(|shard| timeline.shards.get(shard as usize));
        let _ = writeln!(
            text,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            words::seconds(mark.at),
            mark.kind.name(),
            escape(worker.map_or("", |worker| &worker.name)),
            escape(shard.map_or("", |shard| &shard.name)),
            escape(&mark.text),
        );
    }
    let left = timeline.marks.len() - picked.len();
    if left > 0 {
        let _ = writeln!(
            text,
            "<tr><td colspan=\"5\">{left} further events of less weight are only in the drawing.</td></tr>"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::builder::Builder;

    /// A name that breaks out of each place without escapes.
    const HOSTILE: &str = "</script><script>document.body.dataset.owned=1</script><!--\"'&<b>{{data}}\u{0}";

    fn hostile() -> Timeline {
        let mut builder = Builder::default();
        let worker = builder.worker(HOSTILE);
        let shard = builder.shard(HOSTILE);
        builder.owner(1, shard, Some((worker, HOSTILE.to_owned())));
        builder.mark(2, MarkKind::Take, Some(worker), Some(shard), HOSTILE.to_owned());
        Timeline {
            title: HOSTILE.to_owned(),
            subtitle: HOSTILE.to_owned(),
            verdict: HOSTILE.to_owned(),
            ..builder.finish(3)
        }
    }

    #[test]
    fn a_hostile_name_stays_a_name() {
        let page = page(&hostile());
        assert_eq!(page.matches("<script>document.body").count(), 0);
        assert_eq!(page.matches("</script>").count(), TEMPLATE.matches("</script>").count());
        assert_eq!(page.matches("<b>").count(), 0);
        assert!(!page.contains('\u{0}'));
    }

    #[test]
    fn the_data_survives_its_escaping() {
        let timeline = hostile();
        let page = page(&timeline);
        let data = page
            .split_once("type=\"application/json\">")
            .and_then(|(_, rest)| rest.split_once("</script>"))
            .map(|(data, _)| data)
            .expect("the data is in the page");
        assert!(!data.contains('<'), "{data}");
        let back: serde_json::Value = serde_json::from_str(data).expect("it is JSON");
        assert_eq!(back, serde_json::to_value(&timeline).expect("a value"));
    }

    #[test]
    fn a_direction_of_writing_is_shown() {
        let page = page(&Timeline { title: "a\u{202e}b\u{9b}".to_owned(), ..Builder::default().finish(0) });
        let hidden = |c: &char| is_hidden(*c) && *c != '\n';
        assert_eq!(page.chars().find(hidden), None);
        assert!(page.contains("<title>a\\u{202e}b\\u{9b}"), "{}", &page[..400]);
        assert!(page.contains(r#""title":"a\\u{202e}b\\u{9b}""#));
    }

    #[test]
    fn every_place_of_the_template_is_filled_in() {
        let page = page(&Builder::default().finish(0));
        assert!(!page.contains("{{"), "{}", &page[page.find("{{").unwrap_or(0)..][..40]);
        for network in ["http://", "https://", "//cdn", "@import", "url("] {
            assert!(!page.contains(network), "{network}");
        }
    }

    #[test]
    fn the_table_keeps_what_matters_and_says_what_it_leaves_out() {
        let mut builder = Builder::default();
        for at in 0..1_000 {
            builder.mark(at, MarkKind::Checkpoint, None, None, format!("checkpoint {at}"));
        }
        builder.mark(1_000, MarkKind::Worker, None, None, "dies".to_owned());
        let page = page(&builder.finish(1_000));
        let table = &page[page.find("<tbody>").expect("a table")..];
        assert!(table.contains("<td>dies</td>"));
        assert!(table.contains("601 further events"));
    }
}
