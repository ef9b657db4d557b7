//! A small recording as a Mermaid sequence diagram: requests, their receivers, their results, and the faults.

use super::words;
use crate::oracles::fact::{Ask, How, Owner};
use crate::oracles::{Fact, LifeNo, Time, Violation};
use crate::recording::{Event, Recording};
use leasehold_engine::shown::is_hidden;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fmt::Write;

/// A diagram with more messages than this is unreadable.
pub const MOST_MESSAGES: usize = 200;

/// The recording is too long for a diagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany {
    /// The number of messages.
    pub messages: usize,
}

impl fmt::Display for TooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "expected at most {MOST_MESSAGES} messages for a sequence diagram, found {}; shrink the case first, or look at \
             its timeline",
            self.messages
        )
    }
}

impl std::error::Error for TooMany {}

/// The diagram.
///
/// Successful reads of the stream are left out: reads are many, and change nothing.
///
/// # Errors
/// If there are more than [`MOST_MESSAGES`] messages.
pub fn diagram(recording: &Recording, violations: &[Violation]) -> Result<String, TooMany> {
    let mut diagram = Diagram::new(recording);
    let mut violations = violations.iter().peekable();
    for (at, event) in recording.iter() {
        while let Some(violation) = violations.next_if(|violation| violation.at < at) {
            diagram.violation(violation);
        }
        diagram.add(at, event);
    }
    violations.for_each(|violation| diagram.violation(violation));
    if diagram.messages > MOST_MESSAGES {
        return Err(TooMany { messages: diagram.messages });
    }
    Ok(diagram.finish())
}

/// Text of a message or note. Mermaid ends both at a line break, a `;` or a `#`, reads HTML in both, and treats the
/// word `end` as its own.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let text = text.replace(is_hidden, " ");
    for (n, word) in text.split(' ').enumerate() {
        if n > 0 {
            escaped.push(' ');
        }
        if word.eq_ignore_ascii_case("end") {
            let (first, rest) = word.split_at(1);
            let _ = write!(escaped, "{first}#{};{}", rest.as_bytes()[0], &rest[1..]);
            continue;
        }
        for c in word.chars() {
            match c {
                '#' | ';' | '<' | '>' | '"' | '&' | '%' | '{' | '}' | ':' | '\\' => {
                    let _ = write!(escaped, "#{};", c as u32);
                }
                c => escaped.push(c),
            }
        }
    }
    escaped
}

struct Diagram {
    lines: Vec<String>,
    messages: usize,
    workers: BTreeSet<u32>,
    of_life: BTreeMap<LifeNo, u32>,
    /// Requests left out as successful reads.
    quiet: BTreeSet<(LifeNo, u64)>,
}

impl Diagram {
    fn new(recording: &Recording) -> Self {
        let mut quiet = BTreeSet::new();
        let mut struck = BTreeSet::new();
        for (_, event) in recording.iter() {
            match event {
                Event::Fact(Fact::Answered { life, ask, op, how: How::Applied, .. }) if is_read(*ask) => {
                    quiet.insert((*life, *op));
                }
                Event::Fault(fault) => struck.extend(fault.request.map(|(life, op, _)| (life, op))),
                _ => {}
            }
        }
        Self {
            lines: Vec::new(),
            messages: 0,
            workers: BTreeSet::new(),
            of_life: BTreeMap::new(),
            quiet: quiet.difference(&struck).copied().collect(),
        }
    }

    fn finish(self) -> String {
        let mut text = "sequenceDiagram\n".to_owned();
        for worker in &self.workers {
            let _ = writeln!(text, "    participant w{worker}");
        }
        text.push_str("    participant table as lease table\n    participant stream\n");
        for line in &self.lines {
            let _ = writeln!(text, "    {line}");
        }
        text
    }

    fn note(&mut self, over: &str, at: Time, text: &str) {
        let text = escape(&format!("{} {text}", words::seconds(at)));
        self.lines.push(format!("Note over {over}: {text}"));
    }

    fn message(&mut self, from: &str, arrow: &str, to: &str, text: &str) {
        self.messages += 1;
        self.lines.push(format!("{from}{arrow}{to}: {}", escape(text)));
    }

