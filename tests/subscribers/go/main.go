// The AWS SDK for Go subscribes to a shard of the server named by the first argument.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
)

var (
	ctx    = context.Background()
	stream = aws.String("from-go")
	shard  = aws.String("shardId-000000000000")
)

type events <-chan types.SubscribeToShardEventStream

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func expect(what string, found, expected any) {
	if fmt.Sprint(found) != fmt.Sprint(expected) {
		log.Fatalf("%s: expected %v, found %v", what, expected, found)
	}
}

// Reads until an event satisfies the condition; gives all payloads, and that event.
func until(in events, condition func(types.SubscribeToShardEvent) bool) ([]string, types.SubscribeToShardEvent) {
	payloads := []string{}
	for member := range in {
		event := member.(*types.SubscribeToShardEventStreamMemberSubscribeToShardEvent).Value
		for _, record := range event.Records {
			payloads = append(payloads, string(record.Data))
		}
		if condition(event) {
			return payloads, event
		}
	}
	log.Fatal("the subscription ended")
	panic("unreachable")
}

func hasRecords(event types.SubscribeToShardEvent) bool { return len(event.Records) > 0 }

func main() {
	client := kinesis.New(kinesis.Options{
		BaseEndpoint: aws.String(os.Args[1]),
		Region:       "us-east-1",
		Credentials:  credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
	put := func(data string) {
		must(client.PutRecord(ctx, &kinesis.PutRecordInput{StreamName: stream, PartitionKey: aws.String("k"), Data: []byte(data)}))
	}
	must(client.CreateStream(ctx, &kinesis.CreateStreamInput{StreamName: stream, ShardCount: aws.Int32(1)}))
	summary := must(client.DescribeStreamSummary(ctx, &kinesis.DescribeStreamSummaryInput{StreamName: stream}))
	register := &kinesis.RegisterStreamConsumerInput{StreamARN: summary.StreamDescriptionSummary.StreamARN, ConsumerName: aws.String("go")}
	consumer := must(client.RegisterStreamConsumer(ctx, register)).Consumer.ConsumerARN
	subscribe := func(at types.StartingPosition) (*kinesis.SubscribeToShardEventStream, error) {
		answer, err := client.SubscribeToShard(ctx, &kinesis.SubscribeToShardInput{ConsumerARN: consumer, ShardId: shard, StartingPosition: &at})
		if err != nil {
			return nil, err
		}
		return answer.GetStream(), nil
	}

	put("before")
	former := must(subscribe(types.StartingPosition{Type: types.ShardIteratorTypeTrimHorizon}))
	payloads, _ := until(former.Events(), hasRecords)
	expect("the record before", payloads, []string{"before"})
	put("pushed")
	payloads, event := until(former.Events(), hasRecords)
	expect("the pushed record", payloads, []string{"pushed"})
	again := types.StartingPosition{Type: types.ShardIteratorTypeAfterSequenceNumber, SequenceNumber: event.ContinuationSequenceNumber}
	// An earlier subscription is safe for five seconds.
	time.Sleep(5500 * time.Millisecond)
	put("after")
	later := must(subscribe(again))
	payloads, _ = until(later.Events(), hasRecords)
	expect("the record after the continuation", payloads, []string{"after"})
	for range former.Events() {
	}
	var inUse *types.ResourceInUseException
	expect("the end of the earlier subscription", errors.As(former.Err(), &inUse), true)

	half := aws.String("170141183460469231731687303715884105728")
	must(client.SplitShard(ctx, &kinesis.SplitShardInput{StreamName: stream, ShardToSplit: shard, NewStartingHashKey: half}))
	_, end := until(later.Events(), func(event types.SubscribeToShardEvent) bool { return event.ContinuationSequenceNumber == nil })
	expect("the children", len(end.ChildShards), 2)
	for range later.Events() {
		log.Fatal("an event follows the end")
	}
	expect("the error at the end", later.Err(), nil)
	fmt.Println("done")
}
