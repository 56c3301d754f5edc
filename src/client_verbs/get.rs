//! `portico get`: prints objects as tables rendered by the server, as JSON or as YAML.

use std::io::Write;

use clap::builder::NonEmptyStringValueParser;
use portico_machinery::object::{Node, NotAnObject};
use portico_machinery::{GroupVersion, Object};
use portico_proto::client::{Client, ListOptions, ResourceClient};
use portico_proto::objects::Resource;

use super::failure::Failure;
use super::namespace::Namespace;
use super::outcome::{DEADLINE, Outcome};
use super::output::{self, Format, OutputArgs};
use super::served_table::{ACCEPT, ServedTable, TableOptions};
use crate::control_service::ControlService;

/// Show stored objects: APIServices, built-in kinds and custom resources
///
/// Objects of aggregated APIs are stored by the backends of these APIs: use kubectl to show them.
///
/// Exit codes: 0 shown, even if there are no objects; 2 not shown.
#[derive(Debug, clap::Args)]
pub(crate) struct Get {
    /// Resource to show: plural, singular, short name, kind or category, with the group if ambiguous (`deployments.apps`)
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    resource: String,
    /// Name of the object; by default, all objects are shown
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    name: Option<String>,
    #[command(flatten)]
    namespace: Namespace,
    /// Show objects of all namespaces
    #[arg(long, short = 'A')]
    all_namespaces: bool,
    /// Show only objects whose labels match this selector, such as app=web
    #[arg(long, short = 'l', conflicts_with = "name", default_value = "", hide_default_value = true)]
    selector: String,
    /// Show only objects whose fields match this selector, such as metadata.name=web
    #[arg(long, conflicts_with = "name", default_value = "", hide_default_value = true)]
    field_selector: String,
    #[command(flatten)]
    printing: OutputArgs,
    #[command(flatten)]
    control: ControlService,
}

/// Prints the selected objects.
pub(super) async fn run(get: &Get) -> Result<Outcome, Failure> {
    let client = get.control.client(DEADLINE)?;
    let resources = find_resources(&client, &get.resource).await?;
    let (mut count, several) = (0, resources.len() > 1);
    if several && get.name.is_some() {
        return Err(several_resources(&get.resource));
    }
    // As in kubectl, JSON and YAML output is one List, even for several resources.
    let mut list = Object::default();
    list.set(&["apiVersion"], "v1");
    list.put(&["items"], Node::from_iter([]));
    list.set(&["kind"], "List");
    list.set(&["metadata", "resourceVersion"], "");
    for resource in resources {
        if resource.namespaced && get.all_namespaces && get.name.is_some() {
            let message = "a resource cannot be retrieved by name across all namespaces";
            return Err(Failure::Usage(message.to_owned()));
        }
        let prefix = format!("{}/", qualified_name(&resource));
        let namespace = match resource.namespaced && !get.all_namespaces {
            true => get.namespace.resolve(&get.control)?,
            false => String::new(),
        };
        let objects = client.resource(resource, &namespace);
        let printed = match (get.printing.is_whole(), &get.name) {
            (true, Some(name)) => get.print_whole(&objects, name).await?,
            (true, None) => get.collect(&objects, &mut list).await?,
            (false, _) => get.print(&objects, &prefix, several, count > 0).await?,
        };
        count += printed;
    }
    if get.printing.is_whole() && get.name.is_none() {
        return Ok(get.printing.object(list).map(|()| Outcome::Positive)?);
    }
    if count == 0 {
        writeln!(std::io::stderr(), "No resources found")?;
    }
    Ok(Outcome::Positive)
}

impl Get {
    /// Prints objects of one resource and returns their number.
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
            let options = TableOptions {
                wide: self.printing.output == Format::Wide,
                namespaces: self.all_namespaces && objects.resource().namespaced,
                prefix: if several { prefix } else { "" },
            };
            let gap = gap.then(String::new);
            output::lines(gap.into_iter().chain(table.render(options).lines(None)))?;
        }
        Ok(table.rows.len())
    }

    /// Prints one object as JSON or YAML, and returns 1, the number of objects.
    async fn print_whole(&self, objects: &ResourceClient, name: &str) -> Result<usize, Failure> {
        self.printing.object(read_object(&objects.get_bytes(name).await?)?)?;
        Ok(1)
    }

    /// Adds the objects of one resource, with apiVersion and kind, to `list`, and returns their number.
    async fn collect(&self, objects: &ResourceClient, list: &mut Object) -> Result<usize, Failure> {
        let response = read_object(&self.read(objects).await?)?;
        let Resource { group, version, kind, .. } = objects.resource();
        let api_version = GroupVersion::new(group, version).to_string();
        let items = response.at(&["items"]);
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
            Some(name) => objects.get_bytes(name).await?,
            None => objects.list_bytes(&options).await?,
        })
    }
}

/// Decodes the JSON object in a response.
pub(super) fn read_object(json: &[u8]) -> Result<Object, Failure> {
    Object::from_json(json).map_err(unreadable)
}

fn unreadable(error: NotAnObject) -> Failure {
    Failure::Facade(format!("the response cannot be read: {error}"))
}

/// Returns the error for a category where a single resource is required.
pub(super) fn several_resources(name: &str) -> Failure {
    Failure::Hinted(
        format!("{name:?} names several resources"),
        "name one resource: only lists accept a category",
    )
}

/// Returns the resources that a name denotes, in their preferred versions: all resources of a category, or else the first match.
pub(super) async fn find_resources(client: &Client, name: &str) -> Result<Vec<Resource>, Failure> {
    let mut resources = client.resources(name).await?;
    resources.dedup_by(|next, first| (&next.group, &next.resource) == (&first.group, &first.resource));
    let word = name.to_lowercase();
    let is_category = |resource: &Resource| {
        resource.categories.contains(&word)
            && word != resource.resource
            && word != resource.singular
            && !resource.short_names.contains(&word)
    };
    if !resources.iter().all(is_category) {
        resources.retain(|resource| !is_category(resource));
        resources.truncate(1);
    }
    if resources.is_empty() {
        let text = format!("the control service has no resource named {name:?}");
        return Err(Failure::Hinted(
            text,
            "`portico tree` lists all APIs; kubectl shows objects of aggregated APIs",
        ));
    }
    Ok(resources)
}

/// Returns the name and group of a resource as kubectl prints them: `deployment.apps`.
pub(super) fn qualified_name(resource: &Resource) -> String {
    let dot = if resource.group.is_empty() { "" } else { "." };
    format!("{}{dot}{}", resource.singular, resource.group)
}
