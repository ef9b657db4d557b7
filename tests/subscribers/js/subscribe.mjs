// The AWS SDK for JavaScript subscribes to a shard of the server named by the first argument. The SDK speaks HTTP/2, and
// takes leave of the connection (GOAWAY) as soon as the answer begins.

import * as sdk from "@aws-sdk/client-kinesis";
import assert from "node:assert/strict";

const credentials = { accessKeyId: "test", secretAccessKey: "test" };
const kinesis = new sdk.KinesisClient({ endpoint: process.argv[2], region: "us-east-1", credentials });
const StreamName = "from-js";
const ShardId = "shardId-000000000000";

const put = (data) =>
  kinesis.send(new sdk.PutRecordCommand({ StreamName, PartitionKey: "k", Data: Buffer.from(data) }));

async function subscribe(ConsumerARN, StartingPosition) {
  const answer = await kinesis.send(new sdk.SubscribeToShardCommand({ ConsumerARN, ShardId, StartingPosition }));
  return answer.EventStream[Symbol.asyncIterator]();
}

// Reads until an event satisfies the condition; gives all payloads, and that event.
async function until(events, condition) {
  const payloads = [];
  for (;;) {
    const { done, value } = await events.next();
    assert(!done, "the subscription ended");
    const event = value.SubscribeToShardEvent;
    payloads.push(...event.Records.map((record) => Buffer.from(record.Data).toString()));
    if (condition(event)) return { payloads, event };
  }
}

await kinesis.send(new sdk.CreateStreamCommand({ StreamName, ShardCount: 1 }));
const stream = await kinesis.send(new sdk.DescribeStreamSummaryCommand({ StreamName }));
const { StreamARN } = stream.StreamDescriptionSummary;
const consumer = await kinesis.send(new sdk.RegisterStreamConsumerCommand({ StreamARN, ConsumerName: "js" }));
const { ConsumerARN } = consumer.Consumer;

await put("before");
const former = await subscribe(ConsumerARN, { Type: "TRIM_HORIZON" });
assert.deepEqual((await until(former, (event) => event.Records.length > 0)).payloads, ["before"]);
await put("pushed");
const { payloads, event } = await until(former, (event) => event.Records.length > 0);
assert.deepEqual(payloads, ["pushed"]);
const again = { Type: "AFTER_SEQUENCE_NUMBER", SequenceNumber: event.ContinuationSequenceNumber };
await assert.rejects(subscribe(ConsumerARN, again), { name: "ResourceInUseException" });

// An earlier subscription is safe for five seconds.
await new Promise((done) => setTimeout(done, 5_500));
await put("after");
const later = await subscribe(ConsumerARN, again);
assert.deepEqual((await until(later, (event) => event.Records.length > 0)).payloads, ["after"]);
await assert.rejects(until(former, () => false), { name: "ResourceInUseException" });

const NewStartingHashKey = (1n << 127n).toString();
await kinesis.send(new sdk.SplitShardCommand({ StreamName, ShardToSplit: ShardId, NewStartingHashKey }));
const end = (await until(later, (event) => !event.ContinuationSequenceNumber)).event;
assert.equal(end.ChildShards.length, 2);
assert((await later.next()).done, "no event follows the end");
console.log("done");
