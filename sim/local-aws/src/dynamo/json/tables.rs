//! Table operations in JSON.

use super::body::{Fields, absent};
use super::describe::describe_table;
use crate::dynamo::key::{KeyAttribute, KeySchema, KeyType};
use crate::dynamo::{
    ApiError, Billing, CreateTable, Dynamo, DynamoResult, IndexChange, IndexProjection, IndexSpec,
    Throughput, UpdateTable,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// `CreateTable`
pub(super) fn create(dynamo: &mut Dynamo, now_ms: i64, fields: Fields<'_>) -> DynamoResult<Value> {
    refuse_streams(fields)?;
    let name = fields.table()?;
    let definitions = definitions(fields)?.ok_or_else(|| absent("AttributeDefinitions"))?;
    let schema = schema(fields, &definitions)?;
    let throughput = throughput(fields)?;
    let billing = match (billing_mode(fields)?, throughput) {
        (Some(true), None) => Billing::OnDemand,
        (Some(true), Some(_)) => return Err(paid_twice()),
        (_, Some(throughput)) => Billing::Provisioned(throughput),
        (_, None) => return Err(no_throughput()),
    };
    let mut indexes = Vec::new();
    for (member, local) in [("LocalSecondaryIndexes", true), ("GlobalSecondaryIndexes", false)] {
        let Some(list) = fields.list(member)? else {
            continue;
        };
        if list.is_empty() {
            return Err(ApiError::invalid_parameter(format_args!("List of {member} is empty")));
        }
        for index in list {
            let index = index_spec(Fields::of(index)?, &definitions, local)?;
            check_local(&index, &schema)?;
            indexes.push(index);
        }
    }
    let request = CreateTable {
        name,
        schema,
        definitions,
        indexes,
        billing,
        deletion_protection: fields.flag("DeletionProtectionEnabled")?,
        class: class(fields)?,
        tags: tags(fields)?.unwrap_or_default(),
    };
    dynamo.create_table(now_ms, &request)?;
    described(dynamo, &request.name, "TableDescription")
}

/// `UpdateTable`
pub(super) fn update(dynamo: &mut Dynamo, now_ms: i64, fields: Fields<'_>) -> DynamoResult<Value> {
    refuse_streams(fields)?;
    let name = fields.table()?;
    let definitions = definitions(fields)?.unwrap_or_default();
    let billing = match (billing_mode(fields)?, throughput(fields)?) {
        (Some(true), Some(_)) => return Err(paid_twice()),
        (Some(true), None) => Some(Billing::OnDemand),
        (Some(false), None) => return Err(no_throughput()),
        (_, throughput) => throughput.map(Billing::Provisioned),
    };
    let mut indexes = Vec::new();
    for change in fields.list("GlobalSecondaryIndexUpdates")?.unwrap_or_default() {
        let change = Fields::of(change)?;
        let (create, update) = (change.object("Create")?, change.object("Update")?);
        indexes.push(match (create, update, change.object("Delete")?) {
            (Some(create), None, None) => IndexChange::Create(index_spec(create, &definitions, false)?),
            (None, Some(update), None) => IndexChange::Update(
                update.required_string("IndexName")?.to_owned(),
                throughput(update)?.ok_or_else(|| absent("ProvisionedThroughput"))?,
            ),
            (None, None, Some(delete)) => {
                IndexChange::Delete(delete.required_string("IndexName")?.to_owned())
            }
            _ => {
                return Err(ApiError::invalid_parameter(
                    "Exactly one of Create, Update or Delete must be given in a GlobalSecondaryIndexUpdate",
                ));
            }
        });
    }
    let request = UpdateTable {
        name,
        definitions,
        billing,
        indexes,
        deletion_protection: fields.boolean("DeletionProtectionEnabled")?,
        class: class(fields)?,
    };
    dynamo.update_table(now_ms, &request)?;
    described(dynamo, &request.name, "TableDescription")
}

/// `DescribeTable`
pub(super) fn describe(dynamo: &mut Dynamo, now_ms: i64, fields: Fields<'_>) -> DynamoResult<Value> {
    let name = fields.table()?;
    dynamo.describe_table(now_ms, &name)?;
    described(dynamo, &name, "Table")
}

/// `DeleteTable`
pub(super) fn delete(dynamo: &mut Dynamo, now_ms: i64, fields: Fields<'_>) -> DynamoResult<Value> {
    let name = fields.table()?;
    dynamo.delete_table(now_ms, &name)?;
    described(dynamo, &name, "TableDescription")
}

/// `ListTables`
pub(super) fn list(dynamo: &mut Dynamo, now_ms: i64, fields: Fields<'_>) -> DynamoResult<Value> {
    let limit = fields.count("Limit")?;
    let page = dynamo.list_tables(now_ms, fields.string("ExclusiveStartTableName")?, limit)?;
    let mut body = json!({ "TableNames": page.names });
    if let Some(last) = page.last {
        body["LastEvaluatedTableName"] = json!(last);
    }
    Ok(body)
}

fn described(dynamo: &Dynamo, name: &str, member: &str) -> DynamoResult<Value> {
    let table = dynamo.table(name).ok_or_else(|| ApiError::no_table(name))?;
    Ok(json!({ member: describe_table(dynamo, table) }))
}

fn definitions(fields: Fields<'_>) -> DynamoResult<Option<Vec<KeyAttribute>>> {
    let Some(list) = fields.list("AttributeDefinitions")? else {
        return Ok(None);
    };
    let types = [("B", KeyType::B), ("N", KeyType::N), ("S", KeyType::S)];
    let mut definitions: Vec<KeyAttribute> = Vec::new();
    for definition in list {
        let definition = Fields::of(definition)?;
        let name = definition.required_string("AttributeName")?;
        if !(1..=255).contains(&name.len()) {
            return Err(ApiError::unmet(
                "Value at 'attributeDefinitions.member.attributeName'",
                "have length between 1 and 255",
            ));
        }
        let key_type = definition.choice("AttributeType", &types)?.ok_or_else(|| absent("AttributeType"))?;
        if definitions.iter().any(|other| other.name == name) {
            return Err(ApiError::invalid_parameter(format_args!(
                "Duplicate AttributeName in AttributeDefinitions: {name}"
            )));
        }
        definitions.push(KeyAttribute { name: name.to_owned().into(), key_type });
    }
    Ok(Some(definitions))
}

fn schema(fields: Fields<'_>, definitions: &[KeyAttribute]) -> DynamoResult<KeySchema> {
    let list = fields.list("KeySchema")?.ok_or_else(|| absent("KeySchema"))?;
    if !(1..=2).contains(&list.len()) {
        return Err(ApiError::unmet("Value at 'keySchema'", "have length between 1 and 2"));
    }
    let mut parts = Vec::new();
    for part in list {
        let part = Fields::of(part)?;
        let hash = part.choice("KeyType", &[("HASH", true), ("RANGE", false)])?;
        parts.push((part.required_string("AttributeName")?, hash.ok_or_else(|| absent("KeyType"))?));
    }
    let names: Vec<&str> = parts.iter().map(|(name, _)| *name).collect();
    let find = |name: &str| {
        definitions.iter().find(|definition| definition.name == name).cloned().ok_or_else(|| {
            let defined: Vec<&str> = definitions.iter().map(|definition| definition.name.as_ref()).collect();
            ApiError::invalid_parameter(format_args!(
                "Some index key attributes are not defined in AttributeDefinitions. Keys: [{}], \
                 AttributeDefinitions: [{}]",
                names.join(", "),
                defined.join(", ")
            ))
        })
    };
    let invalid = |place: &str, role: &str| {
        ApiError::validation(format!(
            "Invalid KeySchema: The {place} KeySchemaElement is not a {role} key type"
        ))
    };
    match parts.as_slice() {
        [(_, false), ..] => Err(invalid("first", "HASH")),
        [_, (_, true)] => Err(invalid("second", "RANGE")),
        [(first, _), (second, _)] if first == second => Err(ApiError::validation(
            "Both the Hash Key and the Range Key element in the KeySchema have the same name",
        )),
        [(first, _), rest @ ..] => Ok(KeySchema {
            partition: find(first)?,
            sort: rest.first().map(|(second, _)| find(second)).transpose()?,
        }),
        [] => Err(absent("KeySchema")),
    }
}

fn index_spec(fields: Fields<'_>, definitions: &[KeyAttribute], local: bool) -> DynamoResult<IndexSpec> {
    let projection = fields.required_object("Projection")?;
    let extra = projection.strings("NonKeyAttributes")?;
    let kind = projection.one_of("ProjectionType", &["ALL", "INCLUDE", "KEYS_ONLY"])?;
    let projection = match (kind, extra) {
        (None, _) => return Err(ApiError::invalid_parameter("Unknown ProjectionType: null")),
        (Some("INCLUDE"), names) => {
            IndexProjection::Include(names.unwrap_or_default().into_iter().map(str::to_owned).collect())
        }
        (Some(kind), Some(_)) => {
            return Err(ApiError::invalid_parameter(format_args!(
                "ProjectionType is {kind}, but NonKeyAttributes is specified"
            )));
        }
        (Some("ALL"), None) => IndexProjection::All,
        (Some(_), None) => IndexProjection::KeysOnly,
    };
    Ok(IndexSpec {
        name: fields.required_string("IndexName")?.to_owned(),
        schema: schema(fields, definitions)?,
        projection,
        throughput: throughput(fields)?,
        local,
    })
}

fn check_local(index: &IndexSpec, table: &KeySchema) -> DynamoResult<()> {
    let name = &index.name;
    if !index.local {
        return Ok(());
    }
    if table.sort.is_none() {
        return Err(ApiError::invalid_parameter(
            "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex",
        ));
    }
    if index.schema.sort.is_none() {
        return Err(ApiError::invalid_parameter(format_args!(
            "Index KeySchema does not have a range key for index: {name}"
        )));
    }
    if index.schema.partition != table.partition {
        return Err(ApiError::invalid_parameter(format_args!(
            "Index KeySchema does not have the same leading hash key as table KeySchema for index: {name}. \
             index hash key: {}, table hash key: {}",
            index.schema.partition.name, table.partition.name
        )));
    }
    Ok(())
}

fn throughput(fields: Fields<'_>) -> DynamoResult<Option<Throughput>> {
    let Some(throughput) = fields.object("ProvisionedThroughput")? else {
        return Ok(None);
    };
    let units = |name: &str| throughput.number(name)?.ok_or_else(|| absent(name));
    Ok(Some(Throughput { read: units("ReadCapacityUnits")?, write: units("WriteCapacityUnits")? }))
}

fn paid_twice() -> ApiError {
    ApiError::invalid_parameter(
        "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST",
    )
}

fn no_throughput() -> ApiError {
    ApiError::invalid_parameter(
        "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED",
    )
}

/// Whether the request asks for on-demand billing, where it says.
fn billing_mode(fields: Fields<'_>) -> DynamoResult<Option<bool>> {
    fields.choice("BillingMode", &[("PROVISIONED", false), ("PAY_PER_REQUEST", true)])
}

fn class(fields: Fields<'_>) -> DynamoResult<Option<String>> {
    Ok(fields.one_of("TableClass", &["STANDARD", "STANDARD_INFREQUENT_ACCESS"])?.map(str::to_owned))
}

/// `Tags`, where given.
pub(super) fn tags(fields: Fields<'_>) -> DynamoResult<Option<BTreeMap<String, String>>> {
    let Some(list) = fields.list("Tags")? else {
        return Ok(None);
    };
    let mut tags = BTreeMap::new();
    for tag in list {
        let tag = Fields::of(tag)?;
        let (key, value) = (tag.required_string("Key")?, tag.required_string("Value")?);
        if tags.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(ApiError::invalid_parameter(format_args!("Duplicate tag key: {key}")));
        }
    }
    Ok(Some(tags))
}

fn refuse_streams(fields: Fields<'_>) -> DynamoResult<()> {
    match fields.object("StreamSpecification")? {
        Some(stream) if stream.flag("StreamEnabled")? => {
            Err(ApiError::validation("Streams of tables are not offered by this in-memory DynamoDB"))
        }
        _ => Ok(()),
    }
}
