//! `portico get`: objects, as the server's tables or whole.

use std::io::Write;

use clap::builder::NonEmptyStringValueParser;
use portico_machinery::object::{Node, NotAnObject};
use portico_machinery::{GroupVersion, Object};
use portico_proto::client::{Client, ListOptions, ResourceClient};
use portico_proto::objects::Resource;

use super::failure::Failure;
use super::namespace::Namespace;
use super::outcome::{DEADLINE, Ending};
use super::output::{self, Format, Printing};
use super::served_table::{ACCEPT, ServedTable, Shown};
use crate::control_service::ControlService;

/// Show objects that are kept here: APIServices, built-in kinds, custom resources
///
/// What backends serve, kubectl shows. Exit code 0: shown, even if there is none; 2: not.
#[derive(Debug, clap::Args)]
pub(super) struct Get {
    /// A plural, singular, short name, kind or category; with its group where that is not clear: `deployments.apps`.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    resource: String,
    /// One object; otherwise all.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
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
    #[command(flatten)]
    printing: Printing,
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
    // As kubectl prints it: what is listed of several resources is one document, too.
    let mut list = Object::default();
    list.set(&["apiVersion"], "v1");
    list.put(&["items"], Node::from_iter([]));
    list.set(&["kind"], "List");
    list.set(&["metadata", "resourceVersion"], "");
    for resource in resources {
        if resource.namespaced && get.all_namespaces && get.name.is_some() {
            let why = "a resource cannot be retrieved by name across all namespaces";
            return Err(Failure::Usage(why.to_owned()));
        }
        let prefix = format!("{}/", qualified(&resource));
        let namespace = match resource.namespaced && !get.all_namespaces {
            true => get.namespace.of(&get.control)?,
            false => String::new(),
        };
        let objects = client.resource(resource, &namespace);
        let printed = match (get.printing.is_whole(), &get.name) {
            (true, Some(name)) => get.print_whole(&objects, name).await?,
            (true, None) => get.collect(&objects, &mut list).await?,
            (false, _) => get.print(&objects, &prefix, several, found > 0).await?,
        };
        found += printed;
    }
    if get.printing.is_whole() && get.name.is_none() {
        return Ok(get.printing.object(list).map(|()| Ending::Well)?);
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
        let table = self.table(objects).await?;
        if self.printing.output == Format::Name {
            output::lines(table.rows.iter().map(|row| format!("{prefix}{}", row.name())))?;
        } else if !table.rows.is_empty() {
            let shown = Shown {
                wide: self.printing.output == Format::Wide,
                namespaces: self.all_namespaces && objects.resource().namespaced,
                prefix: if several { prefix } else { "" },
            };
            let gap = gap.then(String::new);
            output::lines(gap.into_iter().chain(table.shown(shown).lines(None)))?;
        }
        Ok(table.rows.len())
    }

    /// Prints the one object.
    async fn print_whole(&self, objects: &ResourceClient, name: &str) -> Result<usize, Failure> {
        self.printing.object(read_object(&objects.get(name).await?)?)?;
        Ok(1)
    }

    /// Puts objects of one resource into a list, each with its kind as in a manifest; how many.
    async fn collect(&self, objects: &ResourceClient, list: &mut Object) -> Result<usize, Failure> {
        let found = read_object(&self.read(objects).await?)?;
        let Resource { group, version, kind, .. } = objects.resource();
        let api_version = GroupVersion::new(group, version).to_string();
        let items = found.at(&["items"]);
        for item in items.items().filter_map(|item| item.node()) {
            let mut object = Object::from_node(item).map_err(unreadable)?;
            object.set(&["apiVersion"], &api_version);
            object.set(&["kind"], kind);
            object.sort_keys();
            list.push_node(&["items"], object.into_node());
        }
        Ok(items.len())
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

/// An object that was answered.
pub(super) fn read_object(json: &[u8]) -> Result<Object, Failure> {
    Object::from_json(json).map_err(unreadable)
}

fn unreadable(error: NotAnObject) -> Failure {
    Failure::Facade(format!("an answer cannot be read: {error}"))
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
