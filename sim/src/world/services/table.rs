//! The lease table in the workers' view: a format over the in-memory DynamoDB.

use crate::faults::{Chance, Faults};
use crate::names::number;
use crate::oracles::Time;
use crate::swarm::EPOCH_MS;
use leasehold_engine::fleet::FleetWrite;
use leasehold_engine::format::{Format, LeaseFormat};
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::input::{Cause, Outcome, Refusal, Reply, ScanPage, TableState, Why};
use leasehold_engine::output::TableOp;
use leasehold_engine::position::Checkpoint;
use leasehold_engine::row::{Change, LeaseRow, RowRead};
use leasehold_engine::shard::HashRange;
use leasehold_engine::table::ItemWrite;
use leasehold_engine::table::{Action, AttributeValue, Condition, Item, Update};
use leasehold_local_aws::dynamo::expr;
use leasehold_local_aws::dynamo::{
    ApiError, CreateTable, DeleteItem, Dynamo, DynamoConfig, GetItem, KeyAttribute, KeySchema, KeyType,
    PutItem, Scan, Status, UpdateItem,
};
use std::sync::Arc;

/// The table's name in every world.
pub(super) const TABLE: &str = "app";

/// The lease table, and the service's own acts.
#[derive(Clone, Debug)]
pub(crate) struct LeaseTable {
    pub(super) dynamo: Dynamo,
    /// The format of rows.
    pub(super) format: &'static (dyn LeaseFormat + Send + Sync),
    silent_refusal: bool,
    /// No worker may create the table.
    sealed: bool,
    pub(super) limit: Option<u32>,
    /// The table is created with the index of owners.
    owner_index: bool,
    /// The last written rows by shard: every scan shows most of them unchanged.
    decoded: Vec<Option<(Arc<Item>, RowRead)>>,
}

/// The reading of a scan.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    /// The scan shows rows in their state at this time.
    pub(super) as_of_ms: Option<i64>,
}

impl Reading {
    /// Rows in their state at this moment, if any.
    pub(crate) fn as_of(as_of_ms: Option<i64>) -> Self {
        Self { as_of_ms }
    }
}

pub(crate) fn wall_ms(now: Time) -> i64 {
    EPOCH_MS + (now / 1_000) as i64
}

impl LeaseTable {
    pub(crate) fn new(format: Format, faults: &Faults) -> Self {
        let listed = faults.request_faults.iter().flatten();
        let stale = faults.table.stale > 0
            || listed.into_iter().any(|fault| matches!(fault.fault, Chance::Stale { .. }));
        let faults = &faults.table;
        let config = DynamoConfig {
            create_ms: faults.create_ms,
            keep_versions: if stale { 16 } else { 0 },
            ..DynamoConfig::default()
        };
        Self {
            dynamo: Dynamo::new(config),
            format: format.codec(),
            silent_refusal: faults.silent_refusal,
            sealed: false,
            limit: (faults.tiny_page > 0).then_some(faults.tiny_page),
            owner_index: false,
            decoded: Vec::new(),
        }
    }

    /// Whether the table's creation includes the index of owners.
    pub(crate) fn with_owner_index(self, owner_index: bool) -> Self {
        Self { owner_index, ..self }
    }

    /// Executes an operation.
    pub(crate) fn execute(&mut self, now: Time, op: &TableOp, reading: Reading) -> Outcome {
        let now_ms = wall_ms(now);
        let result = match op {
            TableOp::Members(op) => return self.members(now, op),
            TableOp::Describe => Ok(Reply::Table(self.describe(now_ms, TABLE))),
            TableOp::Create if self.sealed => {
                return Outcome::Refused(Refusal {
                    why: Why::Denied,
                    current: None,
                    detail: "is not authorized to perform: dynamodb:CreateTable".into(),
                });
            }
            TableOp::Create => self.create(now_ms),
            TableOp::Scan { after, limit } => self.scan(now_ms, after.as_ref(), *limit, reading),
            TableOp::Read { key } => self.read(now_ms, key),
            TableOp::Write(change) => self.write(now_ms, change),
            TableOp::Fleet(write) => self.fleet_write(now_ms, write),
            TableOp::OwnerIndex => self.owner_index(now_ms),
            TableOp::Owned { owner, after } => self.owned(now_ms, owner, after.as_ref(), reading),
            TableOp::FleetTable(table, op) => return self.fleet_table(now, *table, op),
        };
        match result {
            Ok(reply) => Outcome::Applied(reply),
            Err(error) => self.failure(error),
        }
    }

    pub(super) fn failure(&self, error: ApiError) -> Outcome {
        let why = match error.code {
            "ConditionalCheckFailedException" => Why::ConditionFailed,
            "ResourceNotFoundException" => Why::NotFound,
            "ResourceInUseException" => Why::InUse,
            "ProvisionedThroughputExceededException" => return Outcome::NotSent(Cause::Throttled),
            _ => Why::Invalid,
        };
        let current = error.item.as_deref().map(|item| Box::new(self.format.decode(item)));
        let detail = error.message.into_owned();
        Outcome::Refused(Refusal { why, current, detail })
    }

