//! Known hazards of other libraries, each with a scenario that shows it, and what ours makes of the same scenario.
//!
//! A scenario of `sim/hazards/` says which programs its workers run, which property they violate and in a sentence why. It
//! is run twice: as it is, and with our workers in the same world, under the same faults, on a table of the same format.

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
    /// Its name, which is also its file's.
    pub id: &'static str,
    /// The scenario.
    pub text: &'static str,
    /// Where the library's users reported it, if they did.
    pub reported: &'static str,
    /// What Leasehold does there, in a sentence.
    pub ours: &'static str,
}

/// What became of an hazard.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    /// Its name.
    pub id: &'static str,
    /// The program that has it.
    pub program: &'static str,
    /// The hazard, in a sentence.
    pub hazard: String,
    /// Where it was reported, if anywhere.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub reported: &'static str,
    /// The property that the program violates.
    pub property: Property,
    /// What Leasehold does there, in a sentence.
    pub leasehold: &'static str,
    /// What was found with the program, in a sentence.
    pub found: String,
    /// What is not as it should be, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrong: Option<String>,
}

impl Hazard {
    /// Reads the scenario.
    ///
    /// # Errors
    /// If it is none, names no property, or its first worker is ours, as a sentence.
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
    /// If the hazard is none, as a sentence.
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

/// What the program does: what was found, and whether it is what it should be.
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

/// What ours does, which must be nothing wrong.
fn with_ours(scenario: &Scenario) -> Result<(), String> {
    let ours = Scenario { violates: None, plan: of_ours(&scenario.plan), ..scenario.clone() };
    let found = run_plan(ours.plan.clone(), &Options::default())
        .map_err(|panic| format!("with Leasehold: the world ended in a panic: {panic}"))?;
    ours.judge(&found, false).map_err(|difference| format!("with Leasehold: {difference}"))
}

/// The same world with our workers in the place of others'.
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
