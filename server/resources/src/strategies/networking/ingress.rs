//! Ingress: routes hosts and paths to backends. All fields are mutable.

mod backend;
mod path;

use std::collections::HashSet;
use std::net::IpAddr;

use portico_machinery::field::Error;
use portico_machinery::table::Cell;
use portico_machinery::{Cursor, GroupResource, Object, names};
use portico_store::Operation;

use super::ingress_class::is_default;
use portico_registry::{Result, stored_object};
use portico_registry::{ResultFuture, TransactionHooks, TxnContext};
use portico_registry::{Strategy, SubresourceStrategy, TableStrategy};
use portico_validation::Errors;
use portico_validation::{checks, values};

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
const NOT_AN_ADDRESS: &str = "must be a DNS name, not an IP address";
const HOSTS_SHOWN: usize = 3;

pub(crate) struct Ingress;

impl Strategy for Ingress {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        let class = new.at(&["spec", "ingressClassName"]);
        let annotation_class = new.annotation(CLASS_ANNOTATION);
        if let (Some(class), Some(annotation_class)) = (class.opt_str(), annotation_class)
            && class != annotation_class
        {
            let path = format!("annotations.{CLASS_ANNOTATION}");
            let text = "must match `ingressClassName` when both are specified";
            errors.push(Error::invalid(&path.as_str().into(), annotation_class, text));
        }
        validate_spec(&new.at(&["spec"]), ValidationOptions::default(), errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        validate_spec(&new.at(&["spec"]), ValidationOptions::for_update(old), errors);
    }

    fn warnings(&self, new: &Object, old: Option<&Object>) -> Vec<String> {
        let has_annotation = new.annotation(CLASS_ANNOTATION).is_some();
        if old.is_none() && has_annotation && !new.at(&["spec", "ingressClassName"]).is_present() {
            return vec![format!(
                "annotation {CLASS_ANNOTATION:?} is deprecated, please use 'spec.ingressClassName' instead"
            )];
        }
        Vec::new()
    }
}

impl SubresourceStrategy for Ingress {
    fn validate_status(&self, new: &Object, old: &Object, errors: &mut Errors) {
        let path = ["status", "loadBalancer", "ingress"];
        let old_ips: HashSet<&str> = old.at(&path).items().map(|entry| entry.field("ip").str()).collect();
        for entry in new.at(&path).items() {
            let (ip, hostname) = (entry.field("ip"), entry.field("hostname"));
            if !ip.str().is_empty() && !old_ips.contains(ip.str()) {
                values::ip(&ip, errors);
            }
            if !hostname.str().is_empty() {
                validate_host_name(&hostname, errors);
            }
        }
    }

    fn status_warnings(&self, new: &Object, _old: &Object) -> Vec<String> {
        let ingress = new.at(&["status", "loadBalancer", "ingress"]);
        let addresses = ingress.items().filter(|entry| !entry.field("ip").str().is_empty());
        addresses.filter_map(|e| values::ip_warning_at(&e.path(), e.field("ip").str())).collect()
    }
}

impl TableStrategy for Ingress {
    fn cell(&self, function: &str, object: &Object) -> Cell {
        let spec = object.at(&["spec"]);
        Cell::text(match function {
            "ingress-hosts" => hosts(&spec),
            "ingress-address" => addresses(object),
            _ if spec.field("tls").is_empty() => "80".to_owned(),
            _ => "80, 443".to_owned(),
        })
    }
}

impl TransactionHooks for Ingress {
    fn before_write<'a>(
        &'a self,
        write: TxnContext<'a>,
        new: &'a mut Object,
    ) -> ResultFuture<'a, Vec<Operation>> {
        Box::pin(default_class(write, new))
    }
}

/// Sets the class of a new Ingress without a class to the default class (upstream's admission plugin DefaultIngressClass). If
/// several classes are marked as default, the newest one is used.
async fn default_class(write: TxnContext<'_>, new: &mut Object) -> Result<Vec<Operation>> {
    let path =
        new.at(&["spec", "ingressClassName"]).is_present() || new.annotation(CLASS_ANNOTATION).is_some();
    if write.old.is_some() || path {
        return Ok(Vec::new());
    }
    let classes =
        write.objects.served_resource(&GroupResource::new("networking.k8s.io", "ingressclasses"))?;
    let snapshot = write.objects.snapshot(&classes).await?;
    let marked = snapshot.iter().map(|record| stored_object::decode(record)).filter(is_default);
    let newest = marked.min_by_key(|class| {
        let created = class.str_at("metadata.creationTimestamp").to_owned();
        (std::cmp::Reverse(created), class.name().to_owned())
    });
    if let Some(class) = newest {
        new.set(&["spec", "ingressClassName"], class.name());
    }
    Ok(Vec::new())
}

