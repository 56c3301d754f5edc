//! `portico get`: objects, as the server's tables or whole.

use std::io::Write;

use portico_proto::client::{Client, ListOptions, ResourceClient};
use portico_proto::objects::Resource;

use super::failure::Failure;
use super::namespace::Namespace;
use super::outcome::{DEADLINE, Ending};
use super::output::{self, Format};
use super::served_table::{ACCEPT, ServedTable, Shown};
use crate::control_service::ControlService;

/// Show objects that are kept here: APIServices, built-in kinds, custom resources
///
/// What backends serve, kubectl shows. Exit code 0: shown, even if there is none; 2: not.
#[derive(Debug, clap::Args)]
pub(super) struct Get {
    /// A plural, singular, short name, kind or category; with its group where that is not clear: `deployments.apps`.
    resource: String,
    /// One object; otherwise all.
    name: Option<String>,
    #[command(flatten)]
    namespace: Namespace,
    /// Objects of all namespaces.
    #[arg(long, short = 'A')]
    all_namespaces: bool,
    /// Only objects whose labels match.
    #[arg(long, short = 'l', conflicts_with = "name", default_value = "", hide_default_value = true)]
    selector: String,
    /// Only objects whose fields match.
    #[arg(long, conflicts_with = "name", default_value = "", hide_default_value = true)]
    field_selector: String,
    /// How objects are printed.
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    control: ControlService,
}

/// Prints what was asked for.
pub(super) async fn run(get: &Get) -> Result<Ending, Failure> {
    let client = get.control.client(DEADLINE)?;
    let resources = meant(&client, &get.resource).await?;
    let (mut found, several) = (0, resources.len() > 1);
    if several && get.name.is_some() {
        return Err(Failure::Usage(format!("{} are several resources: name one", get.resource)));
    }
    for resource in resources {
        let prefix = format!("{}/", qualified(&resource));
        let namespace = match resource.namespaced && !get.all_namespaces {
            true => get.namespace.of(&get.control)?,
            false => String::new(),
        };
        let objects = client.resource(resource, &namespace);
        let printed = get.print(&objects, &prefix, several, found > 0).await?;
        found += printed;
    }
    if found == 0 {
        writeln!(std::io::stderr(), "No resources found")?;
    }
    Ok(Ending::Well)
}

impl Get {
    /// Prints objects of one resource; how many.
    async fn print(
        &self,
        objects: &ResourceClient,
        prefix: &str,
        several: bool,
        gap: bool,
    ) -> Result<usize, Failure> {
        match self.output {
            Format::Json | Format::Yaml => {
                let json = self.read(objects).await?;
                output::document(&json, self.output)?;
                Ok(1)
            }
            Format::Name => {
                let table = self.table(objects).await?;
                output::lines(table.rows.iter().map(|row| format!("{prefix}{}", row.name())))?;
                Ok(table.rows.len())
            }
            Format::Table | Format::Wide => {
                let table = self.table(objects).await?;
                if table.rows.is_empty() {
                    return Ok(0);
                }
                let shown = Shown {
                    wide: self.output == Format::Wide,
                    namespaces: self.all_namespaces && objects.resource().namespaced,
                    prefix: if several { prefix } else { "" },
                };
                let gap = gap.then(String::new);
                output::lines(gap.into_iter().chain(table.shown(shown).lines(None)))?;
                Ok(table.rows.len())
            }
        }
    }

    async fn table(&self, objects: &ResourceClient) -> Result<ServedTable, Failure> {
        let json = self.read(&objects.clone().accepting(ACCEPT)).await?;
        Ok(serde_json::from_slice(&json)?)
    }

    async fn read(&self, objects: &ResourceClient) -> Result<Vec<u8>, Failure> {
        let options = ListOptions {
            label_selector: self.selector.clone(),
            field_selector: self.field_selector.clone(),
            ..ListOptions::default()
        };
        Ok(match &self.name {
            Some(name) => objects.get(name).await?,
            None => objects.list(&options).await?,
        })
    }
}

/// The resources of a name, each in its preferred version: all of a category, else the first.
pub(super) async fn meant(client: &Client, name: &str) -> Result<Vec<Resource>, Failure> {
    let mut found = client.resources(name).await?;
    found.dedup_by(|next, first| (&next.group, &next.resource) == (&first.group, &first.resource));
    let word = name.to_lowercase();
    let is_category = |resource: &Resource| {
        resource.categories.contains(&word)
            && word != resource.resource
            && word != resource.singular
            && !resource.short_names.contains(&word)
    };
    if !found.iter().all(is_category) {
        found.retain(|resource| !is_category(resource));
        found.truncate(1);
    }
    if found.is_empty() {
        return Err(Failure::Usage(format!("the control service keeps no resource named {name:?}")));
    }
    Ok(found)
}

/// `deployment.apps`, as kubectl prints it.
pub(super) fn qualified(resource: &Resource) -> String {
    let dot = if resource.group.is_empty() { "" } else { "." };
    format!("{}{dot}{}", resource.singular, resource.group)
}
