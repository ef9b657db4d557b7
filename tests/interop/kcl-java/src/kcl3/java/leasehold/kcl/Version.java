package leasehold.kcl;

import software.amazon.kinesis.coordinator.CoordinatorConfig;
import software.amazon.kinesis.coordinator.CoordinatorConfig.ClientVersionConfig;
import software.amazon.kinesis.leases.LeaseManagementConfig;

/** What only KCL 3 has. */
final class Version {
    static final String NAME = "KCL 3";

    private Version() {}

    static void set(Options options, CoordinatorConfig coordinator, LeaseManagementConfig leases) {
        coordinator.clientVersionConfig(
                ClientVersionConfig.valueOf(options.text("client-version", "CLIENT_VERSION_CONFIG_3X")));
        coordinator.migrateAllEntitiesToLeaseTable(Boolean.parseBoolean(options.text("one-table", "false")));
        options.set("assign-ms", leases::leaseAssignmentIntervalMillis);
        options.set("handoff-ms", leases.gracefulLeaseHandoffConfig()::gracefulLeaseHandoffTimeoutMillis);
        options.set("lock-ms", leases::dynamoDbLockBasedLeaderLeaseDurationInMillis);
        options.set("heartbeat-ms", leases::dynamoDbLockBasedLeaderHeartbeatPeriodInMillis);
        LeaseManagementConfig.WorkerUtilizationAwareAssignmentConfig load = leases.workerUtilizationAwareAssignmentConfig();
        options.set("load-ms", load::workerMetricsReporterFreqInMillis);
        options.set("balance-every", runs -> load.varianceBalancingFrequency(Math.toIntExact(runs)));
    }
}