    pub(super) fn describe(&mut self, now_ms: i64, table: &str) -> TableState {
        self.dynamo.advance(now_ms);
        match self.dynamo.table(table).map(|table| table.status) {
            None => TableState::Missing,
            Some(Status::Creating) => TableState::Creating,
            Some(Status::Active | Status::Updating) => TableState::Usable,
            Some(Status::Deleting) => TableState::Deleting,
        }
    }

    pub(super) fn create(&mut self, now_ms: i64) -> Result<Reply, ApiError> {
        let key = self.format.key_name();
        match self.owner_index {
            true => self.create_indexed(now_ms, key),
            false => self.create_table(now_ms, TABLE, key),
        }
    }

    pub(super) fn create_table(
        &mut self, now_ms: i64, table: &str, key: &'static str,
    ) -> Result<Reply, ApiError> {
        let partition = KeyAttribute { name: key.into(), key_type: KeyType::S };
        let schema = KeySchema { partition, sort: None };
        self.dynamo.create_table(now_ms, &CreateTable::new(table, schema))?;
        Ok(Reply::Done)
    }

    fn scan(
        &mut self, now_ms: i64, after: Option<&LeaseKey>, limit: Option<u32>, reading: Reading,
    ) -> Result<Reply, ApiError> {
        let limit = match (limit, self.limit) {
            (Some(asked), Some(given)) => Some(asked.min(given)),
            (asked, given) => asked.or(given),
        };
        let request = Scan {
            table: TABLE.to_owned(),
            limit: limit.map(|limit| limit as usize),
            start: after.map(|key| self.format.key(key)),
            as_of: reading.as_of_ms,
            ..Scan::default()
        };
        let page = self.dynamo.scan(now_ms, &request)?;
        let rows = page.items.iter().map(|item| self.decode(item)).collect();
        let next = page.last_key.as_ref().map(|key| key_of(self.format, key));
        Ok(Reply::Page(ScanPage { rows, next }))
    }

    fn read(&mut self, now_ms: i64, key: &LeaseKey) -> Result<Reply, ApiError> {
        let request = GetItem {
            table: TABLE.to_owned(),
            key: self.format.key(key),
            consistent: true,
            ..GetItem::default()
        };
        let found = self.dynamo.get_item(now_ms, &request)?;
        Ok(Reply::Row(found.item.map(|item| Box::new(self.format.decode(&item)))))
    }

    fn write(&mut self, now_ms: i64, change: &Change) -> Result<Reply, ApiError> {
        let write = self.format.encode(change);
        #[cfg(debug_assertions)]
        self.compare_with_text(&write);
        self.carry_out(now_ms, TABLE.to_owned(), write)
    }

    fn fleet_write(&mut self, now_ms: i64, write: &FleetWrite) -> Result<Reply, ApiError> {
        match self.format.encode_fleet(write) {
            Some(write) => self.carry_out(now_ms, TABLE.into(), write),
            None => Err(ApiError::new("ValidationException", "the format has no rows of a fleet")),
        }
    }

    /// Writes an item of any table.
    pub(super) fn carry_out(
        &mut self, now_ms: i64, table: String, write: ItemWrite,
    ) -> Result<Reply, ApiError> {
        let always = Condition::All(Vec::new());
        let condition = (write.condition != always).then(|| condition(write.condition));
        let (old_on_failure, key) = (!self.silent_refusal, write.key);
        match write.action {
            Action::Put(item) => {
                let request = PutItem { table, item, condition, old_on_failure, ..PutItem::default() };
                self.dynamo.put_item(now_ms, &request)?;
            }
            Action::Update(changes) => {
                let update = update(changes);
                let request =
                    UpdateItem { table, key, update, condition, old_on_failure, ..UpdateItem::default() };
                self.dynamo.update_item(now_ms, &request)?;
            }
            Action::Delete => {
                let request = DeleteItem { table, key, condition, old_on_failure, ..DeleteItem::default() };
                self.dynamo.delete_item(now_ms, &request)?;
            }
        }
        Ok(Reply::Done)
    }

    /// The rendered text must mean the same as the tree: the text is parsed, and the trees are compared.
    #[cfg(debug_assertions)]
    pub(super) fn compare_with_text(&self, write: &leasehold_engine::table::ItemWrite) {
        let rendered = leasehold_engine::table::render(write);
        let names = (!rendered.names.is_empty()).then(|| rendered.names.clone());
        let values = (!rendered.values.is_empty()).then(|| {
            rendered.values.iter().map(|(name, value)| (name.clone().into(), value.clone())).collect()
        });
        let mut binder =
            expr::Binder::new(names, values).unwrap_or_else(|error| panic!("{error} in {rendered:?}"));
        if !rendered.condition.is_empty() {
            let parsed = expr::parse_condition(&rendered.condition, &mut binder);
            assert_eq!(parsed.as_ref(), Ok(&condition(write.condition.clone())), "{rendered:?}");
        }
        if let Action::Update(changes) = &write.action {
            let text = rendered.update.clone().unwrap_or_default();
            let parsed = expr::parse_update(&text, &mut binder);
            assert_eq!(parsed.as_ref(), Ok(&update(changes.clone())), "{rendered:?}");
        }
    }

