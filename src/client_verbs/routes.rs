//! `portico routes`: the compiled table of what may be reached.

use portico_proto::client::Client;
use portico_proto::routes::{ListRequest, RouteSummary};

use super::failure::Failure;
use super::outcome::{DEADLINE, Ending};
use super::output::{self, Format};
use super::stages::availability;
use super::table::{Cell, Table};
use crate::control_service::ControlService;

/// List what may be reached: each APIService, where its requests go, and whether they arrive
#[derive(Debug, clap::Args)]
pub(super) struct Routes {
    /// Only routes of this group.
    #[arg(default_value = "", hide_default_value = true)]
    group: String,
    /// How routes are printed.
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    control: ControlService,
}

/// Prints the table.
pub(super) async fn run(routes: &Routes) -> Result<Ending, Failure> {
    let client = routes.control.client(DEADLINE)?;
    let listed = listed(&client, &routes.group).await?;
    match routes.output {
        Format::Table | Format::Wide => {
            output::lines(table(&listed, routes.output == Format::Wide).lines(None))?;
        }
        Format::Name => {
            let name = |route: &RouteSummary| format!("apiservice.apiregistration.k8s.io/{}", route.name);
            output::lines(listed.iter().map(name))?;
        }
        Format::Json | Format::Yaml => output::value(&listed, routes.output)?,
    }
    Ok(Ending::Well)
}

/// The routes of a group; of none that is named all.
pub(super) async fn listed(client: &Client, group: &str) -> Result<Vec<RouteSummary>, Failure> {
    let listed = client.routes().list(ListRequest { group: group.to_owned() }).await?.into_inner().routes;
    match listed.is_empty() && !group.is_empty() {
        true => Err(Failure::Usage(format!("group {group:?} not found: no APIService is of it"))),
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
        availability(route),
        route.targets.join(",").into(),
        route.reason.clone().into(),
    ];
    if wide {
        let further = [route.paths.join(","), route.message.clone(), route.shadows.join("; ")];
        row.extend(further.map(Cell::from));
    }
    row
}
