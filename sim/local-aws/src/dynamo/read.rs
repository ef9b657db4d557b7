//! Get, query and scan.

use super::Dynamo;
use super::capacity::{Consumed, read_cost};
use super::error::{ApiError, DynamoResult};
use super::expr::{Condition, Projection, SortCondition};
use super::index::{Index, IndexPosition, IndexProjection};
use super::key::{KeySchema, Position};
use super::requests::{GetItem, GetReply, Page, Query, Scan, Select};
use super::store::Row;
use super::table::{Status, Table};
use super::value::{item_size, normalize_item};
use crate::constraint::refuse_if;
use leasehold_engine::table::Item;
use std::ops::Bound;
use std::sync::Arc;

/// How large a page may become.
#[derive(Clone, Copy)]
struct Bounds {
    limit: Option<usize>,
    page_bytes: usize,
    page_items: usize,
}

/// The range and conditions of a query or a scan.
struct Reading<'a> {
    /// The index, by its place in the table.
    index: Option<usize>,
    /// The first position, and the position after the last (`None`: the end of the table).
    lower: Position,
    upper: Option<Position>,
    start: Option<&'a Item>,
    wrong_start: &'a str,
    sort: Option<&'a SortCondition>,
    backward: bool,
    filter: Option<&'a Condition>,
    projection: Option<&'a Projection>,
    select: Select,
    consistent: bool,
    as_of: Option<i64>,
}

impl Dynamo {
    /// `GetItem`.
    pub fn get_item(&mut self, now_ms: i64, request: &GetItem) -> DynamoResult<GetReply> {
        let table = self.usable(&request.table, now_ms)?;
        table.check_projection(request.projection.as_ref())?;
        let position = table.schema.position_of_key(&request.key)?;
        refuse_if(!table.may_read(None, now_ms), ApiError::throughput_exceeded)?;
        let as_of = request.as_of.filter(|_| !request.consistent);
        let row = table.store.get(&position, as_of);
        let cost = read_cost(row.map_or(0, |row| row.size), request.consistent);
        let item = row.map(|row| projected(&row.item, request.projection.as_ref()));
        table.reads.take(cost);
        Ok(GetReply { item, consumed: Consumed::table(cost) })
    }

    /// `Scan`.
    pub fn scan(&mut self, now_ms: i64, request: &Scan) -> DynamoResult<Page> {
        let bounds = self.bounds(request.limit)?;
        let table = self.usable(&request.table, now_ms)?;
        let index = table.readable(request.index.as_deref(), request.consistent, request.select)?;
        let (segment, total) = request.segment.unwrap_or((0, 1));
        if total == 0 || segment >= total {
            return Err(ApiError::validation(format!(
                "The Segment parameter is zero-based and must be less than parameter TotalSegments: \
                 Segment: {segment} is not less than TotalSegments: {total}"
            )));
        }
        let cut = |part: u32| u64::try_from((u128::from(part) << 64).div_ceil(u128::from(total))).ok();
        let wrong_start = format!(
            "The provided starting key is invalid: Invalid ExclusiveStartKey. Please use ExclusiveStartKey \
             with correct Segment. TotalSegments: {total} Segment: {segment}"
        );
        let reading = Reading {
            index,
            lower: Position::floor(cut(segment).unwrap_or(u64::MAX)),
            upper: cut(segment + 1).map(Position::floor),
            start: request.start.as_ref(),
            wrong_start: &wrong_start,
            sort: None,
            backward: false,
            filter: request.filter.as_ref(),
            projection: request.projection.as_ref(),
            select: request.select,
            consistent: request.consistent,
            as_of: request.as_of.filter(|_| !request.consistent),
        };
        table.read(&reading, bounds, now_ms)
    }

    /// `Query`.
    pub fn query(&mut self, now_ms: i64, request: &Query) -> DynamoResult<Page> {
        let bounds = self.bounds(request.limit)?;
        let table = self.usable(&request.table, now_ms)?;
        let index = table.readable(request.index.as_deref(), request.consistent, request.select)?;
        let schema = table.schema_of(index);
        let (partition, sort) = request.key.resolve(schema)?;
        let mut filtered = request.filter.iter().flat_map(Condition::paths).map(|path| &path.head);
        if let Some(name) = filtered.find(|name| schema.contains(name)) {
            return Err(ApiError::validation(format!(
                "Filter Expression can only contain non-primary key attributes: Primary key attribute: {name}"
            )));
        }
        let lower = schema.partition_start(partition)?;
        let reading = Reading {
            index,
            upper: Some(lower.partition_end()),
            lower,
            start: request.start.as_ref(),
            wrong_start: "The provided starting key is outside query boundaries based on provided conditions",
            sort,
            backward: request.backward,
            filter: request.filter.as_ref(),
            projection: request.projection.as_ref(),
            select: request.select,
            consistent: request.consistent,
            as_of: request.as_of.filter(|_| !request.consistent),
        };
        table.read(&reading, bounds, now_ms)
    }

