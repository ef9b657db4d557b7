package leasehold.kcl;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.AwsCredentialsProvider;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.http.Protocol;
import software.amazon.awssdk.http.nio.netty.NettyNioAsyncHttpClient;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.cloudwatch.CloudWatchAsyncClient;
import software.amazon.awssdk.services.dynamodb.DynamoDbAsyncClient;
import software.amazon.awssdk.services.kinesis.KinesisAsyncClient;
import software.amazon.awssdk.services.kinesis.KinesisAsyncClientBuilder;
import software.amazon.kinesis.common.ConfigsBuilder;
import software.amazon.kinesis.common.InitialPositionInStream;
import software.amazon.kinesis.common.InitialPositionInStreamExtended;
import software.amazon.kinesis.common.KinesisClientUtil;
import software.amazon.kinesis.coordinator.CoordinatorConfig;
import software.amazon.kinesis.coordinator.Scheduler;
import software.amazon.kinesis.leases.LeaseManagementConfig;
import software.amazon.kinesis.metrics.MetricsConfig;
import software.amazon.kinesis.metrics.MetricsLevel;
import software.amazon.kinesis.metrics.NullMetricsFactory;
import software.amazon.kinesis.retrieval.RetrievalConfig;
import software.amazon.kinesis.retrieval.polling.PollingConfig;

/**
 * A worker of the KCL that prints what it processes, until SIGTERM, SIGINT or a line {@code stop} on stdin.
 *
 * <p>A line for each record, and one for each event, all of them JSON: see tests/src/interop.rs. Times are in ms.
 */
public final class Worker {
    private Worker() {}

    public static void main(String[] arguments) {
        Options options = new Options(arguments);
        Scheduler scheduler = scheduler(options);
        long leaveMillis = options.number("leave-ms").orElse(30_000);
        options.nothingElse();

        AtomicBoolean asked = new AtomicBoolean();
        Thread run = new Thread(scheduler, "scheduler");
        run.setDaemon(true);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> leave(scheduler, asked, leaveMillis), "leave"));
        run.start();
        Output.event("started", "", 0, Version.NAME);
        Thread stdin = new Thread(Worker::awaitStop, "stdin");
        stdin.setDaemon(true);
        stdin.start();
        try {
            run.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        if (!asked.get()) {
            Output.event("ended by itself", "", 0, "");
            Runtime.getRuntime().halt(1);
        }
    }

    private static Scheduler scheduler(Options options) {
        String server = options.need("endpoint");
        URI endpoint = URI.create(server);
        URI dynamoEndpoint = URI.create(options.text("dynamodb", server));
        Region region = Region.of(options.text("region", "us-east-1"));
        AwsCredentialsProvider anybody = StaticCredentialsProvider.create(AwsBasicCredentials.create("test", "test"));
        boolean fanOut = options.text("retrieval", "polling").equals("fan-out");
        KinesisAsyncClientBuilder client = KinesisAsyncClient.builder()
                .endpointOverride(endpoint).region(region).credentialsProvider(anybody);
        // The library's own client speaks HTTP/2. Independent servers on loopback speak HTTP/1.1 only.
        KinesisAsyncClient kinesis = fanOut
                ? KinesisClientUtil.createKinesisAsyncClient(client)
                : client.httpClientBuilder(NettyNioAsyncHttpClient.builder().protocol(Protocol.HTTP1_1).maxConcurrency(200))
                        .build();
        DynamoDbAsyncClient dynamo = DynamoDbAsyncClient.builder()
                .endpointOverride(dynamoEndpoint).region(region).credentialsProvider(anybody).build();
        // Never called, as metrics are off.
        CloudWatchAsyncClient cloudWatch = CloudWatchAsyncClient.builder()
                .endpointOverride(endpoint).region(region).credentialsProvider(anybody).build();

        String stream = options.need("stream");
        InitialPositionInStreamExtended position = InitialPositionInStreamExtended.newInitialPosition(
                InitialPositionInStream.valueOf(options.text("position", "TRIM_HORIZON")));
        long checkpointEvery = options.number("checkpoint-every").orElse(0);
        ConfigsBuilder configs = new ConfigsBuilder(
                Streams.tracker(stream, position), options.need("table"), kinesis, dynamo, cloudWatch,
                options.need("worker"), Streams.processors(checkpointEvery));

        CoordinatorConfig coordinator = configs.coordinatorConfig();
        options.set("dispatch-ms", coordinator::shardConsumerDispatchPollIntervalMillis);
        options.set("parent-ms", coordinator::parentShardPollIntervalMillis);
        LeaseManagementConfig leases = configs.leaseManagementConfig();
        options.set("failover-ms", leases::failoverTimeMillis);
        options.set("sync-ms", leases::shardSyncIntervalMillis);
        options.set("audit-ms", leases::leasesRecoveryAuditorExecutionFrequencyMillis);
        options.set("steal", most -> leases.maxLeasesToStealAtOneTime(Math.toIntExact(most)));
        Version.set(options, coordinator, leases);
        PollingConfig polling = Streams.areSeveral(stream) ? new PollingConfig(kinesis) : new PollingConfig(stream, kinesis);
        options.set("idle-ms", polling::idleTimeBetweenReadsInMillis);
        // Without a choice, the library reads by fan-out.
        RetrievalConfig retrieval = fanOut ? configs.retrievalConfig() : configs.retrievalConfig().retrievalSpecificConfig(polling);
        MetricsConfig metrics = configs.metricsConfig()
                .metricsLevel(MetricsLevel.NONE)
                .metricsFactory(new NullMetricsFactory());

        return new Scheduler(
                configs.checkpointConfig(), coordinator, leases, configs.lifecycleConfig(), metrics,
                configs.processorConfig(), retrieval);
    }

    private static void awaitStop() {
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.equals("stop")) {
                    System.exit(0);
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /**
     * The graceful shutdown, as the library's documentation has it: with a limit, since it never completes while the worker
     * keeps the lease of a shard that it finished.
     */
    private static void leave(Scheduler scheduler, AtomicBoolean asked, long mostMillis) {
        asked.set(true);
        int code = 0;
        try {
            boolean complete = scheduler.startGracefulShutdown().get(mostMillis, TimeUnit.MILLISECONDS);
            Output.event("stopped", "", 0, complete ? "complete" : "incomplete");
        } catch (TimeoutException e) {
            Output.event("stopped", "", 0, "after " + mostMillis + " ms");
        } catch (InterruptedException | ExecutionException e) {
            Output.event("stopped", "", 0, e.toString());
            code = 1;
        }
        // Without this the exit code would be that of the signal.
        Runtime.getRuntime().halt(code);
    }
}
