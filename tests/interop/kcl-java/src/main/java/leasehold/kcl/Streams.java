package leasehold.kcl;

import java.util.ArrayList;
import java.util.List;
import software.amazon.kinesis.common.InitialPositionInStreamExtended;
import software.amazon.kinesis.common.StreamConfig;
import software.amazon.kinesis.common.StreamIdentifier;
import software.amazon.kinesis.processor.FormerStreamsLeasesDeletionStrategy;
import software.amazon.kinesis.processor.FormerStreamsLeasesDeletionStrategy.NoLeaseDeletionStrategy;
import software.amazon.kinesis.processor.MultiStreamTracker;
import software.amazon.kinesis.processor.ShardRecordProcessor;
import software.amazon.kinesis.processor.ShardRecordProcessorFactory;
import software.amazon.kinesis.processor.SingleStreamTracker;
import software.amazon.kinesis.processor.StreamTracker;

/** What is read: a stream by its name, or several by their identifiers. */
final class Streams {
    private Streams() {}

    /** Whether it names streams by identifiers, with commas between them. */
    static boolean areSeveral(String given) {
        return given.contains(":");
    }

    static StreamTracker tracker(String given, InitialPositionInStreamExtended position) {
        if (!areSeveral(given)) {
            return new SingleStreamTracker(given, position);
        }
        List<StreamConfig> streams = new ArrayList<>();
        for (String id : given.split(",")) {
            streams.add(new StreamConfig(StreamIdentifier.multiStreamInstance(id), position));
        }
        return new MultiStreamTracker() {
            @Override
            public List<StreamConfig> streamConfigList() {
                return streams;
            }

            @Override
            public FormerStreamsLeasesDeletionStrategy formerStreamsLeasesDeletionStrategy() {
                return new NoLeaseDeletionStrategy();
            }
        };
    }

    /** Processors that name each shard as its lease is named. */
    static ShardRecordProcessorFactory processors(long checkpointEvery) {
        return new ShardRecordProcessorFactory() {
            @Override
            public ShardRecordProcessor shardRecordProcessor() {
                return new Processor(checkpointEvery, "");
            }

            @Override
            public ShardRecordProcessor shardRecordProcessor(StreamIdentifier stream) {
                String id = stream.serialize();
                return new Processor(checkpointEvery, areSeveral(id) ? id + ":" : "");
            }
        };
    }
}
