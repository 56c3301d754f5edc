//! Service: defaults that depend on other fields, validation, table. Addresses are kept as the client gives them:
//! allocating them is the core API server's.

mod defaults;
mod validate;

use portico_machinery::table::Cell;
use portico_machinery::{Cursor, Object};

use super::{Errors, Moment, Strategy};
use crate::validation::values;

pub(super) struct Service;

impl Strategy for Service {
    fn prepare_create(&self, new: &mut Object, _moment: Moment) {
        defaults::set(new);
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, _moment: Moment) {
        defaults::keep_addresses(new, old);
        defaults::set(new);
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        validate::service(new, errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        validate::update(new, old, errors);
        validate::service(new, errors);
    }

    fn prepare_status(&self, new: &mut Object, _old: &Object) {
        defaults::set_status(new);
    }

    fn validate_status(&self, new: &Object, _old: &Object, errors: &mut Errors) {
        validate::status(new, errors);
    }

    fn companion(&self) -> Option<(&'static str, &'static str)> {
        Some(("", "endpoints"))
    }

    fn warnings(&self, new: &Object, _old: Option<&Object>) -> Vec<String> {
        warnings(new)
    }

    fn cell(&self, function: &str, object: &Object) -> Cell {
        let spec = object.at(&["spec"]);
        Cell::text(match function {
            "service-cluster-ip" => cluster_ip(&spec),
            "service-external-ip" => external_ip(object, &spec),
            "service-ports" => ports(&spec),
            "service-selector" => selector(&spec.field("selector")),
            _ => String::new(),
        })
    }
}

fn is_headless(spec: &Cursor<'_>) -> bool {
    spec.field("clusterIP").str() == "None"
}

fn words(list: &Cursor<'_>) -> Vec<String> {
    list.items().map(|w| w.str().to_owned()).collect()
}

fn or_none(text: String) -> String {
    if text.is_empty() { "<none>".to_owned() } else { text }
}

fn cluster_ip(spec: &Cursor<'_>) -> String {
    or_none(words(&spec.field("clusterIPs")).into_iter().next().unwrap_or_default())
}

fn external_ip(object: &Object, spec: &Cursor<'_>) -> String {
    let external = words(&spec.field("externalIPs"));
    match spec.field("type").str() {
        "ClusterIP" | "NodePort" => or_none(external.join(",")),
        "ExternalName" => spec.field("externalName").str().to_owned(),
        "LoadBalancer" => {
            let mut ingress: Vec<String> = object
                .at(&["status", "loadBalancer", "ingress"])
                .items()
                .map(|i| match i.field("ip").str() {
                    "" => i.field("hostname").str().to_owned(),
                    ip => ip.to_owned(),
                })
                .filter(|w| !w.is_empty())
                .collect();
            ingress.sort_unstable();
            ingress.dedup();
            ingress.extend(external);
            if ingress.is_empty() { "<pending>".to_owned() } else { ingress.join(",") }
        }
        _ => "<unknown>".to_owned(),
    }
}

fn ports(spec: &Cursor<'_>) -> String {
    let words: Vec<String> = spec
        .field("ports")
        .items()
        .map(|p| {
            let (port, protocol) = (p.field("port").i64().unwrap_or(0), p.field("protocol").str());
            match p.field("nodePort").i64().unwrap_or(0) {
                0 => format!("{port}/{protocol}"),
                node => format!("{port}:{node}/{protocol}"),
            }
        })
        .collect();
    or_none(words.join(","))
}

fn selector(selector: &Cursor<'_>) -> String {
    let mut words: Vec<String> = selector.entries().map(|(k, v)| format!("{k}={}", v.str())).collect();
    words.sort_unstable();
    or_none(words.join(","))
}

fn warnings(new: &Object) -> Vec<String> {
    let spec = new.at(&["spec"]);
    let external_name = spec.field("type").str() == "ExternalName";
    let headless = is_headless(&spec);
    let mut warnings = Vec::new();
    let mut say = |when: bool, text: &str| {
        if when {
            warnings.push(text.to_owned());
        }
    };
    say(
        new.annotation("service.kubernetes.io/topology-aware-hints").is_some(),
        "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use service.kubernetes.io/topology-mode instead",
    );
    let has = |field: &str| !spec.field(field).str().is_empty();
    let external_ips = !spec.field("externalIPs").is_empty();
    say(headless && has("loadBalancerIP"), "spec.loadBalancerIP is ignored for headless services");
    say(headless && external_ips, "spec.externalIPs is ignored for headless services");
    say(
        headless && spec.field("sessionAffinity").str() == "ClientIP",
        "spec.SessionAffinity is ignored for headless services",
    );
    say(
        external_ips && !headless && !external_name,
        "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
    );
    say(external_ips && external_name, "spec.externalIPs is ignored when spec.type is \"ExternalName\"");
    say(
        has("externalName") && !external_name,
        "spec.externalName is ignored when spec.type is not \"ExternalName\"",
    );
    say(
        spec.field("trafficDistribution").str() == "PreferClose",
        "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"",
    );
    for list in ["clusterIPs", "externalIPs"] {
        warnings.extend(spec.field(list).items().filter_map(|ip| values::ip_warning(&ip)));
    }
    warnings
}
