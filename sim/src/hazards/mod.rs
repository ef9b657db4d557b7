//! Known hazards of other libraries. A scenario shows each hazard, and our behaviour in the same scenario.
//!
//! A scenario of `sim/hazards/` names the programs of its workers, the property violated, and the reason in a sentence.
//! The scenario runs twice: first unchanged, then with our workers in the same world, under the same faults, on a table
//! of the same format.

mod catalogue;

pub use catalogue::HAZARDS;

use crate::oracles::Property;
use crate::peers::{Fleet, Program};
use crate::run::{Options, run_plan};
use crate::scenario::Scenario;
use crate::swarm::Plan;
use serde::Serialize;

/// One hazard.
#[derive(Clone, Copy, Debug)]
pub struct Hazard {
    /// The hazard's name, also the name of its file.
    pub id: &'static str,
    /// The scenario.
    pub text: &'static str,
    /// The report by the library's users, if any.
    pub reported: &'static str,
    /// Leasehold's behaviour in the scenario, in a sentence.
    pub ours: &'static str,
}

/// The result of a hazard.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    /// The hazard's name.
    pub id: &'static str,
    /// The program with the hazard.
    pub program: &'static str,
    /// The hazard, in a sentence.
    pub hazard: String,
    /// The report by users, if any.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub reported: &'static str,
    /// The property violated by the program.
    pub property: Property,
    /// Leasehold's behaviour in the scenario, in a sentence.
    pub leasehold: &'static str,
    /// The finding with the program, in a sentence.
    pub found: String,
    /// The difference from the expected result, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrong: Option<String>,
}

impl Hazard {
    /// Reads the scenario.
    ///
    /// # Errors
    /// If the text is no scenario, names no property, or has our program as its first worker; as a sentence.
    pub fn scenario(&self) -> Result<(Scenario, Property, Program), String> {
        let scenario: Scenario = self.text.parse().map_err(|error| format!("{}: {error}", self.id))?;
        let program = scenario.plan.fleet.program(0);
        match scenario.violates {
            Some(property) if program != Program::Leasehold => Ok((scenario, property, program)),
            _ => Err(format!(
                "{}: expected `violates` and `fleet.programs`, found no property or none of another's programs",
                self.id
            )),
        }
    }

    /// Runs both worlds.
    ///
    /// # Errors
    /// If [`scenario`](Self::scenario) fails, as a sentence.
    pub fn show(&self) -> Result<Shown, String> {
        let (scenario, property, program) = self.scenario()?;
        let (found, shows) = with_original(&scenario, property);
        Ok(Shown {
            id: self.id,
            program: program.name(),
            hazard: scenario.about.clone(),
            reported: self.reported,
            property,
            leasehold: self.ours,
            found,
            wrong: shows.and(with_ours(&scenario)).err(),
        })
    }
}

/// The program's behaviour: the finding, and whether the finding is as expected.
fn with_original(scenario: &Scenario, property: Property) -> (String, Result<(), String>) {
    let options = Options { stop: true, only: vec![property], ..Options::default() };
    let found = match run_plan(scenario.plan.clone(), &options) {
        Ok(found) => found,
        Err(panic) => return (String::new(), Err(format!("the world ended in a panic: {panic}"))),
    };
    let violation = found.violations.iter().find(|violation| violation.property == property);
    let sentence = violation.map_or_else(String::new, |violation| violation.summary.clone());
    let judged = scenario.judge(&found, false);
    (sentence, judged.map_err(|difference| format!("with the program: {difference}")))
}

/// Our behaviour, free of violations.
fn with_ours(scenario: &Scenario) -> Result<(), String> {
    let ours = Scenario { violates: None, plan: of_ours(&scenario.plan), ..scenario.clone() };
    let found = run_plan(ours.plan.clone(), &Options::default())
        .map_err(|panic| format!("with Leasehold: the world ended in a panic: {panic}"))?;
    ours.judge(&found, false).map_err(|difference| format!("with Leasehold: {difference}"))
}

/// The same world with our workers in place of the other program's workers.
pub fn of_ours(plan: &Plan) -> Plan {
    Plan { fleet: Fleet { programs: Vec::new(), ..plan.fleet.clone() }, ..plan.clone() }
}

/// The catalogue as a table in Markdown.
pub fn table<'a>(shown: impl IntoIterator<Item = &'a Shown>) -> String {
    let mut text = "| hazard | what happens | violates | Leasehold |\n|---|---|---|---|".to_owned();
    for Shown { id, hazard, reported, property, leasehold, .. } in shown {
        let reported = if reported.is_empty() { String::new() } else { format!(" ({reported})") };
        text.push_str(&format!("\n| `{id}` | {hazard}{reported} | `{property}` | {leasehold} |"));
    }
    text
}
