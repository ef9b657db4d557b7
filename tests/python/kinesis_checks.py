"""Kinesis: every operation."""

import time

import boto3
from botocore.exceptions import EventStreamError
from checks import FAST, SETTINGS, TOP, check, eventually, kinesis, refused


def status(stream):
    return kinesis.describe_stream_summary(StreamName=stream)["StreamDescriptionSummary"]["StreamStatus"]


def active(what, stream="orders"):
    eventually(what, lambda: status(stream) == "ACTIVE")


def read_all(iterator):
    """All records behind an iterator, and the child shards at its end."""
    records, children = [], None
    for _ in range(200):
        answer = kinesis.get_records(ShardIterator=iterator, Limit=1000)
        records += answer["Records"]
        iterator = answer.get("NextShardIterator")
        if iterator is None:
            children = answer["ChildShards"]
            break
        if not answer["Records"] and answer["MillisBehindLatest"] == 0:
            break
        time.sleep(0.25)
    return records, children


def iterator(shard, kind, **more):
    return kinesis.get_shard_iterator(StreamName="orders", ShardId=shard, ShardIteratorType=kind, **more)[
        "ShardIterator"
    ]


def kinesis_streams():
    kinesis.create_stream(StreamName="orders", ShardCount=2, Tags={"team": "billing"})
    check("CreateStream begins as CREATING", status("orders"), "CREATING")
    refused("CreateStream twice", "ResourceInUseException", kinesis.create_stream, StreamName="orders", ShardCount=1)
    kinesis.get_waiter("stream_exists").wait(StreamName="orders", **FAST)
    check("waiter stream_exists", status("orders"), "ACTIVE")
    description = kinesis.describe_stream(StreamName="orders")["StreamDescription"]
    check(
        "DescribeStream lists the shards",
        [shard["ShardId"] for shard in description["Shards"]],
        ["shardId-000000000000", "shardId-000000000001"],
    )
    ranges = [shard["HashKeyRange"] for shard in description["Shards"]]
    check(
        "shards share the hash space",
        (ranges[0]["StartingHashKey"], int(ranges[0]["EndingHashKey"]) + 1, ranges[1]["EndingHashKey"]),
        ("0", int(ranges[1]["StartingHashKey"]), str(TOP)),
    )
    summary = kinesis.describe_stream_summary(StreamName="orders")["StreamDescriptionSummary"]
    check(
        "DescribeStreamSummary",
        (
            summary["OpenShardCount"],
            summary["RetentionPeriodHours"],
            summary["EncryptionType"],
            summary["StreamModeDetails"]["StreamMode"],
        ),
        (2, 24, "NONE", "PROVISIONED"),
    )
    refused(
        "DescribeStreamSummary of no stream",
        "ResourceNotFoundException",
        kinesis.describe_stream_summary,
        StreamName="nowhere",
    )
    kinesis.create_stream(StreamName="elastic", StreamModeDetails={"StreamMode": "ON_DEMAND"})
    active("CreateStream on demand", "elastic")
    check(
        "on demand starts with four shards",
        kinesis.describe_stream_summary(StreamName="elastic")["StreamDescriptionSummary"]["OpenShardCount"],
        4,
    )
    check("ListStreams", kinesis.list_streams()["StreamNames"], ["elastic", "orders"])
    pages = kinesis.get_paginator("list_streams").paginate(PaginationConfig={"PageSize": 1})
    check("paginator list_streams", [page["StreamNames"] for page in pages], [["elastic"], ["orders"]])
    check("DescribeLimits", kinesis.describe_limits()["OpenShardCount"], 2)


