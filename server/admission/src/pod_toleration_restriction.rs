//! PodTolerationRestriction: pods get the tolerations of their namespace, and may have only tolerations that it allows.
//!
//! Upstream rules: plugin/pkg/admission/podtolerationrestriction.

mod configuration;
mod toleration;

use portico_machinery::status::Reason;
use portico_machinery::{GroupResource, Object, Status};
use portico_registry::{Objects, Operation, Result};
use portico_validation::pod_spec::quality;

use crate::plugin::{Mutating, MutationRequest, PODS, Plugin, Target, Validating, ValidationRequest};
pub(crate) use configuration::PodTolerationRestrictionConfiguration;
use toleration::{Toleration, are_allowed, merge};

/// Annotation with the default tolerations of a namespace.
const DEFAULT: &str = "scheduler.alpha.kubernetes.io/defaultTolerations";
/// Annotation with the allowed tolerations of a namespace.
const WHITELIST: &str = "scheduler.alpha.kubernetes.io/tolerationsWhitelist";
const LIST: [&str; 2] = ["spec", "tolerations"];

/// PodTolerationRestriction plugin.
pub(crate) struct PodTolerationRestriction {
    configuration: PodTolerationRestrictionConfiguration,
}

impl PodTolerationRestriction {
    pub(crate) fn new(configuration: &PodTolerationRestrictionConfiguration) -> Self {
        Self { configuration: configuration.clone() }
    }

    /// Refuses tolerations that the namespace does not allow, or, without an annotation, the configuration.
    fn check(&self, namespace: &Object, pod: &Object) -> Result<()> {
        let tolerations = of_pod(pod);
        if tolerations.is_empty() {
            return Ok(());
        }
        let (whitelist, of) = match of_namespace(namespace, WHITELIST)? {
            Some(whitelist) => (whitelist, "namespace"),
            None => (self.configuration.whitelist.clone(), "cluster"),
        };
        if are_allowed(&tolerations, &whitelist) {
            return Ok(());
        }
        Err(unknown(format!(
            "pod tolerations (possibly merged with namespace default tolerations) conflict with its {of} whitelist"
        )))
    }
}

impl Plugin for PodTolerationRestriction {
    fn targets(&self) -> &'static [Target] {
        PODS
    }

    fn mutate<'a>(&'a self, objects: &'a Objects, request: MutationRequest<'a>) -> Mutating<'a> {
        Box::pin(async move {
            let MutationRequest { attributes, new, .. } = request;
            let namespace = find_namespace(objects, attributes.namespace).await?;
            let mut further = Vec::new();
            if attributes.operation == Operation::Create {
                let own = of_namespace(&namespace, DEFAULT)?;
                further = own.unwrap_or_else(|| self.configuration.default.clone());
            }
            if is_more_than_best_effort(new) {
                further.push(memory_pressure());
            }
            if !further.is_empty() {
                let merged = merge(of_pod(new), &further);
                new.put(&LIST, merged.iter().map(|toleration| toleration.to_object().into_node()).collect());
            }
            self.check(&namespace, new)
        })
    }

    fn validate<'a>(&'a self, objects: &'a Objects, request: ValidationRequest<'a>) -> Validating<'a> {
        Box::pin(async move {
            let namespace = find_namespace(objects, request.attributes.namespace).await?;
            self.check(&namespace, request.new)?;
            Ok(Vec::new())
        })
    }
}

async fn find_namespace(objects: &Objects, name: &str) -> Result<Object> {
    let found = objects.object_of("", "namespaces", "", name).await?;
    found.ok_or_else(|| Box::new(Status::not_found(&GroupResource::new("", "namespaces"), name)))
}

fn of_pod(pod: &Object) -> Vec<Toleration> {
    pod.at(&LIST).items().map(|item| Toleration::read(&item)).collect()
}

/// Reads the tolerations in an annotation of a namespace; `None` without the annotation, an empty list if it is empty.
fn of_namespace(namespace: &Object, annotation: &str) -> Result<Option<Vec<Toleration>>> {
    let Some(text) = namespace.annotation(annotation) else { return Ok(None) };
    if text.is_empty() {
        return Ok(Some(Vec::new()));
    }
    configuration::list(text.as_bytes()).map(Some).map_err(unknown)
}

/// Returns the toleration for memory pressure that upstream adds to every pod that is not BestEffort.
fn memory_pressure() -> Toleration {
    Toleration {
        key: "node.kubernetes.io/memory-pressure".to_owned(),
        operator: "Exists".to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Toleration::default()
    }
}

/// True unless the quality of service of the status, or of the spec without a status, is BestEffort (upstream's `GetPodQOS`).
fn is_more_than_best_effort(pod: &Object) -> bool {
    let reported = pod.str_at("status.qosClass");
    let class = if reported.is_empty() { quality::class(&pod.at(&["spec"])) } else { reported };
    class != "BestEffort"
}

/// Returns 500 with upstream's message and without a reason.
fn unknown(why: String) -> Box<Status> {
    Box::new(Status::failure(Reason::Unknown, why))
}
