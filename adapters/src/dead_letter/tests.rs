use super::*;
use bytes::Bytes;
use leasehold_engine::ids::FencingToken;
use leasehold_engine::position::{Checkpoint, Position, SequenceNumber};

fn letter(data: &'static [u8]) -> Letter {
    let shard: leasehold_engine::ids::ShardId = "shardId-0".into();
    Letter {
        record: Record {
            shard: shard.clone(),
            position: Position::of(SequenceNumber::from(7)),
            partition_key: "customer \"7\"".into(),
            explicit_hash_key: None,
            data: Bytes::from_static(data),
            arrival: None,
            aggregated: false,
        },
        shard: Arc::new(ShardInfo {
            lease: shard.to_lease(),
            shard,
            token: FencingToken(1),
            from: Checkpoint::TrimHorizon,
            since: None,
        }),
        attempts: 3,
        error: "no such customer\nat all".into(),
    }
}

#[tokio::test]
async fn a_file_has_a_line_for_every_record_and_is_appended_to() {
    let folder = std::env::temp_dir().join(format!("leasehold-letters-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("dead.jsonl");
    // The remnant of a process killed during a write.
    std::fs::write(&path, "{\"half").unwrap();
    for data in [b"foo", b"bar"] {
        let file = DeadLetterFile::open(&path).unwrap();
        DeadLetter::store(&file, letter(data)).await.unwrap();
        DeadLetter::store(&file, letter(data)).await.unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5, "{text}");
    let entry: serde_json::Value = serde_json::from_str(lines[4]).unwrap();
    assert_eq!(entry["data"], "YmFy");
    assert_eq!(entry["sequence_number"], "7");
    assert_eq!(entry["partition_key"], "customer \"7\"");
    assert_eq!(entry["error"], "no such customer\nat all");
    assert_eq!(entry["attempts"], 3);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn a_channel_gives_the_record_away_or_says_that_nobody_receives() {
    let (sink, mut letters) = dead_letter_channel(0);
    DeadLetter::store(&sink, letter(b"foo")).await.unwrap();
    assert_eq!(letters.recv().await.unwrap().attempts, 3);
    drop(letters);
    let error = DeadLetter::store(&sink, letter(b"foo")).await.unwrap_err();
    assert!(error.to_string().contains("it was dropped"), "{error}");
}

#[test]
fn a_policy_is_two_options() {
    let of = |policy: FailurePolicy| {
        let config = policy.apply(Config::default());
        (config.failure_attempts(), config.failure_action())
    };
    assert_eq!(of(FailurePolicy::default()), (0, FailureAction::Stop));
    assert_eq!(of(FailurePolicy::stop(2)), (2, FailureAction::Stop));
    assert_eq!(of(FailurePolicy::set_aside(3)), (3, FailureAction::SetAside));
}

#[test]
fn a_policy_that_cannot_work_is_refused_with_what_to_do() {
    let text = |result: Result<(), Error>| result.unwrap_err().to_string();
    let none = text(FailurePolicy::stop(0).check());
    assert!(none.contains("at least 1") && none.contains("found 0"), "{none}");
    for (policy, found) in
        [(FailurePolicy::retry(), "never gives a record up"), (FailurePolicy::stop(3), "stops the shard")]
    {
        let config = policy.apply(Config::default());
        let error = text(check_sink(&config, Misplaced::Drop, true));
        assert!(error.contains(found) && error.contains("set_aside"), "{error}");
    }
    let aside = FailurePolicy::set_aside(1).apply(Config::default());
    for is_there in [true, false] {
        assert!(check_sink(&aside, Misplaced::Drop, is_there).is_ok());
    }
    let retries = Config::default();
    assert!(check_sink(&retries, Misplaced::DeadLetter, true).is_ok());
    let error = text(check_sink(&retries, Misplaced::DeadLetter, false));
    assert_eq!(
        error,
        "failure policy: expected a dead-letter sink, for `Misplaced::DeadLetter`, found none; call `.dead_letter(sink)` on the builder"
    );
}