def kinesis_settings():
    check(
        "ListTagsForStream shows the tags of creation",
        kinesis.list_tags_for_stream(StreamName="orders")["Tags"],
        [{"Key": "team", "Value": "billing"}],
    )
    kinesis.add_tags_to_stream(StreamName="orders", Tags={"cost": "low"})
    kinesis.remove_tags_from_stream(StreamName="orders", TagKeys=["team"])
    check(
        "AddTagsToStream and RemoveTagsFromStream",
        kinesis.list_tags_for_stream(StreamName="orders")["Tags"],
        [{"Key": "cost", "Value": "low"}],
    )
    arn = kinesis.describe_stream_summary(StreamName="orders")["StreamDescriptionSummary"]["StreamARN"]
    check("the ARN", arn, "arn:aws:kinesis:us-east-1:000000000000:stream/orders")
    kinesis.increase_stream_retention_period(StreamName="orders", RetentionPeriodHours=48)
    active("IncreaseStreamRetentionPeriod")
    check(
        "retention went up",
        kinesis.describe_stream_summary(StreamARN=arn)["StreamDescriptionSummary"]["RetentionPeriodHours"],
        48,
    )
    refused(
        "IncreaseStreamRetentionPeriod downwards",
        "InvalidArgumentException",
        kinesis.increase_stream_retention_period,
        StreamName="orders",
        RetentionPeriodHours=30,
    )
    kinesis.decrease_stream_retention_period(StreamName="orders", RetentionPeriodHours=24)
    active("DecreaseStreamRetentionPeriod")
    consumer = kinesis.register_stream_consumer(StreamARN=arn, ConsumerName="audit")["Consumer"]
    check("RegisterStreamConsumer", consumer["ConsumerStatus"], "CREATING")
    eventually(
        "DescribeStreamConsumer becomes ACTIVE",
        lambda: kinesis.describe_stream_consumer(ConsumerARN=consumer["ConsumerARN"])["ConsumerDescription"][
            "ConsumerStatus"
        ]
        == "ACTIVE",
    )
    check(
        "ListStreamConsumers",
        [each["ConsumerName"] for each in kinesis.list_stream_consumers(StreamARN=arn)["Consumers"]],
        ["audit"],
    )
    kinesis.deregister_stream_consumer(StreamARN=arn, ConsumerName="audit")
    eventually("DeregisterStreamConsumer", lambda: kinesis.list_stream_consumers(StreamARN=arn)["Consumers"] == [])


def kinesis_records():
    first = kinesis.put_record(StreamName="orders", Data=b"r0", PartitionKey="k", ExplicitHashKey="0")
    check("PutRecord by hash key", first["ShardId"], "shardId-000000000000")
    second = kinesis.put_record(
        StreamName="orders",
        Data=b"r1",
        PartitionKey="k",
        ExplicitHashKey="0",
        SequenceNumberForOrdering=first["SequenceNumber"],
    )
    check("sequence numbers grow", int(second["SequenceNumber"]) > int(first["SequenceNumber"]))
    many = kinesis.put_records(
        StreamName="orders", Records=[{"Data": b"m%d" % n, "PartitionKey": f"k{n}"} for n in range(100)]
    )
    check(
        "PutRecords",
        (many["FailedRecordCount"], len(many["Records"]), {record["ShardId"] for record in many["Records"]}),
        (0, 100, {"shardId-000000000000", "shardId-000000000001"}),
    )
    refused(
        "PutRecords of 501",
        "ValidationException",
        kinesis.put_records,
        StreamName="orders",
        Records=[{"Data": b"x", "PartitionKey": "k"}] * 501,
    )
    refused(
        "PutRecord over 1 MiB",
        "ValidationException",
        kinesis.put_record,
        StreamName="orders",
        Data=b"x" * (2**20 + 1),
        PartitionKey="k",
    )
    refused(
        "PutRecord to no stream",
        "ResourceNotFoundException",
        kinesis.put_record,
        StreamName="nowhere",
        Data=b"x",
        PartitionKey="k",
    )
    zero, one = "shardId-000000000000", "shardId-000000000001"
    records = read_all(iterator(zero, "TRIM_HORIZON"))[0] + read_all(iterator(one, "TRIM_HORIZON"))[0]
    check(
        "GetRecords from TRIM_HORIZON gives every record",
        sorted(record["Data"] for record in records),
        sorted([b"r0", b"r1"] + [b"m%d" % n for n in range(100)]),
    )
    check(
        "records have all members",
        sorted(records[0]),
        ["ApproximateArrivalTimestamp", "Data", "PartitionKey", "SequenceNumber"],
    )
    check(
        "AT_SEQUENCE_NUMBER includes it",
        kinesis.get_records(
            ShardIterator=iterator(zero, "AT_SEQUENCE_NUMBER", StartingSequenceNumber=second["SequenceNumber"])
        )["Records"][0]["Data"],
        b"r1",
    )
    after = kinesis.get_records(
        ShardIterator=iterator(zero, "AFTER_SEQUENCE_NUMBER", StartingSequenceNumber=first["SequenceNumber"]), Limit=1
    )
    check("AFTER_SEQUENCE_NUMBER excludes it; Limit", [record["Data"] for record in after["Records"]], [b"r1"])
    check("behind the tip", after["MillisBehindLatest"] > 0)
    check(
        "AT_TIMESTAMP of long ago",
        kinesis.get_records(ShardIterator=iterator(zero, "AT_TIMESTAMP", Timestamp=time.time() - 3600), Limit=1)[
            "Records"
        ][0]["Data"],
        b"r0",
    )
    time.sleep(1)
    latest = kinesis.get_records(ShardIterator=iterator(zero, "LATEST"))
    check("LATEST is at the tip", (latest["Records"], latest["MillisBehindLatest"]), ([], 0))
    refused(
        "GetShardIterator of no shard",
        "ResourceNotFoundException",
        kinesis.get_shard_iterator,
        StreamName="orders",
        ShardId="shardId-000000000099",
        ShardIteratorType="LATEST",
    )
    refused(
        "GetShardIterator in the future",
        "InvalidArgumentException",
        kinesis.get_shard_iterator,
        StreamName="orders",
        ShardId=zero,
        ShardIteratorType="AT_TIMESTAMP",
        Timestamp=time.time() + 3600,
    )
    refused(
        "GetRecords with a made-up iterator", "InvalidArgumentException", kinesis.get_records, ShardIterator="A" * 120
    )
    refused(
        "GetRecords of 10,001",
        "ValidationException",
        kinesis.get_records,
        ShardIterator=iterator(zero, "LATEST"),
        Limit=10001,
    )
    refused(
        "a sixth GetRecords within a second",
        "ProvisionedThroughputExceededException",
        hammer,
        iterator=iterator(one, "LATEST"),
    )


