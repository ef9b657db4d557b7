use super::*;

fn list(kinesis: &mut Kinesis, now_ms: i64, filter: ShardFilter) -> Vec<u32> {
    let request = ListShards { filter: Some(filter), ..of_s() };
    indices(&kinesis.list_shards(now_ms, &request).unwrap().shards)
}

/// Shards 0 and 1; after 10 h, a split of 0 into 2 and 3; after 20 h, a merge of 2 and 3 into 4.
fn family() -> Kinesis {
    let (mut kinesis, _) = with_stream(2);
    kinesis.split_shard(T0 + 10 * HOUR, "s", ShardIndex(0), 1 << 126).unwrap();
    kinesis.merge_shards(T0 + 20 * HOUR, "s", ShardIndex(2), ShardIndex(3)).unwrap();
    kinesis
}

#[test]
fn every_filter_selects_what_it_says() {
    let mut kinesis = family();
    let now = T0 + 21 * HOUR;
    let mut select = |filter| list(&mut kinesis, now, filter);
    assert_eq!(select(ShardFilter::FromTrimHorizon), [0, 1, 2, 3, 4]);
    assert_eq!(select(ShardFilter::AtTrimHorizon), [0, 1]);
    assert_eq!(select(ShardFilter::AtLatest), [1, 4]);
    assert_eq!(select(ShardFilter::AfterShardId(ShardIndex(2))), [3, 4]);
    assert!(select(ShardFilter::AfterShardId(ShardIndex(u32::MAX))).is_empty());
    assert_eq!(select(ShardFilter::AtTimestamp(T0 + 5 * HOUR)), [0, 1]);
    assert_eq!(select(ShardFilter::AtTimestamp(T0 + 10 * HOUR)), [0, 1, 2, 3], "both ends are inside");
    assert_eq!(select(ShardFilter::AtTimestamp(T0 + 15 * HOUR)), [1, 2, 3]);
    assert_eq!(select(ShardFilter::AtTimestamp(now)), [1, 4]);
    assert_eq!(select(ShardFilter::AtTimestamp(0)), [0, 1], "corrected to the horizon");
    assert_eq!(select(ShardFilter::FromTimestamp(0)), [0, 1, 2, 3, 4]);
    assert_eq!(select(ShardFilter::FromTimestamp(T0 + 15 * HOUR)), [1, 2, 3, 4]);
    assert_eq!(select(ShardFilter::FromTimestamp(now)), [1, 4]);
}

#[test]
fn the_horizon_moves_on() {
    let mut kinesis = family();
    assert_eq!(list(&mut kinesis, T0 + 24 * HOUR, ShardFilter::AtTrimHorizon), [0, 1]);
    assert_eq!(list(&mut kinesis, T0 + 35 * HOUR, ShardFilter::AtTrimHorizon), [1, 2, 3]);
    assert_eq!(list(&mut kinesis, T0 + 35 * HOUR, ShardFilter::FromTrimHorizon), [1, 2, 3, 4]);
    assert_eq!(list(&mut kinesis, T0 + 35 * HOUR, ShardFilter::FromTimestamp(0)), [1, 2, 3, 4]);
    assert_eq!(list(&mut kinesis, T0 + 99 * HOUR, ShardFilter::FromTrimHorizon), [1, 4]);
}

#[test]
fn pages_go_on_by_token_alone_under_every_filter() {
    let mut kinesis = family();
    let now = T0 + 21 * HOUR;
    for filter in [
        ShardFilter::FromTrimHorizon,
        ShardFilter::AtTrimHorizon,
        ShardFilter::AtLatest,
        ShardFilter::AfterShardId(ShardIndex(0)),
        ShardFilter::AtTimestamp(T0 + 15 * HOUR),
        ShardFilter::FromTimestamp(T0 + 15 * HOUR),
    ] {
        let whole = list(&mut kinesis, now, filter);
        for max in 1..=5 {
            let first = ListShards { filter: Some(filter), max_results: Some(max), ..of_s() };
            let mut page = kinesis.list_shards(now, &first).unwrap();
            let mut seen = indices(&page.shards);
            while let Some(token) = page.next_token {
                let next = ListShards { max_results: Some(max), ..after(&token) };
                page = kinesis.list_shards(now, &next).unwrap();
                assert!(!page.shards.is_empty() && page.shards.len() <= max as usize);
                seen.extend(indices(&page.shards));
            }
            assert_eq!(seen, whole, "{filter:?} by {max}");
        }
    }
}