    /// The contents of an item.
    fn decode(&self, item: &Arc<Item>) -> RowRead {
        let key = item.get(self.format.key_name()).and_then(AttributeValue::as_s);
        let known = key.and_then(number).and_then(|shard| self.decoded.get(shard as usize)?.as_ref());
        match known {
            Some((known, read)) if Arc::ptr_eq(known, item) => read.clone(),
            _ => self.format.decode(item),
        }
    }

    /// Ground truth: the lease in a row. To be called after every change of the row.
    pub(crate) fn lease(&mut self, key: &LeaseKey) -> Option<LeaseRow> {
        let item = self.dynamo.peek(TABLE, &self.format.key(key))?;
        let read = self.format.decode(item);
        if let Some(shard) = number(key.as_str()) {
            let shard = shard as usize;
            if self.decoded.len() <= shard {
                self.decoded.resize(shard + 1, None);
            }
            self.decoded[shard] = Some((item.clone(), read.clone()));
        }
        match read {
            RowRead::Lease(row) => Some(row),
            RowRead::Foreign { .. } | RowRead::Unreadable { .. } => None,
        }
    }

    /// The answer to a write whose condition does not hold.
    pub(crate) fn refuse(&self, key: &LeaseKey) -> Outcome {
        let item = self.item(key).filter(|_| !self.silent_refusal);
        Outcome::Refused(Refusal {
            why: Why::ConditionFailed,
            current: item.map(|item| Box::new(self.decode(item))),
            detail: "The conditional request failed".into(),
        })
    }

    /// Ground truth: the item of a row.
    pub(crate) fn item(&self, key: &LeaseKey) -> Option<&Arc<Item>> {
        self.dynamo.peek(TABLE, &self.format.key(key))
    }

    /// Whether rows hold the hash ranges of their shards.
    pub(crate) fn holds_ranges(&self) -> bool {
        let mut row = LeaseRow::new("shardId-000000000000".into(), Checkpoint::TrimHorizon);
        row.range = Some(HashRange::ALL);
        let create = self.format.encode(&Change::Create(Box::new(row)));
        let mut item = None;
        let put = create.carry_out(&mut item);
        let read = item.map(|item| self.format.decode(&item));
        put.is_ok() && read.is_some_and(|read| read.lease().is_some_and(|row| row.range.is_some()))
    }

    /// Whether the table takes rows.
    pub(crate) fn is_usable(&mut self, now: Time) -> bool {
        self.describe(wall_ms(now), TABLE) == TableState::Usable
    }

    /// A person puts an item.
    pub(crate) fn put_by_hand(&mut self, now: Time, item: &Item) -> bool {
        self.dynamo.operator_put(wall_ms(now), TABLE, item).is_ok()
    }

    /// A person deletes the table for good; no worker may create the table anew. Returns whether the table existed.
    pub(crate) fn delete_by_hand_whole(&mut self, now: Time) -> bool {
        let deleted = self.dynamo.delete_table(wall_ms(now), TABLE).is_ok();
        self.sealed |= deleted;
        deleted
    }

    /// Creates the table at once.
    pub(crate) fn make_at_once(&mut self, now: Time) {
        let at_ms = wall_ms(now) - 3_600_000;
        // The error needs no handling here: every worker notices a missing table.
        let _ = self.create(at_ms);
        self.dynamo.advance(wall_ms(now));
    }

    /// A person writes a row.
    pub(crate) fn change_by_hand(&mut self, now: Time, change: &Change) -> bool {
        self.write(wall_ms(now), change).is_ok()
    }

    /// A person removes a row.
    pub(crate) fn delete_by_hand(&mut self, now: Time, key: &LeaseKey) -> bool {
        matches!(self.dynamo.operator_delete(wall_ms(now), TABLE, &self.format.key(key)), Ok(Some(_)))
    }
}

pub(super) fn key_of(format: &dyn LeaseFormat, key: &Item) -> LeaseKey {
    key.get(format.key_name()).and_then(AttributeValue::as_s).unwrap_or_default().into()
}

fn condition(condition: Condition) -> expr::Condition {
    match condition {
        Condition::Exists(name) => expr::Condition::exists(name),
        Condition::NotExists(name) => expr::Condition::not_exists(name),
        Condition::NoString(name) => {
            let path = expr::Operand::Path(expr::Path::attribute(name));
            expr::Condition::Not(Box::new(expr::Condition::HasType(path, "S".to_owned())))
        }
        Condition::Equals(name, value) => expr::Condition::equals(name, value),
        Condition::All(all) => expr::Condition::And(all.into_iter().map(self::condition).collect()),
        Condition::Any(any) => expr::Condition::Or(any.into_iter().map(self::condition).collect()),
    }
}

fn update(changes: Update) -> expr::Update {
    let mut update = expr::Update::new();
    for (name, value) in changes.set {
        update = update.set(name, value);
    }
    for name in changes.remove {
        update = update.remove(name);
    }
    for (name, number) in changes.add {
        update = update.add(name, AttributeValue::n(number));
    }
    update
}