def hammer(iterator):
    for _ in range(12):
        kinesis.get_records(ShardIterator=iterator)


def kinesis_resharding():
    zero, one = "shardId-000000000000", "shardId-000000000001"
    kinesis.split_shard(StreamName="orders", ShardToSplit=zero, NewStartingHashKey=str(2**126))
    check("SplitShard makes the stream UPDATING", status("orders"), "UPDATING")
    refused(
        "SplitShard while UPDATING",
        "ResourceInUseException",
        kinesis.split_shard,
        StreamName="orders",
        ShardToSplit=one,
        NewStartingHashKey=str(2**127 + 5),
    )
    active("SplitShard ends")
    shards = {shard["ShardId"]: shard for shard in kinesis.list_shards(StreamName="orders")["Shards"]}
    check(
        "children of the split",
        (shards["shardId-000000000002"]["ParentShardId"], shards["shardId-000000000003"]["ParentShardId"]),
        (zero, zero),
    )
    check("the parent is closed", "EndingSequenceNumber" in shards[zero]["SequenceNumberRange"])
    records, children = read_all(iterator(zero, "TRIM_HORIZON"))
    check(
        "the end of a shard names its children",
        [child["ShardId"] for child in children],
        ["shardId-000000000002", "shardId-000000000003"],
    )
    check("nothing is lost at the end of a shard", b"r1" in [record["Data"] for record in records])
    refused(
        "SplitShard of a closed shard",
        "InvalidArgumentException",
        kinesis.split_shard,
        StreamName="orders",
        ShardToSplit=zero,
        NewStartingHashKey=str(2**125),
    )
    refused(
        "MergeShards of strangers",
        "InvalidArgumentException",
        kinesis.merge_shards,
        StreamName="orders",
        ShardToMerge="shardId-000000000002",
        AdjacentShardToMerge=one,
    )
    kinesis.merge_shards(StreamName="orders", ShardToMerge="shardId-000000000003", AdjacentShardToMerge=one)
    active("MergeShards ends")
    merged = [shard for shard in kinesis.list_shards(StreamName="orders")["Shards"] if "AdjacentParentShardId" in shard]
    check(
        "the merged shard has two parents",
        [(shard["ShardId"], {shard["ParentShardId"], shard["AdjacentParentShardId"]}) for shard in merged],
        [("shardId-000000000004", {"shardId-000000000003", one})],
    )
    # boto3's own paginator sends the name with the token, which AWS refuses too.
    page = kinesis.list_shards(StreamName="orders", MaxResults=2)
    token, sizes = page["NextToken"], [len(page["Shards"])]
    refused(
        "ListShards by name and token",
        "InvalidArgumentException",
        kinesis.list_shards,
        StreamName="orders",
        NextToken=token,
    )
    while token:
        page = kinesis.list_shards(NextToken=token, MaxResults=2)
        sizes.append(len(page["Shards"]))
        token = page.get("NextToken")
    check("ListShards in pages", sizes, [2, 2, 1])

    def filtered(**shard_filter):
        return [
            shard["ShardId"][-1]
            for shard in kinesis.list_shards(StreamName="orders", ShardFilter=shard_filter)["Shards"]
        ]

    check("filter AT_LATEST", filtered(Type="AT_LATEST"), ["2", "4"])
    check("filter AT_TRIM_HORIZON", filtered(Type="AT_TRIM_HORIZON"), ["0", "1"])
    check("filter FROM_TRIM_HORIZON", filtered(Type="FROM_TRIM_HORIZON"), ["0", "1", "2", "3", "4"])
    check("filter AFTER_SHARD_ID", filtered(Type="AFTER_SHARD_ID", ShardId="shardId-000000000002"), ["3", "4"])
    check("filter AT_TIMESTAMP", filtered(Type="AT_TIMESTAMP", Timestamp=time.time()), ["2", "4"])
    refused("ListShards with a made-up token", "InvalidArgumentException", kinesis.list_shards, NextToken="nonsense")
    kinesis.update_shard_count(StreamName="orders", TargetShardCount=4, ScalingType="UNIFORM_SCALING")
    active("UpdateShardCount ends")
    check(
        "UpdateShardCount",
        kinesis.describe_stream_summary(StreamName="orders")["StreamDescriptionSummary"]["OpenShardCount"],
        4,
    )
    refused(
        "UpdateShardCount to more than double",
        "LimitExceededException",
        kinesis.update_shard_count,
        StreamName="orders",
        TargetShardCount=100,
        ScalingType="UNIFORM_SCALING",
    )


