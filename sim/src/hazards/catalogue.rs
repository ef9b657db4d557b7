//! The known hazards, by program.

use super::Hazard;

/// A hazard: its name, the report by users, Leasehold's behaviour.
macro_rules! hazards {
    ($($id:literal, $reported:literal, $ours:literal;)*) => {
        &[$(Hazard {
            id: $id,
            text: include_str!(concat!("../../hazards/", $id, ".toml")),
            reported: $reported,
            ours: $ours,
        }),*]
    };
}

/// All hazards.
pub const HAZARDS: &[Hazard] = hazards! {
    "go-zombie-checkpoint", "",
        "Each write is guarded by the last one that was seen: the former owner's is refused, and it stops.";
    "go-stale-take-over", "",
        "A take-over does not touch the checkpoint: what is read afterwards is where it begins.";
    "go-first-checkpoint-erased", "",
        "A take-over does not touch the checkpoint, nor any attribute that it does not know.";
    "go-renewal-rewinds", "",
        "Each lease has one write under way at most, and a renewal does not carry the checkpoint.";
    "go-renewal-is-acquisition", "",
        "A renewal whose guard fails ends the ownership; what comes after is a new one, from the row's checkpoint.";
    "go-late-checkpoint", "",
        "All writes between two acknowledged ones have the same guard, so the late one is refused.";
    "go-checkpoint-backwards", "",
        "Progress only grows: what was said before is ignored.";
    "go-row-recreated", "",
        "A guarded write creates no row.";
    "go-stale-scan-rewinds", "",
        "What a scan shows of a lease that is held changes nothing.";
    "go-stale-scan-second-consumer", "vmware-go-kcl #92",
        "What a scan shows of a lease that is held changes nothing.";
    "go-child-not-renewed", "",
        "A lease is renewed whatever its shard waits for.";
    "go-parent-without-checkpoint", "",
        "A child waits for the durable end of each parent that is still listed, with a row or without.";
    "go-adjacent-parent", "",
        "A child waits for both parents; lineage comes from listings.";
    "go-children-at-latest", "AdRoll/baker #59",
        "Children begin at their oldest record, and their leases say so.";
    "go-no-fence", "",
        "A belief ends by the worker's own clock, before others act; the running handler is aborted.";
    "go-live-lease-stolen", "",
        "A claim counts until its row has not changed for a lease's length, by the reader's own clock.";
    "go-clock-ahead", "",
        "Whether an owner lives is judged by whether its row changes; no wall clock is asked.";
    "go-dead-clock-ahead", "",
        "Whether an owner lives is judged by whether its row changes; no wall clock is asked.";
    "go-same-name", "",
        "A worker's name in rows has its incarnation in it.";
    "go-restart-under-its-name", "",
        "A worker's name in rows has its incarnation in it: what a former life owned expires, and is taken.";
    "go-phantom-owner", "vmware-go-kcl #77",
        "What is held is what acknowledged writes say, in one place; a release is such a write.";
    "go-one-lease-a-round", "vmware-go-kcl-v2 #14",
        "All leases that nobody owns are taken as soon as they are seen, up to a fair share.";
    "go-stop-waits-for-parent", "vmware-go-kcl #72",
        "A shutdown has a deadline, and waits for nothing that others do.";
    "go-silent-loss", "vmware-go-kcl #60, #71",
        "A renewal is tried again while the lease lasts, and each beginning of a shard has one end.";
    "go-expired-iterator", "",
        "A new iterator is fetched, after the last record that was read.";
    "go-end-on-stop", "",
        "Only the stream says that a shard has ended; an application cannot.";
    "go-stream-made-anew", "",
        "A table that does not fit the stream is refused before anything is read or written.";
    "go-table-of-another", "vmware-go-kcl #23",
        "A table that does not fit the stream is refused before anything is read or written.";
    "rb-live-lease-taken", "",
        "A lease is taken when its row has not changed for its whole length, and not before.";
    "rb-dead-owner", "",
        "A lease is taken when its row has not changed for its whole length, whatever the row says.";
    "rb-no-children", "",
        "Children are leased when their parents have ended.";
    "rb-zombie-checkpoint", "",
        "Each write is guarded by the last one that was seen: the former owner's is refused, and it stops.";
    "rb-stale-read", "",
        "A lease carries no checkpoint; reading begins at what the acknowledged take showed.";
    "rb-table-creating", "",
        "Nothing is read without an acknowledged lease.";
    "rb-null-owner", "",
        "A checkpoint is guarded by the lease, and NULL counts as nobody.";
    "rb-busy-shard", "",
        "Shards do not wait for each other, and a shutdown waits for none beyond its deadline.";
    "rb-throttled-read", "",
        "A read that is throttled is tried again later.";
    "rb-second-page", "",
        "Listings are read to their last page.";
    "rb-stream-made-anew", "",
        "A table that does not fit the stream is refused before anything is read or written.";
    "rb-table-of-another", "",
        "A table that does not fit the stream is refused before anything is read or written.";
    "kcl-consumer-gone", "",
        "A subscription without its consumer tells nothing of the shard; the consumer is registered anew.";
    "kin-checkpoint-on-delivery", "kinsumer #28",
        "A checkpoint covers what the application said is processed.";
    "kin-idle-owner", "kinsumer #30",
        "A lease is renewed whether there is news or not.";
    "kin-capture-rewinds", "",
        "A take is guarded by the very write that was read, and does not touch the checkpoint.";
    "kin-buffered", "",
        "Each batch is handed over under a belief that still lasts, and is dropped otherwise.";
    "kin-clock-ahead", "",
        "Whether an owner lives is judged by whether its row changes; no wall clock is asked.";
    "kin-dead-clock-ahead", "",
        "Whether an owner lives is judged by whether its row changes; no wall clock is asked.";
    "kin-no-order", "",
        "A child waits for the durable end of each of its parents.";
    "kin-failed-consumer", "kinsumer #27",
        "What fails is tried again after a pause, as long as the lease is held.";
    "kin-expired-iterator", "kinsumer #51",
        "A new iterator is fetched, after the last record that was read.";
    "kin-errors-block", "",
        "Nothing waits for a listener, and a shutdown has a deadline.";
    "kin-late-commit", "",
        "All writes between two acknowledged ones have the same guard, so the late one is refused.";
    "kin-stream-made-anew", "",
        "A table that does not fit the stream is refused before anything is read or written.";
};
