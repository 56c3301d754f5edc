//! `portico apply`: server-side apply of manifests.

use std::io::Write;
use std::path::PathBuf;

use portico_proto::client::{ApplyOptions, Client};
use serde::Deserialize;

use super::failure::Failure;
use super::get::{qualified, read_object};
use super::namespace::Namespace;
use super::outcome::{DEADLINE, Ending};
use super::output::{self, Format, Printing};
use crate::control_service::ControlService;
use crate::documents::{self, Document};

/// Create objects, or change just the fields that manifests name (server-side apply)
///
/// In the order of the manifests; of a list, its items. Exit code 0: all were applied; 2: one was refused, and nothing behind it was sent.
#[derive(Debug, clap::Args)]
pub(super) struct Apply {
    /// Files of manifests, YAML (several documents each) or JSON; - reads what is piped in.
    #[arg(long = "filename", short, required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Of objects whose manifest names none.
    #[command(flatten)]
    namespace: Namespace,
    /// Who owns the fields.
    #[arg(long, default_value = "portico")]
    field_manager: String,
    /// Take over fields that others own.
    #[arg(long)]
    force_conflicts: bool,
    /// Have everything checked, write nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    printing: Printing,
    #[command(flatten)]
    control: ControlService,
}

/// Of an object that was answered.
#[derive(Deserialize)]
struct Applied {
    metadata: Name,
}

#[derive(Deserialize)]
struct Name {
    name: String,
}

/// Applies all.
pub(super) async fn run(apply: &Apply) -> Result<Ending, Failure> {
    let documents = documents::objects(&apply.files)?;
    if documents.is_empty() {
        return Err(Failure::Usage("there is no object in what was given".to_owned()));
    }
    let client = apply.control.client(DEADLINE)?;
    for document in documents {
        apply.one(&client, document).await?;
    }
    Ok(Ending::Well)
}

impl Apply {
    async fn one(&self, client: &Client, document: Document) -> Result<(), Failure> {
        let Document { from, manifest, head, .. } = document;
        let refused = |status| Failure::RefusedDocument { from: from.clone(), status: Box::new(status) };
        let usage = |reason: &str| Failure::Usage(format!("{from}: {reason}"));
        if head.kind.is_empty() || head.api_version.is_empty() || head.metadata.name.is_empty() {
            return Err(usage("a manifest needs apiVersion, kind and metadata.name"));
        }
        let (group, version) = head.api_version.split_once('/').unwrap_or(("", &head.api_version));
        let name = format!("{}.{version}.{group}", head.kind);
        let found = client.resources(&name).await.map_err(refused)?;
        let resource = found.into_iter().next();
        let resource = resource
            .ok_or_else(|| usage(&format!("no kind {} of {} is kept here", head.kind, head.api_version)))?;
        let namespace = match (resource.namespaced, head.metadata.namespace.as_str()) {
            (false, _) => String::new(),
            (true, "") => self.namespace.of(&self.control)?,
            (true, named) => named.to_owned(),
        };
        let printed = qualified(&resource);
        let options = ApplyOptions {
            field_manager: self.field_manager.clone(),
            force: self.force_conflicts,
            dry_run: self.dry_run,
        };
        let objects = client.resource(resource, &namespace);
        let answer = objects.apply(&head.metadata.name, manifest, &options).await.map_err(refused)?;
        for warning in &answer.warnings {
            writeln!(std::io::stderr(), "Warning: {warning}")?;
        }
        self.print(&printed, &answer.body)
    }

    fn print(&self, resource: &str, json: &[u8]) -> Result<(), Failure> {
        if self.printing.is_whole() {
            return Ok(self.printing.object(read_object(json)?)?);
        }
        let Applied { metadata: Name { name } } = serde_json::from_slice(json)?;
        let done = match (self.printing.output, self.dry_run) {
            (Format::Name, _) => "",
            (_, true) => " serverside-applied (server dry run)",
            (_, false) => " serverside-applied",
        };
        Ok(output::lines([format!("{resource}/{name}{done}")])?)
    }
}