def kinesis_end():
    kinesis.delete_stream(StreamName="orders")
    check("DeleteStream", status("orders"), "DELETING")
    kinesis.get_waiter("stream_not_exists").wait(StreamName="orders", **FAST)
    refused("waiter stream_not_exists", "ResourceNotFoundException", kinesis.describe_stream, StreamName="orders")
    refused("DeleteStream of no stream", "ResourceNotFoundException", kinesis.delete_stream, StreamName="orders")


def subscribed(arn, shard, position):
    """Subscribes to a shard as soon as an earlier subscription lets it; gives the events as they come."""
    for _ in range(100):
        try:
            stream = kinesis.subscribe_to_shard(ConsumerARN=arn, ShardId=shard, StartingPosition=position)
            return (event["SubscribeToShardEvent"] for event in stream["EventStream"])
        except kinesis.exceptions.ResourceInUseException:
            time.sleep(0.2)
    check("SubscribeToShard is let in", False)


def kinesis_fan_out():
    kinesis.create_stream(StreamName="pushed", ShardCount=1)
    active("CreateStream of pushed", "pushed")
    arn = kinesis.describe_stream_summary(StreamName="pushed")["StreamDescriptionSummary"]["StreamARN"]
    arn = kinesis.register_stream_consumer(StreamARN=arn, ConsumerName="audit")["Consumer"]["ConsumerARN"]
    shard, start = "shardId-000000000000", {"Type": "TRIM_HORIZON"}
    place = {"ConsumerARN": arn, "ShardId": shard, "StartingPosition": start}

    def refused_in_use(what):
        refused(what, "ResourceInUseException", kinesis.subscribe_to_shard, **place)

    refused_in_use("SubscribeToShard of a consumer in CREATING")
    kinesis.put_record(StreamName="pushed", Data=b"first", PartitionKey="k")
    events = subscribed(arn, shard, start)
    check("SubscribeToShard", [record["Data"] for record in next(events)["Records"]], [b"first"])
    refused_in_use("SubscribeToShard twice within five seconds")
    kinesis.put_record(StreamName="pushed", Data=b"second", PartitionKey="k")
    event = next(events)
    check("a record is pushed", [record["Data"] for record in event["Records"]], [b"second"])
    idle = next(events)
    check("an idle shard", (idle["Records"], idle["MillisBehindLatest"]), ([], 0))
    after = {"Type": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": idle["ContinuationSequenceNumber"]}
    later = subscribed(arn, shard, after)
    check("a later subscription goes on at the continuation", next(later)["Records"], [])
    try:
        check("an earlier subscription", next(events), "an exception")
    except EventStreamError as error:
        code = error.response["Error"]["Code"]
        check("an earlier subscription: ResourceInUseException", code, "ResourceInUseException")
    kinesis.split_shard(StreamName="pushed", ShardToSplit=shard, NewStartingHashKey=str(TOP // 2))
    last = next(event for event in later if not event.get("ContinuationSequenceNumber"))
    check("the end names the children", len(last["ChildShards"]), 2)
    check("no event follows the end", list(later), [])
    kinesis.delete_stream(StreamName="pushed", EnforceConsumerDeletion=True)


def kinesis_regions():
    abroad = boto3.client("kinesis", **{**SETTINGS, "region_name": "eu-west-1"})
    abroad.create_stream(StreamName="abroad", ShardCount=1)
    check(
        "the region is the one that requests are signed for",
        abroad.describe_stream_summary(StreamName="abroad")["StreamDescriptionSummary"]["StreamARN"],
        "arn:aws:kinesis:eu-west-1:000000000000:stream/abroad",
    )
    refused(
        "a stream of another region", "ResourceNotFoundException", kinesis.describe_stream_summary, StreamName="abroad"
    )


def run():
    kinesis_streams()
    kinesis_settings()
    kinesis_records()
    kinesis_resharding()
    kinesis_fan_out()
    kinesis_regions()
    kinesis_end()
