//! Splits a request's parameters into expressions and legacy forms, and turns both into trees.

use super::body::{Fields, string};
use super::value::parse_attribute;
use crate::constraint::refuse_if;
use crate::dynamo::error::{ApiError, DynamoResult};
use crate::dynamo::expr::{
    Binder, Condition, KeyCondition, Projection, Update, parse_condition, parse_filter, parse_key_condition,
    parse_projection, parse_update,
};
use leasehold_engine::table::{AttributeName, AttributeValue};
use serde_json::Value;
use std::collections::BTreeSet;

/// The expressions of a request, on their way from text to trees.
pub(super) struct Expressions<'a> {
    fields: Fields<'a>,
    binder: Binder,
}

impl<'a> Expressions<'a> {
    /// Checks that expressions and legacy parameters are not mixed, and reads names and values.
    pub(super) fn read(fields: Fields<'a>, expressions: &[&str], legacy: &[&str]) -> DynamoResult<Self> {
        let present = |names: &[&str]| -> Vec<String> {
            names.iter().filter(|name| fields.has(name)).map(|name| (*name).to_owned()).collect()
        };
        let (new, old) = (present(expressions), present(legacy));
        if !new.is_empty() && !old.is_empty() {
            return Err(ApiError::validation(format!(
                "Can not use both expression and non-expression parameters in the same request: \
                 Non-expression parameters: {{{}}} Expression parameters: {{{}}}",
                old.join(", "),
                new.join(", ")
            )));
        }
        refuse_if(fields.has("ExpressionAttributeNames") && new.is_empty(), || {
            ApiError::validation("ExpressionAttributeNames can only be specified when using expressions")
        })?;
        let valued: Vec<&str> =
            expressions.iter().copied().filter(|name| *name != "ProjectionExpression").collect();
        if fields.has("ExpressionAttributeValues") && !valued.iter().any(|name| fields.has(name)) {
            return Err(ApiError::validation(format!(
                "ExpressionAttributeValues can only be specified when using expressions: {} {} null",
                valued.join(" and "),
                if valued.len() > 1 { "are" } else { "is" }
            )));
        }
        let read_name = |(key, name): (&String, _)| Ok((key.clone(), string(name)?.to_owned()));
        let names = fields.object("ExpressionAttributeNames")?;
        let names = names.map(|names| names.each().map(read_name).collect::<DynamoResult<_>>());
        let names = names.transpose()?;
        let values = fields.object("ExpressionAttributeValues")?;
        let values = values.map(|values| values.each().map(read_value).collect::<DynamoResult<_>>());
        Ok(Self { fields, binder: Binder::new(names, values.transpose()?)? })
    }

    fn parsed<T>(
        &mut self, parameter: &str, parse: fn(&str, &mut Binder) -> DynamoResult<T>,
    ) -> DynamoResult<Option<T>> {
        self.fields.string(parameter)?.map(|text| parse(text, &mut self.binder)).transpose()
    }

    /// The `ConditionExpression`.
    pub(super) fn condition(&mut self) -> DynamoResult<Option<Condition>> {
        self.parsed("ConditionExpression", parse_condition)
    }

    /// The `FilterExpression`.
    pub(super) fn filter(&mut self) -> DynamoResult<Option<Condition>> {
        self.parsed("FilterExpression", parse_filter)
    }

    /// The `KeyConditionExpression`.
    pub(super) fn key_condition(&mut self) -> DynamoResult<Option<KeyCondition>> {
        self.parsed("KeyConditionExpression", parse_key_condition)
    }

    /// The `UpdateExpression`.
    pub(super) fn update(&mut self) -> DynamoResult<Option<Update>> {
        self.parsed("UpdateExpression", parse_update)
    }

    /// The `ProjectionExpression`, or the legacy `AttributesToGet`.
    pub(super) fn projection(&mut self) -> DynamoResult<Option<Projection>> {
        let parsed = self.parsed("ProjectionExpression", parse_projection)?;
        let Some(names) = self.fields.strings("AttributesToGet")? else {
            return Ok(parsed);
        };
        if names.is_empty() {
            let bound = "have length greater than or equal to 1";
            return Err(ApiError::unmet("Value '[]' at 'attributesToGet'", bound));
        }
        let mut seen = BTreeSet::new();
        for name in &names {
            refuse_if(!seen.insert(name), || {
                ApiError::invalid_parameter(format_args!("Duplicate value in attribute name: {name}"))
            })?;
        }
        Ok(Some(Projection::of_attributes(names.into_iter().map(str::to_owned))))
    }

    /// Refuses names and values without a use in any expression.
    pub(super) fn finish(&self) -> DynamoResult<()> {
        self.binder.finish()
    }
}

fn read_value((key, value): (&String, &Value)) -> DynamoResult<(AttributeName, AttributeValue)> {
    let value = parse_attribute(value).map_err(|error| match error.code {
        "ValidationException" => ApiError::validation(format!(
            "ExpressionAttributeValues contains invalid value: {} for key {key}",
            error.message
        )),
        _ => error,
    })?;
    Ok((AttributeName::Owned(key.clone()), value))
}
