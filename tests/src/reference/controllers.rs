//! controllers.md: the controllers of kube-controller-manager.

use super::facts::{Controller, Facts};
use super::markdown::{code, sentence, table};
use super::page::Page;

const INTRODUCTION: &str = "\
# Controllers

The control service runs the controllers of kube-controller-manager that an API server without nodes needs. Select them with
[`--controllers`](flags-api.md#--controllers), by name or former name:

    portico --controllers='*,-resourcequota-controller'     # all default controllers but one
    portico --controllers='*,token-cleaner-controller'      # one more
    portico --controllers=                                  # none

Control services that share a database elect one of them to run the controllers
([`--leader-elect`](flags-api.md#--leader-elect)).

";

const NOT_IMPLEMENTED: &str = "
## Not implemented

There is no scheduler, no kubelet and no controller for workloads, nodes and volumes. These names are accepted, so that
command lines written for kube-controller-manager can be reused, and start nothing. A warning is logged if one is named.

";

pub(super) fn page(facts: &Facts) -> Page {
    let (absent, available): (Vec<_>, Vec<_>) =
        facts.controllers.iter().partition(|controller| controller.availability == "not implemented");
    let mut text = String::from(INTRODUCTION);
    text.push_str("## Available\n\nControllers that are off by default run only if they are named.\n\n");
    let rows = available.into_iter().map(|controller| {
        let default = if controller.availability == "yes" { "on" } else { "off" };
        let [name, former, description] = cells(controller);
        [name, former, default.to_owned(), description]
    });
    text.push_str(&table(["Name", "Former name", "Default", "Description"], rows));
    text.push_str(NOT_IMPLEMENTED);
    text.push_str(&table(["Name", "Former name", "Purpose"], absent.into_iter().map(cells)));
    Page::new("controllers.md", text)
}

fn cells(controller: &Controller) -> [String; 3] {
    [code(&controller.name), code(&controller.former_name), sentence(&controller.description)]
}