#[test]
fn a_page_holds_a_thousand_shards_at_most() {
    let (mut kinesis, _) = with_stream(2500);
    let first = ListShards { max_results: Some(10_000), ..of_s() };
    let page = kinesis.list_shards(T0, &first).unwrap();
    assert_eq!(page.shards.len(), 1000);
    let token = page.next_token.unwrap();
    let next = after(&token);
    assert_eq!(kinesis.list_shards(T0, &next).unwrap().shards[0].shard, ShardIndex(1000));
}

#[test]
fn a_token_stands_alone_and_for_five_minutes() {
    let mut kinesis = family();
    let now = T0 + 21 * HOUR;
    let first = ListShards { max_results: Some(1), ..of_s() };
    let token = kinesis.list_shards(now, &first).unwrap().next_token.unwrap();
    let next = after(&token);
    for wrong in [
        ListShards { stream: of_s().stream, ..next },
        ListShards { exclusive_start: Some(ShardIndex(0)), ..next },
        ListShards { created_ms: Some(T0), ..next },
        ListShards { filter: Some(ShardFilter::AtLatest), ..next },
        ListShards { next_token: Some("AAAA"), ..next },
        ListShards::default(),
    ] {
        assert_eq!(code(kinesis.list_shards(now, &wrong)), "InvalidArgumentException", "{wrong:?}");
    }
    let arn = kinesis.stream("s").unwrap().arn();
    let by_arn = ListShards { stream: Some(StreamRef::Arn(&arn)), ..next };
    assert_eq!(kinesis.list_shards(now, &by_arn).unwrap().shards.len(), 4);
    assert!(kinesis.list_shards(now + 300_000, &next).is_ok());
    assert_eq!(code(kinesis.list_shards(now + 300_001, &next)), "ExpiredNextTokenException");
    kinesis.delete_stream(now, "s", false).unwrap();
    kinesis.create_stream(now, &CreateStream::provisioned("s", 9)).unwrap();
    assert_eq!(code(kinesis.list_shards(now, &next)), "ResourceNotFoundException");
}

#[test]
fn a_listing_in_pages_has_no_hole_when_shards_split_meanwhile() {
    let (mut kinesis, _) = with_stream(3);
    let filter = Some(ShardFilter::AtLatest);
    let first = ListShards { filter, max_results: Some(2), ..of_s() };
    let page = kinesis.list_shards(T0, &first).unwrap();
    kinesis.split_shard(T0, "s", ShardIndex(2), u128::MAX - 5).unwrap();
    let token = page.next_token.unwrap();
    let next = after(&token);
    let rest = kinesis.list_shards(T0, &next).unwrap();
    assert_eq!((indices(&page.shards), indices(&rest.shards)), (vec![0, 1], vec![3, 4]));
}

#[test]
fn the_creation_time_tells_streams_of_one_name_apart() {
    let (mut kinesis, _) = with_stream(1);
    let right = ListShards { created_ms: Some(T0), ..of_s() };
    let wrong = ListShards { created_ms: Some(T0 - 5000), ..right };
    assert!(kinesis.list_shards(T0, &right).is_ok());
    assert_eq!(code(kinesis.list_shards(T0, &wrong)), "ResourceNotFoundException");
    let future = ListShards { filter: Some(ShardFilter::AtTimestamp(T0 + 1)), ..of_s() };
    assert_eq!(code(kinesis.list_shards(T0, &future)), "InvalidArgumentException");
}

#[test]
fn streams_are_listed_in_pages_by_name_and_by_token() {
    let mut kinesis = instant();
    for name in ["c", "a", "e", "b", "d"] {
        kinesis.create_stream(T0, &CreateStream::provisioned(name, 1)).unwrap();
    }
    let names = |page: &StreamPage| page.streams.iter().map(|s| s.name.to_string()).collect::<Vec<_>>();
    let page = kinesis.list_streams(T0, None, None, Some(2)).unwrap();
    assert_eq!(names(&page), ["a", "b"]);
    let token = page.next_token.unwrap();
    let page = kinesis.list_streams(T0, None, Some(&token), Some(3)).unwrap();
    assert_eq!((names(&page), page.next_token), (vec!["c".into(), "d".into(), "e".into()], None));
    assert_eq!(names(&kinesis.list_streams(T0, Some("c"), None, None).unwrap()), ["d", "e"]);
    assert_eq!(code(kinesis.list_streams(T0, Some("c"), Some(&token), None)), "InvalidArgumentException");
    let late = kinesis.list_streams(T0 + 300_001, None, Some(&token), None);
    assert_eq!(code(late), "ExpiredNextTokenException");
}
