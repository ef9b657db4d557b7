use super::*;

#[test]
fn the_md5_of_the_key_picks_the_shard() {
    assert_eq!(super::super::write::hash_of("a"), 0x0cc1_75b9_c0f1_b6a8_31c3_99e2_6977_2661);
    let (mut kinesis, _) = with_stream(4);
    let written = kinesis.put_record(T0, "s", record("a", b"x"), None).unwrap();
    assert_eq!(written.shard, ShardIndex(0));
    let stored = kinesis.stream("s").unwrap().shard(ShardIndex(0)).unwrap().record(1).unwrap();
    assert_eq!((stored.0, &stored.1.data[..]), (written.sequence_number, &b"x"[..]));
    for (hash_key, shard) in [(0, 0), (u128::MAX / 4, 0), (u128::MAX / 4 + 1, 1), (u128::MAX, 3)] {
        assert_eq!(put(&mut kinesis, T0, hash_key).shard, ShardIndex(shard));
    }
}

#[test]
fn sizes_have_bounds() {
    let (mut kinesis, _) = with_stream(1);
    let sized = |size: usize| NewRecord { data: vec![0; size].into(), ..record("k", b"") };
    assert!(kinesis.put_record(T0, "s", sized((1 << 20) - 1), None).is_ok());
    assert_eq!(code(kinesis.put_record(T0, "s", sized(1 << 20), None)), "ValidationException");
    assert_eq!(code(kinesis.put_records(T0, "s", vec![])), "ValidationException");
    let many = vec![sized(0); 501];
    assert_eq!(code(kinesis.put_records(T0, "s", many)), "ValidationException");
    let large = vec![sized((1 << 20) - 1); 11];
    assert_eq!(code(kinesis.put_records(T0, "s", large)), "InvalidArgumentException");
    assert!(kinesis.put_records(T0, "s", vec![sized((1 << 20) - 1); 10]).is_ok());
    kinesis.update_max_record_size(T0, "s", 2048).unwrap();
    assert!(kinesis.put_record(T0, "s", sized(1 << 20), None).is_ok());
}

#[test]
fn an_ordering_number_has_to_be_one_and_of_the_past() {
    let (mut kinesis, _) = with_stream(1);
    let written = put(&mut kinesis, T0, 0).sequence_number;
    let later = kinesis.put_record(T0, "s", at_hash(0), Some(written)).unwrap();
    assert!(later.sequence_number > written);
    let future = SequenceParts { time_secs: T0 as u64 / 1000 + 9, ..written.parts().unwrap() };
    for wrong in [SequenceNumber::new(future), "5".parse().unwrap()] {
        let put = kinesis.put_record(T0, "s", at_hash(0), Some(wrong));
        assert_eq!(code(put), "InvalidArgumentException");
    }
}

#[test]
fn arrival_times_do_not_go_back_with_the_clock() {
    let (mut kinesis, _) = with_stream(1);
    put(&mut kinesis, T0 + 5000, 0);
    put(&mut kinesis, T0, 0);
    let page = read(&mut kinesis, T0 + 6000, 0, IteratorStart::AtTimestamp(T0 + 4000));
    let times: Vec<i64> = page.records.iter().map(|record| record.arrival_ms).collect();
    assert_eq!(times, [T0 + 5000, T0 + 5000]);
}
