//! Collects many batches into one Parquet file. `cargo run -p leasehold --example parquet`, or `… parquet FOLDER`
//!
//! `README.md` beside this file tells how to start an AWS in memory.
//!
//! A batch is acknowledged when its file is safe on the disk. After a crash, all records outside of finished files
//! come again: records may be in two files, and no record is missing. A query tells repeated rows by shard and
//! position. Each shard has its own task; `batch_files.rs` does the same with one handler for all shards.
#![expect(
    clippy::disallowed_methods,
    reason = "this project wants its timers from a port; your program needs no such line"
)]

use leasehold::aws::{self, dynamodb, kinesis};
use leasehold::{InitialPosition, Receipt, Record, ShardStream, Worker};
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A file is written after this number of records, after this time, or when the worker asks for a flush. Queries are
/// fast on files of some hundred MB; the small files here serve the example.
const FILE_RECORDS: usize = 50;
const FILE_TIME: Duration = Duration::from_secs(10);

const SCHEMA: &str = "message orders {
    required binary shard (STRING);
    required binary position (STRING);
    required binary customer (STRING);
    required binary data (STRING);
}";
/// In the order of the schema.
const COLUMNS: [fn(&Record) -> ByteArray; 4] = [
    |record| record.shard.as_str().into(),
    |record| ByteArray::from(record.position.to_string().into_bytes()),
    |record| (&*record.partition_key).into(),
    |record| record.data.clone().into(),
];

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Writes records as one row group. Gives the file back after its footer.
fn encode(file: File, records: &[Record]) -> Result<File, ParquetError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let mut writer = SerializedFileWriter::new(file, schema, Arc::default())?;
    let mut group = writer.next_row_group()?;
    for column in COLUMNS {
        let values: Vec<ByteArray> = records.iter().map(column).collect();
        let mut writer = group.next_column()?.expect("a column of the schema");
        writer.typed::<ByteArrayType>().write_batch(&values, None, None)?;
        writer.close()?;
    }
    group.close()?;
    writer.into_inner()
}

/// What a shard has for its next file.
#[derive(Default)]
struct Collected {
    records: Vec<Record>,
    receipts: Vec<Receipt>,
}

impl Collected {
    /// Blocking for a moment does no harm, as leases are kept on another thread. After an error the receipts are
    /// dropped without an acknowledgement, and their batches come again.
    fn write_file(&mut self, folder: &Path, shard: &ShardStream) -> Result<(), Error> {
        let Self { records, receipts } = std::mem::take(self);
        let Some(first) = records.first() else {
            return Ok(());
        };
        // Each owner of the shard has another token: no two workers write the same file.
        let (info, token) = (shard.info(), shard.fence().token());
        let name = folder.join(format!("{}-{token}-{}.parquet", info.shard, first.position));
        let unfinished = name.with_extension("unfinished");
        encode(File::create(&unfinished)?, &records)?.sync_all()?;
        // A file of the final name is always whole. The folder is synced, too, since the folder holds the name.
        fs::rename(&unfinished, &name)?;
        File::open(folder)?.sync_all()?;
        println!("{} records in {}", records.len(), name.display());
        for receipt in receipts {
            receipt.acknowledge();
        }
        Ok(())
    }
}

async fn collect(shard: ShardStream, folder: Arc<PathBuf>) -> Result<(), Error> {
    let mut collected = Collected::default();
    let mut in_time = tokio::time::interval(FILE_TIME);
    loop {
        tokio::select! {
            batch = shard.next() => {
                let Some(batch) = batch else { break };
                collected.records.extend(batch.records().iter().cloned());
                collected.receipts.push(batch.receipt());
                if collected.records.len() >= FILE_RECORDS {
                    collected.write_file(&folder, &shard)?;
                }
            }
            _ = in_time.tick() => collected.write_file(&folder, &shard)?,
            // The limit of kept batches is reached: the next batch comes after an acknowledgement.
            () = shard.flush_wanted() => collected.write_file(&folder, &shard)?,
        }
    }
    // The shard was split or merged, another worker gets the shard, or this worker shuts down.
    collected.write_file(&folder, &shard)
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing_subscriber::fmt::init();
    let folder = Arc::new(PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "order-tables".into())));
    fs::create_dir_all(&*folder)?;
    let config = aws_config::defaults(aws_config::BehaviorVersion::latest())
        .http_client(aws::https_client())
        .load()
        .await;
    let worker = Worker::builder()
        .kinesis(kinesis::Client::new(&config))
        .dynamodb(dynamodb::Client::new(&config))
        .stream("orders")
        .application("parquet")
        .initial_position(InitialPosition::TrimHorizon)
        .build()?;
    leasehold::shutdown_on_signal(worker.control())?;
    worker.run_shards(move |shard| collect(shard, folder.clone())).await?;
    Ok(())
}
