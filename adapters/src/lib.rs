//! The async Kinesis consumer: a thin shell around [`leasehold_engine`].
