//! The table, and the result of watching the table.

use crate::clients::Clients;
use crate::exit::Failure;
use crate::names;
use crate::streams;
use clap::Args;
use leasehold::admin::{Admin, AdminError, NamedStream, TableReport, View};
use leasehold::format::{Format, LeaseFormat};
use leasehold_engine::time::Span;

#[derive(Debug, Args)]
pub(super) struct TableArgs {
    /// The application's name; the lease table has the same name.
    #[arg(long, value_name = "NAME", required_unless_present = "table")]
    application: Option<String>,
    /// The lease table's name, instead of the application's.
    #[arg(long, value_name = "NAME", conflicts_with = "application")]
    table: Option<String>,
    /// How leases are kept in the table: kcl, vmware-go-kcl, kcl-rb or kinsumer.
    #[arg(long, alias = "dialect", default_value_t)]
    pub(super) format: Format,
    /// Another server than AWS, for both services, such as `leasehold local`.
    #[arg(long, value_name = "URL")]
    endpoint_url: Option<String>,
    /// The AWS region.
    #[arg(long)]
    region: Option<String>,
    /// How long the table is watched to see who lives, in seconds: the fleet's renewal interval at least. 0: not at all.
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(..=3_600))]
    watch: u64,
    /// How long a lease of the fleet lasts, in seconds; by default 10, and 300 with --format kinsumer. A lease whose row stood
    /// still for as long has expired.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    lease_duration: Option<u64>,
    /// The results as one JSON object.
    #[arg(long)]
    pub(super) json: bool,
}

/// A table, opened.
pub(super) struct Table {
    pub(super) clients: Clients,
    pub(super) admin: Admin,
    /// The lease table's own name.
    pub(super) name: String,
    format: Format,
    watch: Span,
    pub(super) lease_duration: Span,
}

impl TableArgs {
    pub(super) async fn open(&self) -> Result<Table, Failure> {
        let application = self.application()?;
        names::table("--application or --table", &application)?;
        let clients = Clients::from_environment(self.endpoint_url.as_deref(), self.region.clone()).await?;
        let admin = Admin::new(&clients.dynamodb, &application, self.format)?;
        let lasts = if self.format.membership().is_some() { 300 } else { 10 };
        Ok(Table {
            clients,
            admin,
            name: self
                .format
                .membership()
                .map_or(application.clone(), |membership| membership.leases(&application)),
            format: self.format,
            watch: Span::from_secs(self.watch),
            lease_duration: Span::from_secs(self.lease_duration.unwrap_or(lasts)),
        })
    }

    /// The application's name. Where an application has several tables, it follows from the lease table's.
    pub(super) fn application(&self) -> Result<String, Failure> {
        let given = self.application.clone().or_else(|| self.table.clone());
        let name = given.unwrap_or_default();
        let (Some(membership), Some(table)) = (self.format.membership(), &self.table) else {
            return Ok(name);
        };
        let ending = membership.leases("");
        table
            .strip_suffix(&ending)
            .map(str::to_owned)
            .ok_or_else(|| {
                Failure::unusable(format!(
                    "expected --table to end with {ending:?} with --format {}, found {table:?}; name that table, or the application \
                     with --application",
                    self.format
                ))
            })
    }
}

impl Table {
    /// Whether the streams that are given are of an application of several. A name alone is where the table holds leases of several.
    pub(super) async fn are_several(&self, given: &[String]) -> Result<bool, Failure> {
        self.are_several_in(given, &self.admin.view().await?)
    }

    /// The same, with the rows of the table.
    pub(super) fn are_several_in(&self, given: &[String], view: &View) -> Result<bool, Failure> {
        are_several(given, view, self.format).map_err(|expected| {
            Failure::unusable(format!("expected --stream to be {expected}, found {}", given.join(" and ")))
        })
    }

    /// The given streams. A stream may be named twice, in two ways.
    pub(super) async fn streams(&self, given: &[String], several: bool) -> Result<Vec<NamedStream>, Failure> {
        let mut streams: Vec<NamedStream> = Vec::new();
        for text in given {
            let stream = self.stream(text, several).await?;
            if streams.iter().all(|known| known.id() != stream.id()) {
                streams.push(stream);
            }
        }
        Ok(streams)
    }

    /// The given stream: the only stream of its application, or one of several.
    pub(super) async fn stream(&self, given: &str, several: bool) -> Result<NamedStream, Failure> {
        match several {
            true => Ok(streams::find_one(&self.clients.kinesis, given).await?.into()),
            false => Ok(given.into()),
        }
    }

    /// The rows after the watch, and the report of the watch.
    pub(super) async fn watched(&self) -> Result<(View, TableReport), Failure> {
        Ok(self.admin.watch(self.watch, self.lease_duration).await?)
    }
}

/// Whether the given streams belong to an application of several streams. The error names the expectation.
fn are_several(given: &[String], view: &View, format: Format) -> Result<bool, String> {
    let named = view.streams();
    let several = streams::are_several(given);
    if several && format != Format::Kcl {
        return Err(format!(
            "the name of one stream with --format {format}, in whose tables there are leases of one stream alone"
        ));
    }
    if several && named.iter().eq([&None]) {
        return Err(
            "the name of one stream, as the keys of all leases in this table are shard ids alone, without a stream".to_owned(),
        );
    }
    Ok(several || (!named.is_empty() && !named.contains(&None)))
}

impl From<AdminError> for Failure {
    fn from(error: AdminError) -> Self {
        Failure::under_way(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::{Checkpoint, LeaseRow};

    #[test]
    fn a_name_alone_is_one_of_several_where_all_keys_name_streams() {
        let is = |keys: &[&str], given: &[&str], format| {
            let rows = keys.iter().map(|key| LeaseRow::new((*key).into(), Checkpoint::TrimHorizon));
            let mut view = View::default();
            view.leases.extend(rows.map(|row| (row.key.clone(), row)));
            let given: Vec<String> = given.iter().map(ToString::to_string).collect();
            are_several(&given, &view, format)
        };
        let (plain, keyed) = ("shardId-000000000000", "1:orders:2:shardId-000000000000");
        let kcl = |keys: &[&str], given: &[&str]| is(keys, given, Format::Kcl);
        for keys in [&[][..], &[plain], &[plain, keyed]] {
            assert_eq!(kcl(keys, &["orders"]), Ok(false), "{keys:?}");
        }
        assert_eq!(kcl(&[keyed], &["orders"]), Ok(true));
        for keys in [&[][..], &[keyed], &[plain, keyed]] {
            assert_eq!(kcl(keys, &["orders", "returns"]), Ok(true), "{keys:?}");
        }
        let told = kcl(&[plain], &["1:orders:2"]).unwrap_err();
        assert!(told.contains("shard ids alone"), "{told}");
        let told = is(&[], &["orders", "returns"], Format::VmwareGoKcl).unwrap_err();
        assert!(told.contains("--format vmware-go-kcl"), "{told}");
    }
}
