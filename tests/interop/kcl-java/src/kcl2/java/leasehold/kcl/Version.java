package leasehold.kcl;

import software.amazon.kinesis.coordinator.CoordinatorConfig;
import software.amazon.kinesis.leases.LeaseManagementConfig;

/** What only KCL 2 has: nothing. */
final class Version {
    static final String NAME = "KCL 2";

    private Version() {}

    static void set(Options options, CoordinatorConfig coordinator, LeaseManagementConfig leases) {
        // Options of KCL 3 are refused.
    }
}