    fn who(&self, life: LifeNo) -> String {
        format!("w{}", self.of_life.get(&life).copied().unwrap_or(0))
    }

    fn violation(&mut self, violation: &Violation) {
        let over = match self.workers.first() {
            Some(first) => format!("w{first},stream"),
            None => "table,stream".to_owned(),
        };
        let text = format!("VIOLATION of {}, {}", violation.property, violation.summary);
        self.note(&over, violation.at, &text);
    }

    fn add(&mut self, at: Time, event: &Event) {
        match event {
            Event::Fact(fact) => self.fact(at, fact),
            Event::Told { .. } => {}
            Event::Fault(fault) => {
                let name = fault.name.replace('-', " ");
                match (fault.request, fault.worker) {
                    (Some((life, op, _)), _) => {
                        self.note(&self.who(life), at, &format!("fault, request {op} {name}"))
                    }
                    (None, Some(worker)) => self.note(&format!("w{worker}"), at, &format!("fault, {name}")),
                    (None, None) => self.note("table,stream", at, &format!("fault, {name}")),
                }
            }
        }
    }

    fn fact(&mut self, at: Time, fact: &Fact) {
        match fact {
            Fact::Booted { life, worker } => {
                self.of_life.insert(*life, *worker);
                self.workers.insert(*worker);
                self.note(&format!("w{worker}"), at, &format!("begins life {life}"));
            }
            Fact::Died { life } => self.note(&self.who(*life), at, "dies"),
            Fact::ShutdownAsked { life } => self.note(&self.who(*life), at, "is told to stop"),
            Fact::Stopped { life, .. } => self.note(&self.who(*life), at, "has stopped"),
            Fact::Resumed { life, stood } => {
                let text = format!("goes on after {}", words::seconds(*stood));
                self.note(&self.who(*life), at, &text);
            }
            Fact::Asked { life, ask, about, op, guard, .. } if !self.quiet.contains(&(*life, *op)) => {
                let (what, service) = name(*ask);
                let shard = about.map(|shard| format!(" shard-{shard}")).unwrap_or_default();
                let guard = guard.map(|guard| format!(" if counter {guard}")).unwrap_or_default();
                self.message(&self.who(*life), "->>", service, &format!("{op} {what}{shard}{guard}"));
            }
            Fact::Answered { life, ask, op, how, .. } if !self.quiet.contains(&(*life, *op)) => {
                let arrow = match how {
                    How::Applied | How::Refused => "-->>",
                    How::NotSent | How::Unknown => "--x",
                };
                let (_, service) = name(*ask);
                self.message(service, arrow, &self.who(*life), &format!("{op} {}", how.said()));
            }
            Fact::RowChanged { shard, after, .. } => {
                let text = match after {
                    Some(row) => {
                        let owner = match row.owner {
                            Some(Owner::Life(life)) => format!("{}, life {life}", self.who(life)),
                            Some(Owner::Stranger) => "a stranger".to_owned(),
                            None => "nobody".to_owned(),
                        };
                        let progress = words::progress(row.checkpoint);
                        format!("shard-{shard} of {owner}, counter {}, {progress}", row.counter)
                    }
                    None => format!("shard-{shard} has no row"),
                };
                self.note("table", at, &text);
            }
            Fact::OpenBegun { life, shard, .. } => {
                self.note(&self.who(*life), at, &format!("processes shard-{shard}"));
            }
            Fact::Closed { life, shard, reason, .. } => {
                self.note(&self.who(*life), at, &format!("is done with shard-{shard} ({reason:?})"));
            }
            Fact::ShardClosed { shard, children, .. } => {
                let children: Vec<String> = children.iter().map(|child| format!("shard-{child}")).collect();
                self.note("stream", at, &format!("shard-{shard} becomes {}", children.join(" and ")));
            }
            _ => {}
        }
    }
}

fn is_read(ask: Ask) -> bool {
    matches!(ask, Ask::GetRecords | Ask::GetIterator)
}