    fn bounds(&self, limit: Option<usize>) -> DynamoResult<Bounds> {
        if limit == Some(0) {
            return Err(ApiError::unmet("Value '0' at 'limit'", "have value greater than or equal to 1"));
        }
        Ok(Bounds {
            limit,
            page_bytes: self.config.page_bytes,
            page_items: self.config.max_page_items.unwrap_or(usize::MAX).max(1),
        })
    }
}

impl Table {
    fn schema_of(&self, index: Option<usize>) -> &KeySchema {
        index.and_then(|at| self.indexes.get(at)).map_or(&self.schema, |index| &index.spec.schema)
    }

    pub(super) fn check_projection(&self, projection: Option<&Projection>) -> DynamoResult<()> {
        projection
            .map_or(Ok(()), |projection| projection.paths.iter().try_for_each(|path| self.check_path(path)))
    }

    /// The place of the index to be read, if one is named.
    fn readable(&self, name: Option<&str>, consistent: bool, select: Select) -> DynamoResult<Option<usize>> {
        let Some(name) = name else { return Ok(None) };
        let absent = || ApiError::validation(format!("The table does not have the specified index: {name}"));
        let at = self.indexes.iter().position(|index| index.spec.name == name).ok_or_else(absent)?;
        let index = &self.indexes[at];
        if consistent && !index.spec.local {
            let message = "Consistent reads are not supported on global secondary indexes";
            return Err(ApiError::validation(message));
        }
        match index.status {
            Status::Creating => {
                let message = format!("Cannot read from backfilling global secondary index: {name}");
                return Err(ApiError::validation(message));
            }
            Status::Deleting => return Err(absent()),
            Status::Active | Status::Updating => {}
        }
        if select == Select::AllAttributes
            && !index.spec.local
            && index.spec.projection != IndexProjection::All
        {
            return Err(ApiError::invalid_parameter(format_args!(
                "Select type ALL_ATTRIBUTES is not supported for global secondary index {name} \
                 because its projection type is not ALL"
            )));
        }
        Ok(Some(at))
    }

    fn check_reading(&self, reading: &Reading<'_>, index: Option<&Index>) -> DynamoResult<()> {
        self.check_condition(reading.filter)?;
        self.check_projection(reading.projection)?;
        let Some(index) = index.filter(|index| !index.spec.local) else {
            return Ok(());
        };
        let paths = reading.projection.iter().flat_map(|projection| &projection.paths);
        let absent: Vec<&str> =
            paths.map(|path| path.head.as_ref()).filter(|name| !index.holds(name, &self.schema)).collect();
        if absent.is_empty() {
            return Ok(());
        }
        Err(ApiError::invalid_parameter(format_args!(
            "Global secondary index {} does not project [{}]",
            index.spec.name,
            absent.join(", ")
        )))
    }

    fn read(&mut self, reading: &Reading<'_>, bounds: Bounds, now_ms: i64) -> DynamoResult<Page> {
        let index = reading.index.and_then(|at| self.indexes.get(at));
        self.check_reading(reading, index)?;
        let wrong = || ApiError::validation(reading.wrong_start.to_owned());
        let page = match index {
            None => {
                let start = reading.start.map(|key| self.start_position(key)).transpose()?;
                let span = span(reading.lower.clone(), reading.upper.clone(), start, reading.backward);
                let rows = self.store.walk(span.ok_or_else(wrong)?, reading.backward, reading.as_of);
                fill(rows.map(|(_, row)| row), reading, bounds, self, None)
            }
            Some(index) => {
                let start = reading.start.map(|key| self.index_start(key, index)).transpose()?;
                let lower = IndexPosition::floor(reading.lower.clone());
                let upper = reading.upper.clone().map(IndexPosition::floor);
                let span = span(lower, upper, start, reading.backward).ok_or_else(wrong)?;
                let entries = index.entries(&self.store, reading.as_of);
                let range = entries.range(span);
                let row = |entry: &IndexPosition| self.store.get(&entry.base, reading.as_of);
                if reading.backward {
                    fill(range.rev().filter_map(row), reading, bounds, self, Some(index))
                } else {
                    fill(range.filter_map(row), reading, bounds, self, Some(index))
                }
            }
        };
        // The cost is known only now, but an empty bucket refuses before the call takes any capacity.
        refuse_if(!self.may_read(reading.index, now_ms), ApiError::throughput_exceeded)?;
        self.reads.take(page.consumed.table);
        let at_index = page.consumed.indexes.iter().map(|(_, halves)| halves).sum();
        match reading.index.and_then(|at| self.indexes.get_mut(at)) {
            Some(index) if !index.spec.local => index.reads.take(at_index),
            // A local index lives on the table's capacity.
            _ => self.reads.take(at_index),
        }
        Ok(page)
    }

