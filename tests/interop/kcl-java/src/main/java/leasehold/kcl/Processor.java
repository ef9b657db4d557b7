package leasehold.kcl;

import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicLong;
import software.amazon.kinesis.exceptions.KinesisClientLibException;
import software.amazon.kinesis.exceptions.ShutdownException;
import software.amazon.kinesis.lifecycle.events.InitializationInput;
import software.amazon.kinesis.lifecycle.events.LeaseLostInput;
import software.amazon.kinesis.lifecycle.events.ProcessRecordsInput;
import software.amazon.kinesis.lifecycle.events.ShardEndedInput;
import software.amazon.kinesis.lifecycle.events.ShutdownRequestedInput;
import software.amazon.kinesis.processor.RecordProcessorCheckpointer;
import software.amazon.kinesis.processor.ShardRecordProcessor;
import software.amazon.kinesis.retrieval.KinesisClientRecord;

/** Prints every record, then checkpoints. */
final class Processor implements ShardRecordProcessor {
    private static final AtomicLong SESSIONS = new AtomicLong();

    /** The first processor of this process is session 1. */
    private final long session = SESSIONS.incrementAndGet();

    /** A checkpoint is due after this many records; with 0 or 1 after each batch. */
    private final long checkpointEvery;

    private String shard = "";
    private long sinceCheckpoint;

    /** What the name of the shard begins with: nothing, or the stream. */
    private final String before;

    Processor(long checkpointEvery, String before) {
        this.checkpointEvery = checkpointEvery;
        this.before = before;
    }

    @Override
    public void initialize(InitializationInput input) {
        shard = before + input.shardId();
        event("initialised", input.extendedSequenceNumber().sequenceNumber());
    }

    @Override
    public void processRecords(ProcessRecordsInput input) {
        StringBuilder lines = new StringBuilder();
        for (KinesisClientRecord record : input.records()) {
            lines.append("{\"shard\":");
            Output.text(lines, shard).append(",\"session\":").append(session).append(",\"sequence\":");
            Output.text(lines, record.sequenceNumber());
            lines.append(",\"sub_sequence\":").append(record.subSequenceNumber()).append(",\"partition_key\":");
            Output.text(lines, record.partitionKey()).append(",\"data\":");
            Output.text(lines, StandardCharsets.UTF_8.decode(record.data())).append("}\n");
        }
        Output.write(lines);
        sinceCheckpoint += input.records().size();
        if (sinceCheckpoint >= checkpointEvery) {
            checkpoint(input.checkpointer());
        }
    }

    @Override
    public void leaseLost(LeaseLostInput input) {
        event("lease lost", "");
    }

    @Override
    public void shardEnded(ShardEndedInput input) {
        checkpoint(input.checkpointer());
        event("shard ended", "");
    }

    @Override
    public void shutdownRequested(ShutdownRequestedInput input) {
        checkpoint(input.checkpointer());
        event("shutdown requested", "");
    }

    /** What fails here is covered by the next checkpoint, or comes again at the next owner. */
    private void checkpoint(RecordProcessorCheckpointer checkpointer) {
        try {
            checkpointer.checkpoint();
            sinceCheckpoint = 0;
        } catch (ShutdownException e) {
            event("checkpoint refused", String.valueOf(e.getMessage()));
        } catch (KinesisClientLibException e) {
            event("checkpoint failed", String.valueOf(e));
        }
    }

    private void event(String what, String detail) {
        Output.event(what, shard, session, detail);
    }
}
