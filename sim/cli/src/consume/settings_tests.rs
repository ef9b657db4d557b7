//! Flags, environment and file together.

use super::*;

fn flags(given: &[(&'static str, &str)]) -> Values {
    let each = given.iter().map(|(name, text)| {
        let source = Source::Flag(Name::of(name).flag());
        let text = (*text).to_owned();
        (*name, Given { text, source })
    });
    each.collect()
}

fn environment(given: &[(&str, &str)]) -> Result<Values, Failure> {
    of_environment(given.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())))
}

const BASE: [(&str, &str); 2] = [("application", "billing"), ("stream", "orders")];

fn resolved(
    more: &[(&'static str, &str)], variables: &[(&str, &str)], file: &str,
) -> Result<Settings, Failure> {
    let given = flags(&[&BASE[..], more].concat());
    Settings::resolve(given, environment(variables)?, of_file("w.toml", file)?)
}

fn refused(more: &[(&'static str, &str)], variables: &[(&str, &str)], file: &str) -> String {
    let failure = resolved(more, variables, file).expect_err("a refusal");
    assert_eq!(failure, Failure::unusable(failure.to_string()));
    failure.to_string()
}

#[test]
fn a_flag_precedes_the_environment_the_file_and_the_default() {
    let file = "lease_duration = \"30 s\"\nmax_leases = 3\nmax_steals = 7\n[reader]\nmax_records = 500\n";
    let variables = [
        ("LEASEHOLD_LEASE_DURATION", "40 s"),
        ("LEASEHOLD_MAX_LEASES", "4"),
        ("LEASEHOLD_READER_IDLE_INTERVAL", "2 s"),
        ("PATH", "/bin"),
        ("LEASEHOLD_OF_SOMEBODY_ELSE", "x"),
    ];
    let settings = resolved(&[("lease_duration", "50 s")], &variables, file).unwrap();
    let config = &settings.config;
    assert_eq!(config.lease_duration(), Span::from_secs(50));
    assert_eq!((config.max_leases(), config.max_steals()), (4, 7));
    assert_eq!(config.reader().max_records(), 500);
    assert_eq!(config.reader().idle_interval(), Span::from_secs(2));
    assert_eq!((config.table(), config.stream()), ("billing", "orders"));
    let printed = settings.printed();
    for (value, source) in [
        ("lease_duration = \"50 s\"", "--lease-duration"),
        ("max_leases = 4", "environment: LEASEHOLD_MAX_LEASES"),
        ("max_records = 500", "file: w.toml"),
        ("renew_interval = \"3.3 s\"", "default"),
        ("stream = \"orders\"", "--stream"),
    ] {
        let told =
            printed.lines().any(|line| line.starts_with(value) && line.ends_with(&format!("# {source}")));
        assert!(told, "{value} of {source} in\n{printed}");
    }
}

#[test]
fn the_fate_of_other_shards_records_is_told_in_each_way() {
    let plain = resolved(&[], &[], "").unwrap();
    assert_eq!(plain.misplaced, Misplaced::Drop);
    let file = "misplaced_aggregates = \"drop-whole\"";
    let variable = [("LEASEHOLD_MISPLACED_AGGREGATES", "keep")];
    let flag = [("misplaced_aggregates", "drop")];
    assert_eq!(resolved(&[], &[], file).unwrap().misplaced, Misplaced::DropWhole);
    assert_eq!(resolved(&[], &variable, file).unwrap().misplaced, Misplaced::Keep);
    let all = resolved(&flag, &variable, file).unwrap();
    assert_eq!(all.misplaced, Misplaced::Drop);
    let line = "misplaced_aggregates = \"drop\"";
    let printed = all.printed();
    let told = |told: &str| told.starts_with(line) && told.ends_with("# --misplaced-aggregates");
    assert!(printed.lines().any(told), "{printed}");
    let sink = refused(&[("misplaced_aggregates", "dead-letter")], &[], "");
    assert!(sink.contains("no dead-letter sink, found \"dead-letter\" (--misplaced-aggregates)"), "{sink}");
}

#[test]
fn the_printed_options_are_a_file_that_says_the_same() {
    for format in ["kcl", "kinsumer"] {
        let more = [
            ("max_leases", "0"),
            ("worker_id", "7"),
            ("coordinator_table", "007"),
            ("initial_position", "2025-01-31T12:00:00Z"),
        ];
        let one = resolved(&[&more[..], &[("format", format)]].concat(), &[], "").unwrap();
        let printed = one.printed();
        let other = Settings::resolve(Values::new(), Values::new(), of_file("p", &printed).unwrap()).unwrap();
        assert_eq!(other.config, one.config, "{printed}");
        assert_eq!((other.format, &other.worker_id), (one.format, &one.worker_id));
    }
}

#[test]
fn where_there_are_members_the_rest_follows_from_their_checks() {
    let kinsumer = ("format", "kinsumer");
    let settings = resolved(&[kinsumer, ("members.check_interval", "2 s")], &[], "").unwrap();
    let config = &settings.config;
    assert_eq!(config.lease_duration(), Span::from_secs(10));
    assert_eq!(config.renew_interval(), Span::from_secs(2));
    assert_eq!(config.scan_interval(), Span::from_secs(2));
    assert_eq!(config.members().lead_interval(), Span::from_secs(2));
    let refused = refused(&[("members.check_interval", "2 s")], &[], "");
    assert!(refused.contains("with format kinsumer only, found kcl"), "{refused}");
}

#[test]
fn an_unusable_option_is_one_sentence_with_its_origin() {
    let none = &[][..];
    for (sentence, parts) in [
        (refused(&[("lease_duration", "20")], none, ""), ["a time with its unit", "(--lease-duration)"]),
        (refused(none, &[("LEASEHOLD_MAX_LEASES", "many")], ""), ["a whole number", "LEASEHOLD_MAX_LEASES"]),
        (
            refused(none, &[("LEASEHOLD_MAX_LEASE", "1")], ""),
            ["found LEASEHOLD_MAX_LEASE;", "write LEASEHOLD_MAX_LEASES"],
        ),
        (refused(none, none, "lease_duraton = \"1 s\""), ["w.toml", "write `lease_duration`"]),
        (refused(none, none, "max_leases = 1.5"), ["w.toml", "found float"]),
        (refused(none, none, "[reader]\nmax_records = 0"), ["1 to 10000", "file: w.toml"]),
        (refused(none, none, "max_leases ="), ["w.toml", "expected TOML"]),
        (refused(none, none, "reader = 3"), ["w.toml", "`reader`"]),
        (refused(&[("format", "klc")], none, ""), ["`format`", "kcl-rb"]),
        (
            refused(none, none, "misplaced_aggregates = \"dorp\""),
            ["drop, drop-whole or keep", "file: w.toml"],
        ),
        (refused(&[("initial_position", "soon")], none, ""), ["trim-horizon", "found \"soon\""]),
        (refused(&[("renew_interval", "6 s")], none, ""), ["half of the 9.801s", "(--renew-interval)"]),
        (refused(&[("application", "a")], none, ""), ["option `application`", "3 to 255"]),
    ] {
        for part in parts {
            assert!(sentence.contains(part), "{part:?} in {sentence}");
        }
        assert!(!sentence.contains('\n'), "{sentence}");
    }
    let missing = Settings::resolve(flags(&BASE[..1]), Values::new(), Values::new()).expect_err("no stream");
    assert!(missing.to_string().contains("give --stream, set LEASEHOLD_STREAM"), "{missing}");
}
