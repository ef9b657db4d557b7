//! Conditions and updates as the texts of requests.

use crate::model::{Change, Condition, Expression, Operand, Path, Step, V};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// The placeholders of one request's expressions, with their names and values.
pub struct Saying {
    names: Map<String, Value>,
    values: Map<String, Value>,
    spelling: u8,
}

impl Saying {
    pub fn new(spelling: u8) -> Self {
        Self { names: Map::new(), values: Map::new(), spelling }
    }

    /// Puts the used placeholders into the request.
    pub fn finish(self, body: &mut Value) {
        if !self.names.is_empty() {
            body["ExpressionAttributeNames"] = Value::Object(self.names);
        }
        if !self.values.is_empty() {
            body["ExpressionAttributeValues"] = Value::Object(self.values);
        }
    }

    fn name(&mut self, name: &str) -> String {
        // Every second name is written without a placeholder.
        if matches!(name, "a" | "m" | "x") {
            return name.to_owned();
        }
        let short = format!("#{name}");
        self.names.insert(short.clone(), json!(name));
        short
    }

    pub fn value(&mut self, value: &V) -> String {
        let short = format!(":v{}", self.values.len());
        self.values.insert(short.clone(), value.json(self.spelling));
        short
    }

    pub fn path(&mut self, path: &Path) -> String {
        let mut text = self.name(&path.head);
        for step in &path.rest {
            let _ = match step {
                Step::Key(key) => write!(text, ".{}", self.name(key)),
                Step::Index(index) => write!(text, "[{index}]"),
            };
        }
        text
    }

    pub fn paths(&mut self, paths: &[Path]) -> String {
        let texts: Vec<String> = paths.iter().map(|path| self.path(path)).collect();
        texts.join(", ")
    }

    fn operand(&mut self, operand: &Operand) -> String {
        match operand {
            Operand::At(path) => self.path(path),
            Operand::Given(value) => self.value(value),
            Operand::Size(path) => format!("size({})", self.path(path)),
        }
    }

    pub fn condition(&mut self, condition: &Condition) -> String {
        match condition {
            Condition::Compare(operator, left, right) => {
                format!("{} {operator} {}", self.operand(left), self.operand(right))
            }
            Condition::Between(value, low, high) => {
                let value = self.operand(value);
                format!("{value} BETWEEN {} AND {}", self.operand(low), self.operand(high))
            }
            Condition::In(value, list) => {
                let value = self.operand(value);
                let list: Vec<String> = list.iter().map(|one| self.operand(one)).collect();
                format!("{value} IN ({})", list.join(", "))
            }
            Condition::Exists(path) => format!("attribute_exists({})", self.path(path)),
            Condition::NotExists(path) => format!("attribute_not_exists({})", self.path(path)),
            Condition::HasType(path, letters) => {
                let letters = self.value(&V::S((*letters).to_owned()));
                format!("attribute_type({}, {letters})", self.path(path))
            }
            Condition::BeginsWith(path, prefix) => {
                format!("begins_with({}, {})", self.path(path), self.operand(prefix))
            }
            Condition::Contains(path, part) => {
                format!("contains({}, {})", self.path(path), self.operand(part))
            }
            // `NOT` binds tighter than `AND`, and `AND` tighter than `OR`: parentheses stand only where needed.
            Condition::And(parts) => {
                self.joined(parts, " AND ", |part| matches!(part, Condition::And(_) | Condition::Or(_)))
            }
            Condition::Or(parts) => self.joined(parts, " or ", |part| matches!(part, Condition::Or(_))),
            Condition::Not(inner) => match **inner {
                Condition::And(_) | Condition::Or(_) => format!("NOT ({})", self.condition(inner)),
                _ => format!("NOT {}", self.condition(inner)),
            },
        }
    }

    fn joined(&mut self, parts: &[Condition], word: &str, in_parentheses: fn(&Condition) -> bool) -> String {
        let said = |part| {
            let text = self.condition(part);
            if in_parentheses(part) { format!("({text})") } else { text }
        };
        let texts: Vec<String> = parts.iter().map(said).collect();
        texts.join(word)
    }

    fn expression(&mut self, expression: &Expression) -> String {
        match expression {
            Expression::Given(value) => self.value(value),
            Expression::At(path) => self.path(path),
            Expression::IfNotExists(path, other) => {
                let path = self.path(path);
                format!("if_not_exists({path}, {})", self.expression(other))
            }
            Expression::Append(left, right) => {
                let left = self.expression(left);
                format!("list_append({left}, {})", self.expression(right))
            }
            Expression::Plus(left, right) => {
                format!("{} + {}", self.expression(left), self.expression(right))
            }
            Expression::Minus(left, right) => {
                format!("{} - {}", self.expression(left), self.expression(right))
            }
        }
    }

    /// An update; `None` of no changes.
    pub fn update(&mut self, changes: &[Change]) -> Option<String> {
        let mut sections: [Vec<String>; 4] = Default::default();
        for change in changes {
            match change {
                Change::Set(path, expression) => {
                    let path = self.path(path);
                    sections[0].push(format!("{path} = {}", self.expression(expression)));
                }
                Change::Remove(path) => sections[1].push(self.path(path)),
                Change::Add(name, value) => {
                    sections[2].push(format!("{} {}", self.name(name), self.value(value)))
                }
                Change::Delete(name, value) => {
                    sections[3].push(format!("{} {}", self.name(name), self.value(value)))
                }
            }
        }
        let words = ["SET", "REMOVE", "ADD", "delete"].into_iter().zip(sections);
        let texts: Vec<String> = words
            .filter(|(_, section)| !section.is_empty())
            .map(|(word, section)| format!("{word} {}", section.join(", ")))
            .collect();
        (!texts.is_empty()).then(|| texts.join(" "))
    }
}
