//! Writes as DynamoDB's expressions. Every name and value goes through a placeholder, numbered in order of appearance.

use super::{Action, AttributeValue, Condition, ItemWrite};
use std::collections::BTreeMap;

/// The expression parameters of a PutItem, UpdateItem or DeleteItem.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rendered {
    /// `ConditionExpression`.
    pub condition: String,
    /// `UpdateExpression`, for an update.
    pub update: Option<String>,
    /// `ExpressionAttributeNames`.
    pub names: BTreeMap<String, String>,
    /// `ExpressionAttributeValues`.
    pub values: BTreeMap<String, AttributeValue>,
}

/// The expressions of a write; the same write always gives the same text.
pub fn render(write: &ItemWrite) -> Rendered {
    let mut rendered = Rendered::default();
    rendered.condition = rendered.condition_text(&write.condition);
    if let Action::Update(update) = &write.action {
        let mut clauses = Vec::new();
        let set: Vec<String> = update
            .set
            .iter()
            .map(|(name, value)| format!("{} = {}", rendered.name(name), rendered.value(value)))
            .collect();
        let remove: Vec<String> = update.remove.iter().map(|name| rendered.name(name)).collect();
        let add: Vec<String> = update
            .add
            .iter()
            .map(|(name, number)| {
                format!("{} {}", rendered.name(name), rendered.value(&AttributeValue::n(number)))
            })
            .collect();
        for (keyword, parts) in [("SET", set), ("REMOVE", remove), ("ADD", add)] {
            if !parts.is_empty() {
                clauses.push(format!("{keyword} {}", parts.join(", ")));
            }
        }
        rendered.update = Some(clauses.join(" "));
    }
    rendered
}

impl Rendered {
    fn condition_text(&mut self, condition: &Condition) -> String {
        match condition {
            Condition::Exists(name) => format!("attribute_exists({})", self.name(name)),
            Condition::NotExists(name) => format!("attribute_not_exists({})", self.name(name)),
            Condition::NoString(name) => {
                let name = self.name(name);
                format!("NOT attribute_type({name}, {})", self.value(&AttributeValue::s("S")))
            }
            Condition::Equals(name, value) => format!("{} = {}", self.name(name), self.value(value)),
            Condition::All(conditions) => self.joined(conditions, " AND "),
            Condition::Any(conditions) => self.joined(conditions, " OR "),
        }
    }

    fn joined(&mut self, conditions: &[Condition], with: &str) -> String {
        let mut parts = Vec::with_capacity(conditions.len());
        for condition in conditions {
            let text = self.condition_text(condition);
            parts.push(match condition {
                Condition::All(_) | Condition::Any(_) => format!("({text})"),
                _ => text,
            });
        }
        parts.join(with)
    }

    /// The placeholder of a name; one for all its appearances, as DynamoDB demands.
    fn name(&mut self, name: &str) -> String {
        let known = self.names.iter().find(|(_, known)| *known == name);
        if let Some((placeholder, _)) = known {
            return placeholder.clone();
        }
        let placeholder = format!("#n{}", self.names.len());
        self.names.insert(placeholder.clone(), name.to_string());
        placeholder
    }

    fn value(&mut self, value: &AttributeValue) -> String {
        let placeholder = format!(":v{}", self.values.len());
        self.values.insert(placeholder.clone(), value.clone());
        placeholder
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Item, Update};
    use super::*;

    fn write(condition: Condition, action: Action) -> ItemWrite {
        ItemWrite { key: Item::new(), condition, action }
    }

    #[test]
    fn every_form_has_its_text() {
        let rendered = render(&write(
            Condition::All(vec![
                Condition::Equals("counter".into(), AttributeValue::n(4)),
                Condition::NotExists("next".into()),
                Condition::Exists("key".into()),
                Condition::NoString("next".into()),
            ]),
            Action::Update(
                Update::default()
                    .set("counter", AttributeValue::n(5))
                    .set("owner", AttributeValue::s("me"))
                    .add("switches", 1)
                    .remove("next")
                    .remove("other"),
            ),
        ));
        assert_eq!(
            rendered.condition,
            "#n0 = :v0 AND attribute_not_exists(#n1) AND attribute_exists(#n2) AND NOT attribute_type(#n1, :v1)"
        );
        assert_eq!(rendered.update.as_deref(), Some("SET #n0 = :v2, #n3 = :v3 REMOVE #n1, #n4 ADD #n5 :v4"));
        let names: Vec<_> = rendered.names.values().map(String::as_str).collect();
        assert_eq!(names, ["counter", "next", "key", "owner", "other", "switches"]);
        let values: Vec<_> = rendered.values.into_values().collect();
        let (n, s) = (AttributeValue::n, |text: &str| AttributeValue::s(text));
        assert_eq!(values, [n(4), s("S"), n(5), s("me"), n(1)]);
    }

    #[test]
    fn puts_and_deletes_have_only_a_condition() {
        for action in [Action::Delete, Action::Put(Item::new())] {
            let rendered = render(&write(Condition::NotExists("key".into()), action));
            assert_eq!(rendered.condition, "attribute_not_exists(#n0)");
            assert_eq!(rendered.update, None);
            assert!(rendered.values.is_empty());
        }
    }
}
