//! Any text as the settings of a worker: flags, the environment and the file of `consume --config`.
//!
//! Lines before the first `---` are `flag NAME VALUE` or `env VARIABLE VALUE`; the rest is the file. A refusal names
//! the expectation. Each accepted value is the value of the first source, reads back from its own text, and the printed
//! settings are a file with the same meaning. This file reads times a second time, digit by digit.
#![no_main]

/// In the place of the command's own failure, which also ends a process.
mod exit {
    #[derive(Debug)]
    pub(crate) struct Failure(pub(crate) String);

    impl Failure {
        pub(crate) fn unusable(sentence: impl Into<String>) -> Self {
            Self(sentence.into())
        }
    }
}
#[path = "../../sim/cli/src/consume/names.rs"]
mod names;
#[path = "../../sim/cli/src/position.rs"]
mod position;
#[path = "../../sim/cli/src/consume/settings.rs"]
#[allow(dead_code, reason = "flags of other kinds are not made here")]
mod settings;

use leasehold::Config;
use libfuzzer_sys::fuzz_target;
use names::NAMES;
use settings::{Given, Settings, Source, Values, of_environment, of_file};

/// A refusal names the expectation. The command prints a refusal in one line, whatever its characters.
fn read_refusal(sentence: &str) {
    assert!(sentence.contains("expected "), "{sentence:?}");
}

/// A time in microseconds, by the manual's rule: a number with no more digits than microseconds have, and a unit.
fn micros(text: &str) -> Option<u64> {
    let units = [("us", 1_u128), ("ms", 1_000), ("min", 60_000_000), ("s", 1_000_000), ("h", 3_600_000_000)];
    let (number, unit) = units.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))?;
    let number = number.trim_end_matches(' ');
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    if [whole, part].iter().any(|digits| digits.is_empty() || digits.contains(|c: char| !c.is_ascii_digit()))
    {
        return None;
    }
    let scale = 10_u128.checked_pow(part.len() as u32)?;
    let part = part.parse::<u128>().ok()?.checked_mul(*unit)?;
    let whole = whole.parse::<u128>().ok()?.checked_mul(*unit)?;
    (part % scale == 0).then(|| u64::try_from(whole.checked_add(part / scale)?).ok())?
}

/// Whether a time has so many digits after the point that a worker may refuse the text, even for zeros.
fn too_fine(text: &str) -> bool {
    text.split_once('.').is_some_and(|(_, part)| part.bytes().take_while(u8::is_ascii_digit).count() > 9)
}

/// One option from one text: refused with its name, or equal after reading back from its own text.
fn one(name: &str, text: &str) {
    let before = Config::default();
    let is_time = before.option(name).as_deref().is_some_and(|text| micros(text).is_some());
    match before.with_option(name, text) {
        Err(refused) => {
            let sentence = refused.to_string();
            assert!(sentence.contains(name) && sentence.contains("expected "), "{sentence:?}");
            assert!(
                !is_time || too_fine(text) || micros(text).is_none(),
                "{name}: {text:?} is a time, and yet: {sentence}"
            );
        }
        Ok(config) => {
            let said = config.option(name);
            if is_time {
                assert_eq!(said.as_deref().and_then(micros), micros(text), "{name} = {text:?}");
            }
            if let Some(said) = said {
                assert_eq!(
                    config.clone().with_option(name, &said).as_ref(),
                    Ok(&config),
                    "{name} = {said:?}"
                );
            }
            if let Err(refused) = config.check() {
                read_refusal(&refused.to_string());
            }
        }
    }
}

/// The settings match the sources: flags go before the environment, and the environment before the file.
fn compare(settings: &Settings, sources: [&Values; 3]) {
    for name in NAMES.iter().map(|name| name.name()) {
        let Some(given) = sources.iter().find_map(|source| source.get(name)) else {
            continue;
        };
        let text = given.text.as_str();
        match name {
            "application" => assert_eq!(settings.config.table(), text),
            "format" => assert_eq!(settings.format.name(), text),
            "worker_id" => assert_eq!(settings.worker_id.as_deref(), Some(text)),
            "initial_position" => {
                assert_eq!(position::parse_position(text), Ok(settings.config.initial_position()));
            }
            name => {
                let alone = Config::default().with_option(name, text).expect("it was accepted before");
                assert_eq!(settings.config.option(name), alone.option(name), "{name} of {}", given.source);
            }
        }
    }
}

/// The printed settings, read as a file, are the same settings.
fn read_back(settings: &Settings) {
    let printed = settings.printed();
    let read =
        of_file("printed.toml", &printed).unwrap_or_else(|refused| panic!("{refused:?} in\n{printed}"));
    let again = Settings::resolve(Values::new(), Values::new(), read)
        .unwrap_or_else(|refused| panic!("{refused:?} in\n{printed}"));
    assert_eq!(
        (&again.config, again.format, &again.worker_id),
        (&settings.config, settings.format, &settings.worker_id),
        "{printed}"
    );
}

fuzz_target!(|text: &str| {
    let (told, file) = text.split_once("---\n").unwrap_or((text, ""));
    let mut flags = Values::new();
    let mut variables = Vec::new();
    for line in told.lines() {
        let mut words = line.splitn(3, ' ');
        let (Some(kind), Some(name), Some(text)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        if kind == "env" {
            variables.push((name.to_owned(), text.to_owned()));
        }
        if kind == "flag" {
            one(name, text);
            if let Some(known) = NAMES.iter().find(|known| known.name() == name) {
                let source = Source::Flag(known.flag());
                flags.insert(known.name(), Given { text: text.to_owned(), source });
            }
        }
    }
    let parts =
        of_environment(variables.into_iter()).and_then(|env| Ok((env, of_file("settings.toml", file)?)));
    let (environment, file) = match parts {
        Ok(parts) => parts,
        Err(refused) => return read_refusal(&refused.0),
    };
    match Settings::resolve(flags.clone(), environment.clone(), file.clone()) {
        Err(refused) => read_refusal(&refused.0),
        Ok(settings) => {
            compare(&settings, [&flags, &environment, &file]);
            read_back(&settings);
        }
    }
});
