//! `portico apply`: server-side apply of manifests.

use std::io::Write;
use std::path::PathBuf;

use portico_proto::client::{ApplyOptions, Client};
use serde::Deserialize;

use super::failure::Failure;
use super::get::{qualified_name, read_object};
use super::namespace::Namespace;
use super::outcome::{DEADLINE, Outcome};
use super::output::{self, Format, OutputArgs};
use crate::control_service::ControlService;
use crate::documents::{self, ManifestDocument};

/// Create or change objects from manifests (server-side apply)
///
/// Fields that a manifest omits keep their values, except fields that only this --field-manager applied before: these are removed.
/// Manifests are applied in the order given, the items of a list one by one.
///
/// Exit codes: 0 all manifests were applied; 2 a manifest was not applied, and later manifests were not sent.
#[derive(Debug, clap::Args)]
pub(crate) struct Apply {
    /// File of manifests in YAML or JSON; - reads standard input. May be repeated
    #[arg(long = "filename", short, required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    namespace: Namespace,
    /// Name of the field manager that owns the applied fields
    #[arg(long, default_value = "portico")]
    field_manager: String,
    /// Apply fields that other field managers own, and become their owner
    #[arg(long)]
    force_conflicts: bool,
    /// Validate on the server without writing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    printing: OutputArgs,
    #[command(flatten)]
    control: ControlService,
}

/// Part of the response that is printed.
#[derive(Deserialize)]
struct AppliedObject {
    metadata: ObjectName,
}

#[derive(Deserialize)]
struct ObjectName {
    name: String,
}

/// Applies all manifests in order, and stops at the first error.
pub(super) async fn run(apply: &Apply) -> Result<Outcome, Failure> {
    let documents = documents::objects(&apply.files)?;
    if documents.is_empty() {
        return Err(Failure::Usage("the files contain no object".to_owned()));
    }
    let client = apply.control.client(DEADLINE)?;
    for document in documents {
        apply.apply_document(&client, document).await?;
    }
    Ok(Outcome::Positive)
}

impl Apply {
    async fn apply_document(&self, client: &Client, document: ManifestDocument) -> Result<(), Failure> {
        let ManifestDocument { origin, manifest, head, .. } = document;
        let refused = |status| Failure::RefusedDocument { from: origin.clone(), status: Box::new(status) };
        let usage = |reason: &str| Failure::Usage(format!("{origin}: {reason}"));
        if head.kind.is_empty() || head.api_version.is_empty() || head.metadata.name.is_empty() {
            return Err(usage("a manifest needs apiVersion, kind and metadata.name"));
        }
        let (group, version) = head.api_version.split_once('/').unwrap_or(("", &head.api_version));
        let name = format!("{}.{version}.{group}", head.kind);
        let matches = client.resources(&name).await.map_err(refused)?;
        let resource = matches.into_iter().next();
        let resource = resource.ok_or_else(|| {
            usage(&format!("the control service has no kind {} in {}", head.kind, head.api_version))
        })?;
        let namespace = match (resource.namespaced, head.metadata.namespace.as_str()) {
            (false, _) => String::new(),
            (true, "") => self.namespace.resolve(&self.control)?,
            (true, namespace) => namespace.to_owned(),
        };
        let printed = qualified_name(&resource);
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
        let AppliedObject { metadata: ObjectName { name } } = serde_json::from_slice(json)?;
        let suffix = match (self.printing.output, self.dry_run) {
            (Format::Name, _) => "",
            (_, true) => " serverside-applied (server dry run)",
            (_, false) => " serverside-applied",
        };
        Ok(output::lines([format!("{resource}/{name}{suffix}")])?)
    }
}