/// The request's name, and the service asked.
fn name(ask: Ask) -> (&'static str, &'static str) {
    match ask {
        Ask::Setup => ("describe or create", "table"),
        Ask::OwnerIndex => ("describe the index of owners", "table"),
        Ask::DescribeStream(_) => ("describe", "stream"),
        Ask::ScanPage => ("scan", "table"),
        Ask::Read => ("read", "table"),
        Ask::Write(verb) => (words::verb(verb), "table"),
        Ask::ListShards => ("list shards", "stream"),
        Ask::ListMore => ("list more shards", "stream"),
        Ask::GetIterator => ("get iterator", "stream"),
        Ask::Subscribe => ("subscribe", "stream"),
        Ask::NextEvent => ("await event", "stream"),
        Ask::Consumer(_) => ("find consumer", "stream"),
        Ask::GetRecords => ("get records", "stream"),
        Ask::Members => ("ask about members", "table"),
        Ask::Owned => ("query the index", "table"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracles::Property;
    use crate::oracles::fact::Verb;
    use leasehold_engine::time::Mono;

    fn asked(op: u64, ask: Ask) -> Fact {
        let (life, about, guard, leaves, local) = (0, Some(3), Some(4), None, Mono(0));
        Fact::Asked { life, ask, about, op, guard, leaves, local }
    }

    fn answered(op: u64, ask: Ask, how: How) -> Fact {
        let (life, about) = (0, Some(3));
        Fact::Answered { life, ask, about, op, how }
    }

    #[test]
    fn a_lost_answer_is_seen_from_both_sides() {
        let mut recording = Recording::default();
        let renew = Ask::Write(Verb::Renew);
        recording.fact(0, Fact::Booted { life: 0, worker: 1 });
        recording.fact(1_000_000, asked(7, renew));
        recording.fault(1_000_000, "answer-lost", Some(1), Some((0, 7, Some(3))));
        recording.fact(2_000_000, asked(8, Ask::GetRecords));
        recording.fact(2_500_000, answered(8, Ask::GetRecords, How::Applied));
        recording.fact(3_000_000, answered(7, renew, How::Unknown));
        let violation = Violation {
            property: Property::OwnWritesRecognised,
            at: 3_500_000,
            summary: "it was; #lost".to_owned(),
            of_others: false,
        };
        assert_eq!(
            diagram(&recording, &[violation]).expect("few messages"),
            "sequenceDiagram\n    participant w1\n    participant table as lease table\n    participant stream\n    \
             Note over w1: 0.000 s begins life 0\n    \
             w1->>table: 7 renew shard-3 if counter 4\n    \
             Note over w1: 1.000 s fault, request 7 answer lost\n    \
             table--xw1: 7 outcome unknown\n    \
             Note over w1,stream: 3.500 s VIOLATION of own-writes-recognised, it was#59; #35;lost\n"
        );
    }

    #[test]
    fn nothing_in_a_text_is_taken_for_syntax() {
        let hostile = "a; b\nend of %% <script> {x} #35; \"q\" w1->>table: x END";
        let escaped = escape(hostile);
        assert!(!escaped.contains(['\n', '<', '>', '"', '{', '}', '%', ':']));
        assert!(!escaped.split(' ').any(|word| word.eq_ignore_ascii_case("end")));
        // Each # and each ; belongs to the code of a character.
        let mut rest = escaped.as_str();
        while let Some(at) = rest.find(['#', ';']) {
            let code = rest[at..].strip_prefix('#').expect("a code begins with #");
            let end = code.find(';').expect("and ends with ;");
            assert!(code[..end].bytes().all(|b| b.is_ascii_digit()) && end > 0, "{escaped}");
            rest = &code[end + 1..];
        }
    }

    #[test]
    fn too_many_messages_are_refused_with_their_number() {
        let mut recording = Recording::default();
        for op in 0..=MOST_MESSAGES as u64 {
            recording.fact(op, asked(op, Ask::ScanPage));
        }
        let refused = diagram(&recording, &[]).expect_err("one too many");
        assert_eq!(refused.messages, 201);
        assert!(refused.to_string().contains("expected at most 200 messages"));
    }
}
