//! `portico history --at`: prints the objects that existed at a past time.

use std::io::Write;

use bytes::Bytes;
use portico_proto::client::Client;
use portico_proto::history::list_request::At;
use portico_proto::history::{ListRequest, Target};
use portico_proto::objects::Resource;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tonic::Code;

use super::{History, parse_raw};
use crate::client_verbs::failure::Failure;
use crate::client_verbs::get::qualified_name;
use crate::client_verbs::output::{self, Format};
use crate::client_verbs::table::Table;

/// List of objects to print as JSON or YAML.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List {
    api_version: &'static str,
    kind: &'static str,
    metadata: ListMeta,
    items: Vec<Box<RawValue>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListMeta {
    resource_version: String,
}

/// Fields of an object that the table shows.
#[derive(Deserialize)]
struct ObjectHead {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    resource_version: String,
}

impl History {
    /// Prints the objects that existed at the time `at`.
    pub(super) async fn print_objects(
        &self,
        client: &Client,
        resource: &Resource,
        name: Option<&str>,
        at: At,
    ) -> Result<(), Failure> {
        let mut target = self.object.target(resource, name.unwrap_or_default(), &self.control)?;
        if self.all_namespaces {
            target.namespace.clear();
        }
        let (revision, objects) = objects_at(client, target, at).await?;
        match self.output {
            Format::Json | Format::Yaml => {
                let items = objects.iter().map(|json| parse_raw(json)).collect::<Result<_, _>>()?;
                let metadata = ListMeta { resource_version: revision.to_string() };
                output::value(&List { api_version: "v1", kind: "List", metadata, items }, self.output)?;
            }
            format => {
                let heads = objects.iter().map(|json| serde_json::from_slice::<ObjectHead>(json));
                let heads = heads.collect::<Result<Vec<_>, _>>()?;
                let name = |head: &ObjectHead| format!("{}/{}", qualified_name(resource), head.metadata.name);
                match format {
                    Format::Name => output::lines(heads.iter().map(name))?,
                    _ => output::lines(objects_table(&heads).lines(None))?,
                }
                if heads.is_empty() {
                    writeln!(std::io::stderr(), "No resources found at revision {revision}")?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the revision of the time `at`, and the objects that existed then.
async fn objects_at(client: &Client, target: Target, at: At) -> Result<(i64, Vec<Bytes>), Failure> {
    let request = ListRequest { target: Some(target), at: Some(at) };
    let mut parts = client.history().list(request).await?.into_inner();
    let (mut revision, mut objects) = (0, Vec::new());
    while let Some(part) = parts.message().await.map_err(with_retention_hint)? {
        revision = part.revision;
        objects.extend(part.objects);
        for unreadable in part.unreadable {
            writeln!(std::io::stderr(), "cannot be read: {unreadable}")?;
        }
    }
    Ok((revision, objects))
}

/// Adds a hint about `--history-retention` if the requested states are no longer kept.
fn with_retention_hint(status: tonic::Status) -> Failure {
    match status.code() {
        Code::OutOfRange | Code::Aborted | Code::FailedPrecondition => Failure::Hinted(
            status.message().to_owned(),
            "--history-retention of the control service sets how long states are kept",
        ),
        _ => status.into(),
    }
}

fn objects_table(heads: &[ObjectHead]) -> Table {
    let mut table = Table::new(&["namespace", "name", "revision"]);
    for ObjectHead { metadata } in heads {
        table.rows.push(vec![
            metadata.namespace.as_str().into(),
            metadata.name.as_str().into(),
            metadata.resource_version.as_str().into(),
        ]);
    }
    table
}
