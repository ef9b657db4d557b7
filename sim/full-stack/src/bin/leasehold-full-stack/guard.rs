//! A build without `--cfg madsim` has no worlds: the command refuses, instead of reporting no fault in zero worlds.

/// Whether worlds can run; the error has the reason and the advice.
pub(crate) fn check() -> Result<(), String> {
    if cfg!(madsim) {
        return Ok(());
    }
    let variables = ["CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS"].map(|name| (name, std::env::var(name).ok()));
    Err(sentence(&variables))
}

fn sentence(variables: &[(&str, Option<String>)]) -> String {
    let replaced = variables.iter().find_map(|(name, value)| {
        let value = value.as_deref()?.replace('\x1f', " ");
        (!value.contains("madsim")).then(|| {
            format!(
                "{name} is set in the environment ({value:?}) and replaces the flags of the alias; unset it for this command, or \
                 add `--cfg madsim` to it"
            )
        })
    });
    let advice = replaced.unwrap_or_else(|| {
        "start it as `cargo sim-stack` from within the repository, where .cargo/config.toml sets the flag (rustflags of a \
         target in another configuration file replace it, too)"
            .to_owned()
    });
    format!("expected cfg(madsim) in this build, found a build without it, so no world can run: {advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_in_the_environment_are_named_as_the_cause() {
        let told = sentence(&[("RUSTFLAGS", Some("-D warnings".to_owned()))]);
        assert!(told.contains(r#"RUSTFLAGS is set in the environment ("-D warnings")"#), "{told}");
        let told = sentence(&[("CARGO_ENCODED_RUSTFLAGS", Some("-D\x1fwarnings".to_owned()))]);
        assert!(
            told.contains(r#"CARGO_ENCODED_RUSTFLAGS is set in the environment ("-D warnings")"#),
            "{told}"
        );
        let told = sentence(&[("RUSTFLAGS", None)]);
        assert!(told.contains("start it as `cargo sim-stack`"), "{told}");
    }
}
