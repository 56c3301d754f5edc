//! PodTolerationRestriction: pods get the tolerations of their namespace, and may have only tolerations that it allows.
//!
//! Upstream rules: plugin/pkg/admission/podtolerationrestriction.

mod configuration;
mod toleration;

use portico_machinery::status::Reason;
use portico_machinery::{GroupResource, Object, Status};
use portico_registry::{Objects, Operation, Result};
use portico_validation::pod_spec::qos;

use crate::plugin::{
    MutationFuture, MutationRequest, PODS, Plugin, ResourcePattern, ValidationFuture, ValidationRequest,
};
pub(crate) use configuration::PodTolerationRestrictionConfiguration;
use toleration::{Toleration, are_allowed, merge};

/// Annotation with the default tolerations of a namespace.
const DEFAULT: &str = "scheduler.alpha.kubernetes.io/defaultTolerations";
/// Annotation with the allowed tolerations of a namespace.
const WHITELIST: &str = "scheduler.alpha.kubernetes.io/tolerationsWhitelist";
const TOLERATIONS_PATH: [&str; 2] = ["spec", "tolerations"];

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
        let tolerations = pod_tolerations(pod);
        if tolerations.is_empty() {
            return Ok(());
        }
        let (whitelist, source) = match namespace_tolerations(namespace, WHITELIST)? {
            Some(whitelist) => (whitelist, "namespace"),
            None => (self.configuration.whitelist.clone(), "cluster"),
        };
        if are_allowed(&tolerations, &whitelist) {
            return Ok(());
        }
        Err(unknown_error(format!(
            "pod tolerations (possibly merged with namespace default tolerations) conflict with its {source} whitelist"
        )))
    }
}

impl Plugin for PodTolerationRestriction {
    fn targets(&self) -> &'static [ResourcePattern] {
        PODS
    }

    fn mutate<'a>(&'a self, objects: &'a Objects, request: MutationRequest<'a>) -> MutationFuture<'a> {
        Box::pin(async move {
            let MutationRequest { attributes, new, .. } = request;
            let namespace = find_namespace(objects, attributes.namespace).await?;
            let mut added = Vec::new();
            if attributes.operation == Operation::Create {
                let namespace_defaults = namespace_tolerations(&namespace, DEFAULT)?;
                added = namespace_defaults.unwrap_or_else(|| self.configuration.default.clone());
            }
            if is_above_best_effort(new) {
                added.push(memory_pressure_toleration());
            }
            if !added.is_empty() {
                let merged = merge(pod_tolerations(new), &added);
                new.put(
                    &TOLERATIONS_PATH,
                    merged.iter().map(|toleration| toleration.to_object().into_node()).collect(),
                );
            }
            self.check(&namespace, new)
        })
    }

    fn validate<'a>(&'a self, objects: &'a Objects, request: ValidationRequest<'a>) -> ValidationFuture<'a> {
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

fn pod_tolerations(pod: &Object) -> Vec<Toleration> {
    pod.at(&TOLERATIONS_PATH).items().map(|item| Toleration::read(&item)).collect()
}

/// Reads the tolerations in an annotation of a namespace; `None` without the annotation, an empty list if it is empty.
fn namespace_tolerations(namespace: &Object, annotation: &str) -> Result<Option<Vec<Toleration>>> {
    let Some(text) = namespace.annotation(annotation) else { return Ok(None) };
    if text.is_empty() {
        return Ok(Some(Vec::new()));
    }
    configuration::parse_list(text.as_bytes()).map(Some).map_err(unknown_error)
}

/// Returns the toleration for memory pressure that upstream adds to every pod that is not BestEffort.
fn memory_pressure_toleration() -> Toleration {
    Toleration {
        key: "node.kubernetes.io/memory-pressure".to_owned(),
        operator: "Exists".to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Toleration::default()
    }
}

/// True unless the quality of service of the status, or of the spec without a status, is BestEffort (upstream's `GetPodQOS`).
fn is_above_best_effort(pod: &Object) -> bool {
    let status_class = pod.str_at("status.qosClass");
    let class = if status_class.is_empty() { qos::qos_class(&pod.at(&["spec"])) } else { status_class };
    class != "BestEffort"
}

/// Returns 500 with upstream's message and without a reason.
fn unknown_error(message: String) -> Box<Status> {
    Box::new(Status::failure(Reason::Unknown, message))
}
