//! `portico routes`: lists the compiled route table.

use portico_proto::client::Client;
use portico_proto::routes::{ListRequest, RouteSummary};

use super::failure::Failure;
use super::outcome::{DEADLINE, Outcome};
use super::output::{self, Format};
use super::stages::availability_cell;
use super::table::{Cell, Table};
use crate::control_service::ControlService;

/// List all routes: APIServices with their Services and availability
///
/// Exit codes: 0 listed; 2 not listed, or the group does not exist.
#[derive(Debug, clap::Args)]
pub(crate) struct Routes {
    /// API group to list; by default, all groups are listed
    #[arg(default_value = "", hide_default_value = true)]
    group: String,
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    control: ControlService,
}

/// Prints the route table.
pub(super) async fn run(routes: &Routes) -> Result<Outcome, Failure> {
    let client = routes.control.client(DEADLINE)?;
    let routes_of_group = list_routes(&client, &routes.group).await?;
    match routes.output {
        Format::Table | Format::Wide => {
            output::lines(table(&routes_of_group, routes.output == Format::Wide).lines(None))?;
        }
        Format::Name => {
            let name = |route: &RouteSummary| format!("apiservice.apiregistration.k8s.io/{}", route.name);
            output::lines(routes_of_group.iter().map(name))?;
        }
        Format::Json | Format::Yaml => output::value(&routes_of_group, routes.output)?,
    }
    Ok(Outcome::Positive)
}

/// Returns the routes of an API group, or all routes if `group` is empty.
pub(super) async fn list_routes(client: &Client, group: &str) -> Result<Vec<RouteSummary>, Failure> {
    let listed = client.routes().list(ListRequest { group: group.to_owned() }).await?.into_inner().routes;
    match listed.is_empty() && !group.is_empty() {
        true => Err(Failure::Hinted(
            format!("group {group:?} not found: it has no APIService"),
            "`portico routes` lists all groups",
        )),
        false => Ok(listed),
    }
}

fn table(routes: &[RouteSummary], wide: bool) -> Table {
    let mut table = Table::new(&["name", "service", "available", "targets", "reason"]);
    if wide {
        table.headers.extend(["paths", "message", "hides"].map(str::to_owned));
    }
    table.rows = routes.iter().map(|route| row(route, wide)).collect();
    table
}

fn row(route: &RouteSummary, wide: bool) -> Vec<Cell> {
    let mut row: Vec<Cell> = vec![
        route.name.clone().into(),
        route.service.clone().into(),
        availability_cell(route),
        route.targets.join(",").into(),
        route.reason.clone().into(),
    ];
    if wide {
        let further = [route.paths.join(","), route.message.clone(), route.shadows.join("; ")];
        row.extend(further.map(Cell::from));
    }
    row
}
