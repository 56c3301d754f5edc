//! metrics.md: every call of `Desc::counter`, `Desc::gauge`, `Desc::histogram` and `Desc::summary` in the sources.

use syn::visit::Visit;
use syn::{Expr, ExprCall, ExprMethodCall};

use super::markdown::{code, sentence};
use super::page::Page;
use super::sources::{Source, text};

const TYPES: [&str; 4] = ["counter", "gauge", "histogram", "summary"];

/// Groups in the order of the page, with the beginnings of their names; a name belongs to the first group that matches.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Requests",
        &[
            "apiserver_request",
            "apiserver_response",
            "apiserver_current_",
            "apiserver_longrunning",
            "apiserver_watch_",
        ],
    ),
    ("Connections", &["apiserver_tls", "apiserver_client_cert", "portico_listener"]),
    ("Watches of local APIs", &["portico_slow_watches", "portico_watch_buffer"]),
    ("Priority and fairness", &["apiserver_flowcontrol"]),
    ("Authentication", &["apiserver_authentication", "authenticat", "apiserver_externaljwt"]),
    ("Authorization", &["apiserver_authorization", "authorization"]),
    (
        "Admission",
        &[
            "apiserver_admission",
            "apiserver_validating_",
            "apiserver_mutating_",
            "apiserver_cel",
            "pod_security",
        ],
    ),
    ("Conversion webhooks", &["apiserver_conversion", "apiserver_crd"]),
    ("Audit", &["apiserver_audit", "portico_audit"]),
    (
        "Backends",
        &[
            "aggregator_",
            "apiserver_kube_aggregator",
            "apiserver_egress",
            "apiserver_rerouted",
            "apiserver_peer",
            "apiserver_stream",
            "apiserver_websocket",
            "portico_proxy",
        ],
    ),
    ("Facades and control services", &["portico_config", "portico_control_service"]),
    (
        "Storage",
        &[
            "apiserver_storage_objects",
            "apiserver_resource_objects",
            "apiserver_storage_size",
            "apiserver_storage_db",
            "portico_store",
        ],
    ),
    ("Encryption at rest", &["apiserver_storage", "apiserver_envelope", "apiserver_encryption"]),
    (
        "Controllers",
        &[
            "workqueue",
            "apiserver_nodeport",
            "endpoint_slice",
            "ttl_after",
            "leader_election",
            "portico_manifests",
        ],
    ),
    (
        "Process",
        &[
            "process_",
            "kubernetes_",
            "version_info",
            "portico_tracing",
            "hidden_metrics",
            "disabled_metrics",
            "cardinality_",
        ],
    ),
];

const HEAD: &str = "# Metrics

A facade serves metrics at `/metrics`, the control service through the gRPC method `portico.admin.v1.Admin/Metrics`: in the \
Prometheus text format, or in OpenMetrics if `Accept` names it. Health checks have metrics of their own at `/metrics/slis`.

Names without `portico_` are those of kube-apiserver and have its stability level (ALPHA, BETA or STABLE). \
`--disabled-metrics`, `--allow-metric-labels` and `--show-hidden-metrics-for-version` choose what is exposed. Each \
`apiserver_flowcontrol_*` also exists as `portico_grpc_flowcontrol_*`, for native gRPC callers of the control service.

";

/// A metric family.
struct Family {
    name: String,
    kind: String,
    labels: Vec<String>,
    help: String,
    hidden: bool,
}

pub(super) fn page(sources: &[Source]) -> Page {
    let mut families: Vec<Family> = sources.iter().flat_map(families).collect();
    families.sort_by(|one, other| one.name.cmp(&other.name));
    families.dedup_by(|one, other| one.name == other.name);
    let mut page = HEAD.to_owned();
    for (group, _) in GROUPS {
        page.push_str(&format!("## {group}\n\n"));
        families
            .iter()
            .filter(|family| family.group() == *group)
            .for_each(|family| page.push_str(&family.line()));
        page.push('\n');
    }
    Page::new("metrics.md", page)
}

fn families(source: &Source) -> Vec<Family> {
    if !TYPES.iter().any(|kind| source.text.contains(&format!("Desc::{kind}("))) {
        return Vec::new();
    }
    let mut found = Descriptions { path: &source.path, families: Vec::new() };
    found.visit_file(&source.parse());
    found.families
}

/// Descriptions of metric families in a file.
struct Descriptions<'s> {
    path: &'s str,
    families: Vec<Family>,
}

impl<'ast> Visit<'ast> for Descriptions<'_> {
    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let Some(kind) = kind(&call.func) {
            let arguments: Vec<&Expr> = call.args.iter().collect();
            let family = Family::read(kind, &arguments);
            self.families.push(
                family.unwrap_or_else(|| panic!("{}: Desc::{} needs literals", self.path, TYPES.join("/"))),
            );
        }
        syn::visit::visit_expr_call(self, call);
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let before = self.families.len();
        syn::visit::visit_expr_method_call(self, call);
        if call.method == "register_hidden" {
            self.families[before..].iter_mut().for_each(|family| family.hidden = true);
        }
    }
}

/// The type of family that `Desc::...` describes.
fn kind(function: &Expr) -> Option<String> {
    let Expr::Path(path) = function else { return None };
    let segments: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    let [.., of, kind] = &segments[..] else { return None };
    (of == "Desc" && TYPES.contains(&kind.as_str())).then(|| kind.clone())
}

impl Family {
    fn read(kind: String, arguments: &[&Expr]) -> Option<Self> {
        let [name, Expr::Reference(labels), help] = arguments else { return None };
        let Expr::Array(labels) = &*labels.expr else { return None };
        let labels = labels.elems.iter().map(text).collect::<Option<Vec<String>>>()?;
        Some(Self { name: text(name)?, kind, labels, help: text(help)?, hidden: false })
    }

    fn group(&self) -> &'static str {
        let of_group = |(_, names): &&(&str, &[&str])| names.iter().any(|name| self.name.starts_with(name));
        GROUPS.iter().find(of_group).unwrap_or_else(|| panic!("{} belongs to no group", self.name)).0
    }

    fn line(&self) -> String {
        let (stability, help) = match self.help.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
            Some((stability, help)) => (format!(", {stability}"), help),
            None => (String::new(), self.help.as_str()),
        };
        let labels: Vec<String> = self.labels.iter().map(|label| code(label)).collect();
        let labels =
            if labels.is_empty() { String::new() } else { format!("; labels {}", labels.join(", ")) };
        let hidden = if self.hidden { ", hidden" } else { "" };
        let (name, kind, help) = (code(&self.name), &self.kind, sentence(help));
        format!("- {name} ({kind}{stability}{hidden}{labels}): {help}\n")
    }
}