/// Rules that an update need not satisfy, because the old object violates them.
#[derive(Clone, Copy, Default)]
struct ValidationOptions {
    allow_invalid_secret_names: bool,
    allow_invalid_wildcard_rules: bool,
}

impl ValidationOptions {
    fn for_update(old: &Object) -> Self {
        let spec = old.at(&["spec"]);
        let bad_secret = |tls: Cursor<'_>| {
            let name = tls.field("secretName").str();
            !name.is_empty() && !names::dns1123_subdomain(name).is_empty()
        };
        let bad_wildcard = |rule: Cursor<'_>| {
            let mut errors = Vec::new();
            if rule.field("host").str().contains('*') {
                validate_rule_value(&rule, false, &mut errors);
            }
            !errors.is_empty()
        };
        Self {
            allow_invalid_secret_names: spec.field("tls").items().any(bad_secret),
            allow_invalid_wildcard_rules: spec.field("rules").items().any(bad_wildcard),
        }
    }
}

fn validate_spec(spec: &Cursor<'_>, lifted: ValidationOptions, errors: &mut Errors) {
    let (rules, default) = (spec.field("rules"), spec.field("defaultBackend"));
    if rules.is_empty() && !default.is_present() {
        let text = "either `defaultBackend` or `rules` must be specified";
        errors.push(Error::invalid_printed(&spec.path(), "null", text));
    }
    if default.is_present() {
        backend::validate_backend(&default, errors);
    }
    for rule in rules.items() {
        let host = rule.field("host");
        if !host.str().is_empty() {
            if host.str().parse::<IpAddr>().is_ok() {
                errors.push(host.invalid(NOT_AN_ADDRESS));
            }
            validate_host_or_wildcard(&host, errors);
        }
        let lifted = lifted.allow_invalid_wildcard_rules && host.str().contains('*');
        validate_rule_value(&rule, lifted, errors);
    }
    for tls in spec.field("tls").items() {
        for host in tls.field("hosts").items() {
            validate_host_or_wildcard(&host, errors);
        }
        if !lifted.allow_invalid_secret_names {
            checks::optional(&tls.field("secretName"), names::dns1123_subdomain, errors);
        }
    }
    let class = spec.field("ingressClassName");
    if class.is_present() {
        checks::matches_rule(&class, names::dns1123_subdomain, errors);
    }
}

fn validate_rule_value(rule: &Cursor<'_>, lifted: bool, errors: &mut Errors) {
    let http = rule.field("http");
    if http.is_present() {
        let paths = http.field("paths");
        if paths.is_empty() {
            errors.push(paths.required(""));
        }
        paths.items().for_each(|at| path::validate_path(&at, lifted, errors));
    }
}

fn validate_host_or_wildcard(host: &Cursor<'_>, errors: &mut Errors) {
    let wildcard = host.str().contains('*');
    checks::matches_rule(host, if wildcard { wildcard_subdomain } else { names::dns1123_subdomain }, errors);
}

fn wildcard_subdomain(text: &str) -> Vec<String> {
    const WILDCARD: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    match text.strip_prefix("*.") {
        Some(rest) if names::dns1123_subdomain(rest).is_empty() => Vec::new(),
        _ => vec![WILDCARD.to_owned()],
    }
}

fn validate_host_name(at: &Cursor<'_>, errors: &mut Errors) {
    checks::matches_rule(at, names::dns1123_subdomain, errors);
    if at.str().parse::<IpAddr>().is_ok() {
        errors.push(at.invalid(NOT_AN_ADDRESS));
    }
}

fn hosts(spec: &Cursor<'_>) -> String {
    let (rules, mut hosts, mut has_more) = (spec.field("rules"), Vec::new(), false);
    for rule in rules.items() {
        has_more |= hosts.len() == HOSTS_SHOWN;
        if !has_more && !rule.field("host").str().is_empty() {
            hosts.push(rule.field("host").str());
        }
    }
    match hosts.join(",") {
        none if none.is_empty() => "*".to_owned(),
        text if has_more => format!("{text} + {} more...", rules.len() - HOSTS_SHOWN),
        text => text,
    }
}

fn addresses(object: &Object) -> String {
    let ingress = object.at(&["status", "loadBalancer", "ingress"]);
    let address = |entry: Cursor<'_>| match entry.field("ip").str() {
        "" => entry.field("hostname").str().to_owned(),
        ip => ip.to_owned(),
    };
    let mut addresses: Vec<String> =
        ingress.items().map(address).filter(|address| !address.is_empty()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses.join(",")
}
