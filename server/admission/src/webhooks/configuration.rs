//! Webhooks as defined in their configuration objects.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use portico_machinery::resolve::{BACKEND_SERVER_NAME, BACKEND_URLS, backend_urls};
use portico_machinery::{Cursor, Object};
use portico_policy::{Compiler, EnvironmentType, MatchConditions};
use portico_registry::{Backends, ClientConfig, WebhookEndpoint, WebhookService};

use super::health::WebhookHealth;
use crate::matching::Constraints;
use crate::metrics::AdmittedCallMetrics;

/// Upstream's default timeout, in seconds.
const DEFAULT_TIMEOUT: i64 = 10;

/// Version of the review that a webhook receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReviewVersion {
    /// `admission.k8s.io/v1`.
    V1,
    /// `admission.k8s.io/v1beta1`, whose responses are verified less strictly.
    V1Beta1,
}

/// Webhook of a configuration object.
pub(crate) struct Webhook {
    pub(crate) name: String,
    /// Name of the configuration object.
    pub(crate) configuration: String,
    /// Identifier that is unique among all webhooks.
    pub(crate) id: String,
    pub(crate) endpoint: WebhookEndpoint,
    pub(crate) constraints: Constraints,
    pub(crate) conditions: Arc<MatchConditions>,
    /// True if a request fails when the webhook cannot be called.
    pub(crate) fails_closed: bool,
    /// True if the webhook may be called for a dry run.
    pub(crate) accepts_dry_run: bool,
    /// `None` if the webhook accepts no supported version.
    pub(crate) version: Option<ReviewVersion>,
    /// True if the webhook is called again when the object changes afterwards.
    pub(crate) is_reinvocable: bool,
    /// Results of its calls since the configuration changed.
    pub(crate) health: WebhookHealth,
    /// Metrics of its calls that admitted requests.
    pub(crate) admitted_calls: AdmittedCallMetrics,
}

impl ReviewVersion {
    /// All supported versions.
    pub(crate) const ALL: [Self; 2] = [Self::V1, Self::V1Beta1];

    /// Returns the first supported version in a list.
    fn first_supported(names: &Cursor<'_>) -> Option<Self> {
        names.items().find_map(|name| match name.str() {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1Beta1),
            _ => None,
        })
    }

    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "admission.k8s.io/v1",
            Self::V1Beta1 => "admission.k8s.io/v1beta1",
        }
    }
}

/// Returns the webhooks of a configuration object, in order.
pub(crate) fn read(configuration: &Object) -> Vec<Arc<Webhook>> {
    let backends = backends(configuration);
    // Objects stored by older versions may contain several webhooks with the same name.
    let mut name_counts = HashMap::new();
    let mut webhooks = Vec::new();
    for at in configuration.at(&["webhooks"]).items() {
        let count: &mut usize = name_counts.entry(at.field("name").str()).or_default();
        webhooks.push(Arc::new(Webhook::read(configuration.name(), *count, &at, backends.as_ref())));
        *count += 1;
    }
    webhooks
}

impl Webhook {
    /// Reads a webhook; `count` is the number of earlier webhooks with the same name.
    fn read(configuration: &str, count: usize, at: &Cursor<'_>, backends: Option<&Backends>) -> Self {
        let name = at.field("name").str().to_owned();
        let conditions = at.field("matchConditions");
        let texts = conditions.items().map(|condition| condition.field("expression").str());
        let seconds = at.field("timeoutSeconds").i64().unwrap_or(DEFAULT_TIMEOUT);
        let timeout = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
        Self {
            configuration: configuration.to_owned(),
            id: format!("{configuration}/{name}/{count}"),
            name,
            endpoint: WebhookEndpoint::new(&client(&at.field("clientConfig"), backends), timeout),
            constraints: Constraints::of_webhook(at),
            conditions: Arc::new(MatchConditions::compile(
                &Compiler::new(EnvironmentType::StoredExpressions, false),
                texts,
            )),
            fails_closed: at.field("failurePolicy").str() != "Ignore",
            accepts_dry_run: matches!(at.field("sideEffects").str(), "None" | "NoneOnDryRun"),
            version: ReviewVersion::first_supported(&at.field("admissionReviewVersions")),
            is_reinvocable: at.field("reinvocationPolicy").str() == "IfNeeded",
            health: WebhookHealth::default(),
            admitted_calls: AdmittedCallMetrics::default(),
        }
    }
}

/// Returns the URLs that annotations define for the Services of all webhooks of a configuration object.
fn backends(configuration: &Object) -> Option<Backends> {
    let annotations = configuration.metadata().field("annotations");
    // Writes with an invalid list of URLs are refused.
    let targets = backend_urls(annotations.field(BACKEND_URLS).opt_str()?).ok()?;
    let server_name = annotations.field(BACKEND_SERVER_NAME).opt_str().map(str::to_owned);
    Some(Backends { targets, server_name })
}

fn client(config: &Cursor<'_>, backends: Option<&Backends>) -> ClientConfig {
    let service = config.field("service");
    let of_service = || WebhookService {
        namespace: service.field("namespace").str().to_owned(),
        name: service.field("name").str().to_owned(),
        path: service.field("path").opt_str().map(str::to_owned),
        port: service.field("port").i64().and_then(|port| u16::try_from(port).ok()),
    };
    ClientConfig {
        url: config.field("url").opt_str().map(str::to_owned),
        service: service.is_present().then(of_service),
        ca_bundle: config.field("caBundle").str().to_owned(),
        backends: backends.filter(|_| service.is_present()).cloned(),
        server_name: None,
    }
}
