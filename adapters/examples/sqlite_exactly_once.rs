//! Stores each record in SQLite exactly once. `cargo run -p leasehold --example sqlite_exactly_once`, or `… sqlite_exactly_once FILE`
//!
//! `README.md` beside this file tells how to start an AWS in memory. Kill the example at any moment, and start the
//! example again.
//!
//! Kinesis and a lease table alone give at-least-once: after a crash, stored records come again. The sink makes
//! exactly once of at least once. One transaction stores the records and the shard's stored position, and checks the
//! fencing token:
//! * repeated records lie at or before that position, and are skipped;
//! * a worker that has lost the shard unknowingly has an older token, and its transaction is refused.
//!
//! Any database with transactions will do, if the position is in the same database as what the records change.

use leasehold::aws::{self, dynamodb, kinesis};
use leasehold::{Ack, Batch, Handler, InitialPosition, Position, Record, ShardInfo, Worker};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};
use std::sync::Mutex;
use std::time::Duration;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS orders (shard TEXT NOT NULL, position TEXT NOT NULL, customer TEXT NOT NULL, data BLOB NOT NULL);
    CREATE TABLE IF NOT EXISTS totals (customer TEXT PRIMARY KEY, orders INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS shards (shard TEXT PRIMARY KEY, token INTEGER NOT NULL, position TEXT) WITHOUT ROWID;";

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Handlers may block for a moment, as here: leases are kept on another thread.
struct Sink(Mutex<Connection>);

/// From here on, writes of workers with an older token are refused. A newer token in the table is an error.
fn take_over(transaction: &Transaction<'_>, shard: &ShardInfo) -> Result<(), Error> {
    let taken = transaction.execute(
        "INSERT INTO shards (shard, token) VALUES (?1, ?2)
         ON CONFLICT (shard) DO UPDATE SET token = excluded.token WHERE token <= excluded.token",
        (shard.shard.as_str(), shard.token.0),
    )?;
    match taken {
        0 => Err(format!("refused: token {} of {} is not the newest", shard.token.0, shard.shard).into()),
        _ => Ok(()),
    }
}

/// The stored position of a shard: the sink is more current than the lease table, since the table's checkpoint
/// follows later.
fn stored(transaction: &Transaction<'_>, shard: &ShardInfo) -> Result<Option<Position>, Error> {
    let sql = "SELECT position FROM shards WHERE shard = ?1";
    let row = transaction.query_row(sql, [shard.shard.as_str()], |row| row.get::<_, Option<String>>(0));
    match row.optional()?.flatten() {
        Some(text) => Ok(Some(serde_json::from_str(&text)?)),
        None => Ok(None),
    }
}

impl Sink {
    fn within<T>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T, Error>) -> Result<T, Error> {
        let mut connection = self.0.lock().expect("no panic");
        // Without a commit, it changes nothing.
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = work(&transaction)?;
        transaction.commit()?;
        Ok(done)
    }
}

impl Handler for Sink {
    type Error = Error;

    async fn open(&self, shard: &ShardInfo) -> Result<(), Error> {
        let position = self.within(|transaction| {
            take_over(transaction, shard)?;
            stored(transaction, shard)
        })?;
        let position = position.map_or("nothing".to_owned(), |position| format!("position {position}"));
        println!("{} is stored up to {position}", shard.shard);
        Ok(())
    }

    async fn process(&self, batch: Batch) -> Result<Ack, Error> {
        let shard = batch.shard();
        let new = self.within(|transaction| {
            take_over(transaction, shard)?;
            let position = stored(transaction, shard)?;
            // Positions grow within a shard.
            let is_new = |record: &&Record| Some(record.position) > position;
            let new: Vec<&Record> = batch.records().iter().filter(is_new).collect();
            for record in &new {
                let (position, customer) = (record.position.to_string(), &*record.partition_key);
                transaction.execute(
                    "INSERT INTO orders VALUES (?1, ?2, ?3, ?4)",
                    (shard.shard.as_str(), position, customer, &*record.data),
                )?;
                // A repeated record would make this total wrong.
                let sql = "INSERT INTO totals VALUES (?1, 1) ON CONFLICT (customer) DO UPDATE SET orders = orders + 1";
                transaction.execute(sql, [customer])?;
            }
            if let Some(last) = new.last() {
                let sql = "UPDATE shards SET position = ?2 WHERE shard = ?1";
                transaction.execute(sql, (shard.shard.as_str(), serde_json::to_string(&last.position)?))?;
            }
            Ok(new.len())
        })?;
        println!("{}: {new} stored, {} skipped", shard.shard, batch.len() - new);
        Ok(Ack::All)
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing_subscriber::fmt::init();
    let file = std::env::args().nth(1).unwrap_or_else(|| "orders.sqlite".into());
    let connection = Connection::open(file)?;
    // A committed transaction survives a crash of the machine, too. Other connections may read meanwhile.
    connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")?;
    connection.execute_batch(TABLES)?;
    let config = aws_config::defaults(aws_config::BehaviorVersion::latest())
        .http_client(aws::https_client())
        .load()
        .await;
    let worker = Worker::builder()
        .kinesis(kinesis::Client::new(&config))
        .dynamodb(dynamodb::Client::new(&config))
        .stream("orders")
        .application("sqlite-exactly-once")
        .initial_position(InitialPosition::TrimHorizon)
        .config(|config| {
            config
                // After a kill you need not wait long for the next worker. The defaults make fewer requests.
                .with_lease_duration(Duration::from_secs(5))
                .with_renew_interval(Duration::from_secs(1))
                .with_scan_interval(Duration::from_secs(2))
        })
        .build()?;
    leasehold::shutdown_on_signal(worker.control())?;
    worker.run(Sink(Mutex::new(connection))).await?;
    Ok(())
}
