//! Ingress: hosts and paths to backends. Nothing of it is immutable.

mod backend;
mod path;

use std::collections::HashSet;
use std::net::IpAddr;

use portico_machinery::field::Error;
use portico_machinery::table::Cell;
use portico_machinery::{Cursor, GroupResource, Object, names};
use portico_store::Operation;

use super::ingress_class::is_default;
use portico_registry::{Beginning, Pending, TransactionHooks};
use portico_registry::{Result, stored};
use portico_registry::{Strategy, SubresourceStrategy, TableStrategy};
use portico_validation::Errors;
use portico_validation::{checks, values};

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
const NOT_AN_ADDRESS: &str = "must be a DNS name, not an IP address";
const HOSTS_SHOWN: usize = 3;

/// See the module.
pub(crate) struct Ingress;

impl Strategy for Ingress {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        let class = new.at(&["spec", "ingressClassName"]);
        let annotated = new.annotation(CLASS_ANNOTATION);
        if let (Some(class), Some(annotated)) = (class.opt_str(), annotated)
            && class != annotated
        {
            let path = format!("annotations.{CLASS_ANNOTATION}");
            let text = "must match `ingressClassName` when both are specified";
            errors.push(Error::invalid(&path.as_str().into(), annotated, text));
        }
        spec(&new.at(&["spec"]), Lifted::default(), errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        spec(&new.at(&["spec"]), Lifted::by(old), errors);
    }

    fn warnings(&self, new: &Object, old: Option<&Object>) -> Vec<String> {
        let annotated = new.annotation(CLASS_ANNOTATION).is_some();
        if old.is_none() && annotated && !new.at(&["spec", "ingressClassName"]).is_present() {
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
        let known: HashSet<&str> = old.at(&path).items().map(|entry| entry.field("ip").str()).collect();
        for entry in new.at(&path).items() {
            let (ip, hostname) = (entry.field("ip"), entry.field("hostname"));
            if !ip.str().is_empty() && !known.contains(ip.str()) {
                values::ip(&ip, errors);
            }
            if !hostname.str().is_empty() {
                host_name(&hostname, errors);
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
    fn begin<'a>(&'a self, write: Beginning<'a>, new: &'a mut Object) -> Pending<'a, Vec<Operation>> {
        Box::pin(default_class(write, new))
    }
}

/// Upstream's admission plugin DefaultIngressClass: a new ingress that names no class gets the one that is marked; of
/// several the newest.
async fn default_class(write: Beginning<'_>, new: &mut Object) -> Result<Vec<Operation>> {
    let named =
        new.at(&["spec", "ingressClassName"]).is_present() || new.annotation(CLASS_ANNOTATION).is_some();
    if write.old.is_some() || named {
        return Ok(Vec::new());
    }
    let classes = write.objects.served(&GroupResource::new("networking.k8s.io", "ingressclasses"))?;
    let snapshot = write.objects.snapshot(&classes).await?;
    let marked = snapshot.iter().map(|record| stored::decode(record)).filter(is_default);
    let newest = marked.min_by_key(|class| {
        let created = class.str_at("metadata.creationTimestamp").to_owned();
        (std::cmp::Reverse(created), class.name().to_owned())
    });
    if let Some(class) = newest {
        new.set(&["spec", "ingressClassName"], class.name());
    }
    Ok(Vec::new())
}

/// Rules that an old object breaks already bind its new state no more.
#[derive(Clone, Copy, Default)]
struct Lifted {
    secret_names: bool,
    wildcard_paths: bool,
}

impl Lifted {
    fn by(old: &Object) -> Self {
        let spec = old.at(&["spec"]);
        let bad_secret = |tls: Cursor<'_>| {
            let name = tls.field("secretName").str();
            !name.is_empty() && !names::dns1123_subdomain(name).is_empty()
        };
        let bad_wildcard = |rule: Cursor<'_>| {
            let mut errors = Vec::new();
            if rule.field("host").str().contains('*') {
                rule_value(&rule, false, &mut errors);
            }
            !errors.is_empty()
        };
        Self {
            secret_names: spec.field("tls").items().any(bad_secret),
            wildcard_paths: spec.field("rules").items().any(bad_wildcard),
        }
    }
}

fn spec(spec: &Cursor<'_>, lifted: Lifted, errors: &mut Errors) {
    let (rules, default) = (spec.field("rules"), spec.field("defaultBackend"));
    if rules.is_empty() && !default.is_present() {
        let text = "either `defaultBackend` or `rules` must be specified";
        errors.push(Error::invalid_printed(&spec.path(), "null", text));
    }
    if default.is_present() {
        backend::backend(&default, errors);
    }
    for rule in rules.items() {
        let host = rule.field("host");
        if !host.str().is_empty() {
            if host.str().parse::<IpAddr>().is_ok() {
                errors.push(host.invalid(NOT_AN_ADDRESS));
            }
            host_or_wildcard(&host, errors);
        }
        let lifted = lifted.wildcard_paths && host.str().contains('*');
        rule_value(&rule, lifted, errors);
    }
    for tls in spec.field("tls").items() {
        for host in tls.field("hosts").items() {
            host_or_wildcard(&host, errors);
        }
        if !lifted.secret_names {
            checks::optional(&tls.field("secretName"), names::dns1123_subdomain, errors);
        }
    }
    let class = spec.field("ingressClassName");
    if class.is_present() {
        checks::follows(&class, names::dns1123_subdomain, errors);
    }
}

fn rule_value(rule: &Cursor<'_>, lifted: bool, errors: &mut Errors) {
    let http = rule.field("http");
    if http.is_present() {
        let paths = http.field("paths");
        if paths.is_empty() {
            errors.push(paths.required(""));
        }
        paths.items().for_each(|at| path::path(&at, lifted, errors));
    }
}

fn host_or_wildcard(host: &Cursor<'_>, errors: &mut Errors) {
    let wildcard = host.str().contains('*');
    checks::follows(host, if wildcard { wildcard_subdomain } else { names::dns1123_subdomain }, errors);
}

fn wildcard_subdomain(text: &str) -> Vec<String> {
    const WILDCARD: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    match text.strip_prefix("*.") {
        Some(rest) if names::dns1123_subdomain(rest).is_empty() => Vec::new(),
        _ => vec![WILDCARD.to_owned()],
    }
}

fn host_name(at: &Cursor<'_>, errors: &mut Errors) {
    checks::follows(at, names::dns1123_subdomain, errors);
    if at.str().parse::<IpAddr>().is_ok() {
        errors.push(at.invalid(NOT_AN_ADDRESS));
    }
}

fn hosts(spec: &Cursor<'_>) -> String {
    let (rules, mut named, mut more) = (spec.field("rules"), Vec::new(), false);
    for rule in rules.items() {
        more |= named.len() == HOSTS_SHOWN;
        if !more && !rule.field("host").str().is_empty() {
            named.push(rule.field("host").str());
        }
    }
    match named.join(",") {
        none if none.is_empty() => "*".to_owned(),
        shown if more => format!("{shown} + {} more...", rules.len() - HOSTS_SHOWN),
        shown => shown,
    }
}

fn addresses(object: &Object) -> String {
    let ingress = object.at(&["status", "loadBalancer", "ingress"]);
    let word = |entry: Cursor<'_>| match entry.field("ip").str() {
        "" => entry.field("hostname").str().to_owned(),
        ip => ip.to_owned(),
    };
    let mut words: Vec<String> = ingress.items().map(word).filter(|word| !word.is_empty()).collect();
    words.sort_unstable();
    words.dedup();
    words.join(",")
}
