//! Webhooks and policies for these figures: their number, and the resources that they match.

use std::fmt::Write as _;

use crate::BenchContext;
use crate::registrations::base64;
use crate::webhook::Webhook;

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

/// Resources that the rules match.
#[derive(Clone, Copy)]
pub(super) enum Subject {
    /// ConfigMaps, which the bench creates.
    Created,
    /// Secrets.
    Other,
}

/// Kind of the configuration.
#[derive(Clone, Copy)]
enum Kind {
    Webhooks,
    Policies,
}

/// A number of webhooks or policies.
#[derive(Clone, Copy)]
pub(super) struct Configuration {
    kind: Kind,
    pub(super) count: usize,
    subject: Subject,
}

/// Path of a collection, and an object to create in it.
pub(super) type Creation = (String, String);

impl Subject {
    pub(super) fn resource(self) -> &'static str {
        match self {
            Self::Created => "configmaps",
            Self::Other => "secrets",
        }
    }

    /// Returns a dry run of a creation that the rules match.
    pub(super) fn dry_run(self, name: &str) -> Creation {
        let (resource, kind) = match self {
            Self::Created => ("configmaps", "ConfigMap"),
            Self::Other => ("secrets", "Secret"),
        };
        let body = format!(
            r#"{{"apiVersion":"v1","kind":"{kind}","metadata":{{"name":"{name}"}},"data":{{"k":""}}}}"#
        );
        (format!("/api/v1/namespaces/default/{resource}?dryRun=All"), body)
    }

    fn rules(self) -> String {
        let resource = self.resource();
        format!(
            r#"[{{"apiGroups":[""],"apiVersions":["v1"],"resources":["{resource}"],"operations":["CREATE"]}}]"#
        )
    }
}

impl Configuration {
    pub(super) const fn webhooks(count: usize, subject: Subject) -> Self {
        Self { kind: Kind::Webhooks, count, subject }
    }

    pub(super) const fn policies(count: usize, subject: Subject) -> Self {
        Self { kind: Kind::Policies, count, subject }
    }

    /// Returns the collections of the objects of the configuration.
    pub(super) fn collections(&self) -> Vec<String> {
        let resources: &[&str] = match self.kind {
            Kind::Webhooks => &["validatingwebhookconfigurations"],
            Kind::Policies => &["validatingadmissionpolicies", "validatingadmissionpolicybindings"],
        };
        resources.iter().map(|resource| format!("{GROUP}/{resource}")).collect()
    }

    /// Returns the objects of the configuration, in the order of their creation.
    pub(super) fn objects(&self, setting: &BenchContext, webhook: &Webhook) -> Vec<Creation> {
        match (self.kind, self.collections().as_slice()) {
            (Kind::Webhooks, [webhooks]) => {
                let named = |at| (format!("w{at}.bench.example.com"), webhook.url());
                vec![(
                    webhooks.clone(),
                    webhook_configuration(setting, (0..self.count).map(named), self.subject, 10),
                )]
            }
            (Kind::Policies, [policies, bindings]) => {
                let policy = |at| (policies.clone(), policy(at, self.subject));
                let binding = |at| (bindings.clone(), binding(at));
                (0..self.count).map(policy).chain((0..self.count).map(binding)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns a dry run of a creation that all webhooks or policies match; the last of the policies denies it.
    pub(super) fn probe(&self) -> Creation {
        self.subject.dry_run(&denied_name(self.count.saturating_sub(1)))
    }

    /// Returns true if the webhook server counts the matched requests.
    pub(super) fn is_counted(&self) -> bool {
        matches!(self.kind, Kind::Webhooks)
    }
}

/// Returns a ValidatingWebhookConfiguration with these names and URLs.
pub(super) fn webhook_configuration(
    setting: &BenchContext,
    webhooks: impl Iterator<Item = (String, String)>,
    subject: Subject,
    seconds: u32,
) -> String {
    let (ca, rules) = (base64(setting.certificates.ca_pem().as_bytes()), subject.rules());
    let mut all = String::new();
    for (name, url) in webhooks {
        let comma = if all.is_empty() { "" } else { "," };
        // Writing into a String cannot fail.
        let _infallible = write!(
            all,
            r#"{comma}{{"name":"{name}","clientConfig":{{"url":"{url}","caBundle":"{ca}"}},"rules":{rules},"sideEffects":"None","admissionReviewVersions":["v1"],"failurePolicy":"Fail","timeoutSeconds":{seconds}}}"#
        );
    }
    format!(
        r#"{{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{{"name":"bench"}},"webhooks":[{all}]}}"#
    )
}

/// Returns the object name that policy number `at` denies.
fn denied_name(at: usize) -> String {
    format!("refused-{at}")
}

/// Returns a policy of three expressions that hold for created objects.
fn policy(at: usize, subject: Subject) -> String {
    let (rules, refused) = (subject.rules(), denied_name(at));
    let expressions = [
        format!("object.metadata.name != '{refused}'"),
        "object.data.all(key, size(key) < 64)".to_owned(),
        "!has(object.metadata.labels) || !('forbidden' in object.metadata.labels)".to_owned(),
    ];
    let validations = expressions.map(|text| format!(r#"{{"expression":"{text}"}}"#)).join(",");
    format!(
        r#"{{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{{"name":"p{at:03}"}},"spec":{{"failurePolicy":"Fail","matchConstraints":{{"resourceRules":{rules}}},"validations":[{validations}]}}}}"#
    )
}

fn binding(at: usize) -> String {
    format!(
        r#"{{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyBinding","metadata":{{"name":"p{at:03}"}},"spec":{{"policyName":"p{at:03}","validationActions":["Deny"]}}}}"#
    )
}
