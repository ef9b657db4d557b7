use super::*;
use crate::fleet::FleetTable;
use crate::format::{Format, LeaseFormat};
use crate::policy::{Assign, Finished, Policies, Steal};
use crate::stream_id::StreamId;

fn good() -> Config {
    Config::default().with_table("app").with_stream("orders")
}

#[test]
fn the_defaults_work_once_table_and_stream_are_named() {
    assert_eq!(good().check(), Ok(()));
    assert!(Config::default().check().unwrap_err().to_string().contains("option `table`"));
}

#[test]
fn a_belief_ends_before_the_patience_of_the_fastest_observer() {
    let config = good();
    let e = config.clock_rate_error_ppm as f64 / 1e6;
    let slow_holder = config.hold().0 as f64 / (1.0 - e);
    let fast_observer = config.lease_duration.0 as f64 / (1.0 + e);
    assert!(slow_holder <= fast_observer);
}

#[test]
fn by_rank_a_lease_lasts_as_long_as_a_member_may_be_silent() {
    let mut config = good();
    (config.policies.assign, config.policies.finished) = (Assign::Rank, Finished::Never);
    let error = config.check().unwrap_err().to_string();
    assert!(error.contains("`lease_duration`: expected 300.000s, five times"), "{error}");
    config.lease_duration = Span::from_secs(300);
    assert_eq!(config.check(), Ok(()));
    config.max_leases = 3;
    assert!(config.check().unwrap_err().to_string().contains("max_leases"));
    // What is the same for everybody is not in a trace.
    let text = serde_json::to_string(&good()).unwrap();
    assert!(!text.contains("members") && !text.contains(r#""assign""#), "{text}");
}

#[test]
fn a_renewal_interval_that_leaves_no_second_try_is_refused() {
    let config = good().with_renew_interval(Span::from_secs(6));
    let error = config.check().unwrap_err().to_string();
    assert!(error.contains("renew_interval") && error.contains("half of the 9.801s"), "{error}");
}

#[test]
fn several_streams_are_named_once_each_in_kcls_table_alone() {
    let ids = |names: &[&str]| -> Vec<StreamId> { names.iter().map(|name| name.parse().unwrap()).collect() };
    let several = good().with_stream("").with_streams(ids(&["1:a:2", "1:b:2"]));
    assert_eq!(several.check(), Ok(()));
    let text = several.option("streams");
    assert_eq!(text.as_deref(), Some("1:a:2,1:b:2"));
    assert_eq!(several.clone().with_option("streams", "1:a:2, 1:b:2"), Ok(several.clone()));
    let refused = |config: Config| config.check().unwrap_err().option();
    assert_eq!(refused(several.clone().with_streams(ids(&["1:a:2", "1:a:2"]))), "streams");
    assert_eq!(refused(several.clone().with_stream("orders")), "stream");
    let steals = Policies { steal: Steal::Take, ..Policies::default() };
    assert_eq!(several.clone().with_policies(steals).check(), Ok(()));
    assert_eq!(refused(several.clone().with_policies(Format::Kinsumer.policies())), "streams");
    assert_eq!(
        refused(several.clone().with_stream_cleanup_delay(Span::from_secs(29))),
        "stream_cleanup_delay"
    );
    assert_eq!(several.with_stream_cleanup_delay(Span::from_secs(30)).check(), Ok(()));
}

/// Whether a configuration is accepted with this value of the option, or with a name of this length; absent: the answer
/// depends on other options.
#[rustfmt::skip]
fn accepts(option: &str, value: u64) -> Option<bool> {
    let (config, reader, span, number) = (good(), ReaderConfig::default(), Span(value), value as u32);
    let fleet = FleetConfig::default();
    let config = match option {
        "table" => config.with_table("a".repeat(number as usize)),
        "stream" => config.with_stream("a".repeat(number as usize)),
        "lease_duration" => config.with_lease_duration(span).with_renew_interval(Span::from_millis(10))
            .with_table_timeout(Span::from_millis(10)).with_cleanup_delay(Span::ZERO),
        "clock_rate_error_ppm" => config.with_clock_rate_error_ppm(number),
        "scan_interval" => config.with_scan_interval(span).with_cleanup_delay(Span::ZERO),
        "quick_scan_interval" => config.with_quick_scan_interval(span),
        "hand_over_timeout" => config.with_hand_over_timeout(span),
        "stream_lag" => config.with_stream_lag(span),
        "stream_timeout" => config.with_stream_timeout(span),
        "checkpoint_interval" => config.with_checkpoint_interval(span),
        "audit_confidence" => config.with_audit_confidence(number),
        "bootstrap_delay" => config.with_bootstrap_delay(span),
        "max_reads" => config.with_max_reads(number),
        "max_table_requests" => config.with_max_table_requests(number),
        "max_creates" => config.with_max_creates(number),
        "shutdown_timeout" => config.with_shutdown_timeout(span),
        "flush_timeout" => config.with_flush_timeout(span),
        "stall_after" => config.with_stall_after(span),
        "handler_timeout" => config.with_handler_timeout(span),
        "give_up_after" => config.with_give_up_after(span),
        "reader.max_records" => config.with_reader(reader.with_max_records(number)),
        "reader.min_interval" => config.with_reader(reader.with_min_interval(span)),
        "reader.idle_interval" => config.with_reader(reader.with_idle_interval(span)),
        "reader.bytes_per_second" => config.with_reader(reader.with_bytes_per_second(value)),
        "reader.buffer_batches" => config.with_reader(reader.with_buffer_batches(number)),
        "scan_page_limit" => config.with_scan_page_limit(number),
        "max_leases" => config.with_max_leases(number),
        "max_steals" => config.with_max_steals(number),
        "failure_attempts" => config.with_failure_attempts(number),
        "handler_backoff" => config.with_handler_backoff(span),
        "reader.kept_bytes" => config.with_reader(reader.with_kept_bytes(value)),
        "reader.kept_batches" => config.with_reader(reader.with_kept_batches(number)),
        "reader.buffer_bytes" => config.with_reader(reader.with_buffer_bytes(value)),
        "fleet.report_interval" => config.with_fleet(fleet.with_report_interval(span)),
        "fleet.migration_wait" => config.with_fleet(fleet.with_migration_wait(span)),
        _ => return None,
    };
    Some(config.check().is_ok())
}

/// A number with its unit, such as `10 ms`, in microseconds or unscaled.
fn number(text: &str) -> Option<u64> {
    let mut words = text.split(' ');
    let number: u64 = words.next()?.parse().ok()?;
    Some(match words.next() {
        Some("ms") => number * 1_000,
        Some("s") => number * 1_000_000,
        Some("h") => number * 3_600_000_000,
        _ => number,
    })
}

/// The least and the greatest value of a range.
fn bounds(range: &str) -> Option<(u64, u64)> {
    if range == "any" {
        Some((0, u64::MAX))
    } else if let Some(least) = range.strip_prefix("at least ") {
        Some((number(least)?, u64::MAX))
    } else if let Some(most) = range.strip_prefix("at most ") {
        Some((0, number(most)?))
    } else {
        let (least, most) = range.split_once(" to ")?;
        Some((number(least)?, number(most)?))
    }
}

#[test]
fn the_ranges_that_are_told_are_those_that_are_checked() {
    let mut compared = 0;
    for option in Config::options() {
        let Some((least, most)) = bounds(option.range) else {
            continue;
        };
        let Some(least_is_accepted) = accepts(option.name, least) else {
            panic!("`{}` has the range {:?}, and no line in `accepts`", option.name, option.range)
        };
        assert!(least_is_accepted, "{}: {least}", option.name);
        if least > 0 {
            assert_eq!(accepts(option.name, least - 1), Some(false), "{}: {least} - 1", option.name);
        }
        assert_eq!(accepts(option.name, most), Some(true), "{}: {most}", option.name);
        if most < u64::MAX {
            assert_eq!(accepts(option.name, most + 1), Some(false), "{}: {most} + 1", option.name);
        }
        compared += 1;
    }
    assert_eq!(compared, 35);
}

/// A default as people write it.
fn spelled(value: &serde_json::Value, shown: &str) -> String {
    match value.as_u64() {
        Some(micros) if shown.ends_with(" ms") => format!("{} ms", micros as f64 / 1e3),
        Some(micros) if shown.ends_with(" s") => format!("{} s", micros as f64 / 1e6),
        _ => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
    }
}

#[test]
fn the_defaults_that_are_told_are_those_that_are() {
    let mut config = serde_json::to_value(Config::default()).unwrap();
    // A trace leaves the option out at its default.
    config["members"] = serde_json::to_value(MembersConfig::default()).unwrap();
    config["fleet"] = serde_json::to_value(FleetConfig::default()).unwrap();
    config["streams"] = serde_json::json!([]);
    config["stream_cleanup_delay"] = 0.into();
    config["handler_timeout"] = 0.into();
    for name in ["worker_metrics_table", "coordinator_table"] {
        config[name] = "".into();
    }
    config["reader"]["consumer"] = "".into();
    let mut names = Vec::new();
    for option in Config::options() {
        let value = option.name.split('.').fold(&config, |value, name| &value[name]);
        match option.name {
            "streams" => assert_eq!((value, option.default), (&serde_json::json!([]), "none")),
            "table" | "stream" | "worker_metrics_table" | "coordinator_table" | "reader.consumer" => {
                assert_eq!((value.as_str(), option.default), (Some(""), "none"))
            }
            "policies" => assert_eq!(value["life"], "counter"),
            _ => assert_eq!(spelled(value, option.default), option.default, "{}", option.name),
        }
        assert!(option.about().ends_with('.'), "{}: {}", option.name, option.about());
        names.push(option.name);
    }
    let fields = |value: &serde_json::Value| value.as_object().map_or(0, serde_json::Map::len);
    let groups = [&config, &config["reader"], &config["members"], &config["fleet"]];
    // The groups are fields, too.
    assert_eq!(names.len(), groups.into_iter().map(fields).sum::<usize>() - 3, "{names:?}");
}

/// Traces are kept: an older worker did not look in the index, and must not look there in a replay.
#[test]
fn a_recorded_worker_of_before_looks_in_no_index() {
    for fleet in ["", r#","fleet":{"assign_by":"number"}"#] {
        let old = format!(r#"{{"table":"app","stream":"orders"{fleet}}}"#);
        let old: Config = serde_json::from_str(&old).unwrap();
        assert_eq!(old.fleet.discovery_interval, Span::ZERO, "{fleet}");
    }
    for config in [
        Config::default(),
        Config::default().with_fleet(FleetConfig::default().with_discovery_interval(Span::ZERO)),
    ] {
        let text = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<Config>(&text).unwrap(), config, "{text}");
    }
}

#[test]
fn a_look_in_the_index_is_off_or_not_too_often() {
    let config = Config::default().with_table("app").with_stream("orders");
    for (millis, valid) in [(0, true), (99, false), (100, true), (86_400_000, true), (86_400_001, false)] {
        let fleet = FleetConfig::default().with_discovery_interval(Span::from_millis(millis));
        let checked = config.clone().with_fleet(fleet).check();
        assert_eq!(checked.is_ok(), valid, "{millis}");
    }
}

/// Traces are kept: an older worker did not look for these tables, and must not look for them in a replay.
#[test]
fn a_recorded_worker_of_before_looks_for_no_tables_of_a_fleet() {
    let old: Config = serde_json::from_str(r#"{"table":"app","stream":"orders"}"#).unwrap();
    assert!(!old.fleet_tables);
    assert!(Config::default().fleet_tables);
    assert_eq!(old.fleet_table(FleetTable::Workers), "app-WorkerMetricStats");
    let named = old.with_coordinator_table("billing-CoordinatorState");
    assert_eq!(named.fleet_table(FleetTable::Coordinator), "billing-CoordinatorState");
    let error = named.with_worker_metrics_table("a b").check().unwrap_err();
    assert!(error.to_string().contains("worker_metrics_table"), "{error}");
}

#[test]
fn the_name_of_a_worker_forges_no_line() {
    for good in ["w", "worker 7", "größe", &"w".repeat(1_024)] {
        assert_eq!(Config::check_worker_id(good), Ok(()), "{good}");
    }
    for (bad, found) in [
        ("", "found none"),
        ("a\nERROR forged", "found \"a\\nERROR forged\""),
        ("a\u{1b}[2J", "found \"a\\u{1b}[2J\""),
        ("\u{202e}a", "found \"\\u{202e}a\""),
        (&"w".repeat(1_025), "found 1025 bytes, "),
    ] {
        let error = Config::check_worker_id(bad).unwrap_err();
        assert_eq!(error.option(), "worker_id");
        let told = error.to_string();
        assert!(told.contains("1 to 1,024 bytes without control characters"), "{told}");
        assert!(told.contains(found), "{told}");
        assert!(!told.chars().any(crate::shown::is_hidden), "{told}");
    }
    for bad in ["", "ab", "a b c", "abc\n", &"t".repeat(256)] {
        assert!(Config::check_table(bad).is_err(), "{bad}");
    }
    for bad in ["", "a b", "a\u{1b}", &"s".repeat(129)] {
        assert!(Config::check_stream(bad).is_err(), "{bad}");
    }
}

#[test]
fn the_memory_is_a_default_or_fits_a_record_on_its_way() {
    let config = good();
    assert_eq!(config.memory(), MEMORY_BUDGET);
    for (bytes, valid) in [(0, true), (1, false), ((2 << 20) - 1, false), (2 << 20, true)] {
        let config = config.clone().with_memory_budget(bytes);
        assert_eq!(config.check().is_ok(), valid, "{bytes}");
    }
    assert_eq!(config.clone().with_memory_budget(3 << 20).memory(), 3 << 20);
    let error = config.with_max_reads(0).check().unwrap_err();
    assert_eq!(error.option(), "max_reads");
}
