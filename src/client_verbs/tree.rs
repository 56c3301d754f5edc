//! `portico tree`: shows API groups, their versions, and the backend of each version.

use portico_proto::routes::RouteSummary;

use super::failure::Failure;
use super::outcome::{DEADLINE, Outcome};
use super::output;
use super::routes::list_routes;
use super::stages::availability_cell;
use super::table::Cell;
use crate::control_service::ControlService;

/// Show all API groups and versions as a tree, with their backends
///
/// Exit codes: 0 shown; 2 not shown, or the group does not exist.
#[derive(Debug, clap::Args)]
pub(crate) struct Tree {
    /// API group to show; by default, all groups are shown
    #[arg(default_value = "", hide_default_value = true)]
    group: String,
    #[command(flatten)]
    control: ControlService,
}

/// Line of the tree and its children.
struct Branch {
    line: String,
    children: Vec<Branch>,
}

/// Prints the tree of API groups.
pub(super) async fn run(tree: &Tree) -> Result<Outcome, Failure> {
    let client = tree.control.client(DEADLINE)?;
    output::lines(lines(&list_routes(&client, &tree.group).await?))?;
    Ok(Outcome::Positive)
}

fn lines(routes: &[RouteSummary]) -> Vec<String> {
    let mut groups: Vec<(&str, Vec<&RouteSummary>)> = Vec::new();
    let mut sorted: Vec<&RouteSummary> = routes.iter().collect();
    sorted.sort_by(|a, b| (&a.group, &a.version).cmp(&(&b.group, &b.version)));
    for route in sorted {
        match groups.last_mut() {
            Some((group, versions)) if *group == route.group => versions.push(route),
            _ => groups.push((&route.group, vec![route])),
        }
    }
    let mut lines = Vec::new();
    for (group, versions) in groups {
        let line = if group.is_empty() { "core".to_owned() } else { group.to_owned() };
        write(&Branch { line, children: versions.into_iter().map(branch).collect() }, "", "", &mut lines);
    }
    lines
}

fn branch(route: &RouteSummary) -> Branch {
    let Cell { text, style } = availability_cell(route);
    let reason =
        if route.available { String::new() } else { format!("  {}: {}", route.reason, route.message) };
    let line = format!("{}  {style}{text}{style:#}{reason}", route.version);
    let leaf = |line: &String| Branch { line: line.clone(), children: Vec::new() };
    let mut children =
        vec![Branch { line: route.service.clone(), children: route.targets.iter().map(leaf).collect() }];
    children.extend(route.shadows.iter().map(|hidden| leaf(&format!("hides {hidden}"))));
    Branch { line, children }
}

/// Appends the lines of a branch to `lines`. `first` is the prefix of the branch's own line, `rest` of the lines of its children.
fn write(branch: &Branch, first: &str, rest: &str, lines: &mut Vec<String>) {
    lines.push(format!("{first}{}", branch.line));
    for (at, child) in branch.children.iter().enumerate() {
        let is_last = at + 1 == branch.children.len();
        let (bend, line) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        write(child, &format!("{rest}{bend}"), &format!("{rest}{line}"), lines);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_below_their_group_and_addresses_below_their_service() {
        let route = |group: &str, version: &str, service: &str, targets: &[&str]| RouteSummary {
            group: group.into(),
            version: version.into(),
            service: service.into(),
            targets: targets.iter().map(|target| (*target).to_owned()).collect(),
            available: true,
            ..RouteSummary::default()
        };
        let routes = [
            route("a.example", "v2", "n/s:443", &["1:1", "2:2"]),
            route("a.example", "v1", "Local", &[]),
            route("", "v1", "Local", &[]),
        ];
        let plain: Vec<String> =
            lines(&routes).iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect();
        let expected = [
            "core",
            "└─ v1  Available",
            "   └─ Local",
            "a.example",
            "├─ v1  Available",
            "│  └─ Local",
            "└─ v2  Available",
            "   └─ n/s:443",
            "      ├─ 1:1",
            "      └─ 2:2",
        ];
        assert_eq!(plain, expected);
    }
}