    fn start_position(&self, key: &Item) -> DynamoResult<Position> {
        let mut key = key.clone();
        normalize_item(&mut key).and_then(|()| self.schema.position_of_key(&key)).map_err(|error| {
            ApiError::validation(format!("The provided starting key is invalid: {}", error.message))
        })
    }

    fn index_start(&self, key: &Item, index: &Index) -> DynamoResult<IndexPosition> {
        let wrong = || ApiError::validation("The provided starting key is invalid");
        let expected =
            index.spec.schema.attributes().filter(|part| !self.schema.contains(&part.name)).count()
                + self.schema.attributes().count();
        refuse_if(key.len() != expected, wrong)?;
        let at = index.spec.schema.sparse_position(key).ok_or_else(wrong)?;
        Ok(IndexPosition { at, base: self.start_position(&self.schema.key_of(key))? })
    }
}

/// The range to walk; `None` if the start lies outside of the range.
fn span<K: Ord>(
    lower: K, upper: Option<K>, start: Option<K>, backward: bool,
) -> Option<(Bound<K>, Bound<K>)> {
    let after = |upper: Option<K>| upper.map_or(Bound::Unbounded, Bound::Excluded);
    match start {
        None => Some((Bound::Included(lower), after(upper))),
        Some(start) if start < lower || upper.as_ref().is_some_and(|upper| start >= *upper) => None,
        Some(start) if backward => Some((Bound::Included(lower), Bound::Excluded(start))),
        Some(start) => Some((Bound::Excluded(start), after(upper))),
    }
}

fn fill<'r>(
    rows: impl Iterator<Item = &'r Row>, reading: &Reading<'_>, bounds: Bounds, table: &Table,
    index: Option<&Index>,
) -> Page {
    let mut page = Page::default();
    let mut bytes = 0;
    let mut fetched = 0;
    let mut last: Option<&Row> = None;
    let mut more = false;
    let schema = index.map_or(&table.schema, |index| &index.spec.schema);
    let whole = |index: &&Index| index.spec.projection != IndexProjection::All;
    // An index may hold only a part of the item: the query sees, filters and pays for this part.
    let partial = index.filter(whole);
    let fetch = partial.is_some_and(|index| index.spec.local && reading.wants_more_than(index, table));
    for row in rows {
        if let (Some(condition), Some(sort)) = (reading.sort, &schema.sort)
            && !row.item.get(&sort.name).is_some_and(|value| condition.holds(value))
        {
            continue;
        }
        let held = partial.map(|index| Arc::new(index.project(&row.item, &table.schema)));
        let size = held.as_ref().map_or(row.size, |item| item_size(item));
        if page.scanned > 0 && (bytes + size > bounds.page_bytes || page.scanned >= bounds.page_items) {
            more = true;
            break;
        }
        bytes += size;
        page.scanned += 1;
        last = Some(row);
        let item = match held {
            Some(_) if fetch => {
                fetched += 1;
                row.item.clone()
            }
            Some(held) => held,
            None => row.item.clone(),
        };
        if reading.filter.is_none_or(|filter| filter.holds(&item)) {
            page.count += 1;
            if reading.select != Select::Count {
                page.items.push(projected(&item, reading.projection));
            }
        }
        if bounds.limit.is_some_and(|limit| page.scanned >= limit) {
            more = true;
            break;
        }
    }
    if let Some(row) = last.filter(|_| more) {
        let mut key = table.schema.key_of(&row.item);
        if let Some(index) = index {
            key.extend(index.spec.schema.key_of(&row.item));
        }
        page.last_key = Some(key);
    }
    let cost = read_cost(bytes, reading.consistent);
    page.consumed = match index {
        None => Consumed::table(cost),
        Some(index) => Consumed {
            table: fetched * read_cost(0, reading.consistent),
            indexes: vec![(index.spec.name.clone(), cost)],
        },
    };
    page
}

impl Reading<'_> {
    /// Whether a local index has to fetch the rest from the table.
    fn wants_more_than(&self, index: &Index, table: &Table) -> bool {
        match self.projection {
            None => self.select == Select::AllAttributes,
            Some(projection) => projection.paths.iter().any(|path| !index.holds(&path.head, &table.schema)),
        }
    }
}

/// The wanted part of an item.
pub(super) fn projected(item: &Arc<Item>, projection: Option<&Projection>) -> Arc<Item> {
    projection.map_or_else(|| item.clone(), |projection| Arc::new(projection.apply(item)))
}
