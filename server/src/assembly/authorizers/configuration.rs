//! `AuthorizationConfiguration`: read from a file or built from flags, and checked with upstream's messages.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use portico_auth::Decision;
use portico_auth::authz::AuthorizationMode;
use portico_auth::authz::conditions::MatchCondition;
use portico_auth::authz::review::ReviewVersion;
use portico_gostd::apimachinery::validation::dns1123_subdomain;
use portico_gostd::os::error_text;
use portico_gostd::time::GoDuration;
use portico_machinery::field::{Error, Path as Field};
use portico_machinery::{Cursor, aggregate};
use portico_schema::configuration::{ConfigKind, Scheme};

use crate::settings::AuthorizationFlags;

const KIND: &str = "AuthorizationConfiguration";
const SCHEME: Scheme = Scheme {
    kinds: &[
        ConfigKind { version: "apiserver.config.k8s.io/v1", kind: KIND, ty: KIND },
        ConfigKind { version: "apiserver.config.k8s.io/v1beta1", kind: KIND, ty: KIND },
        ConfigKind { version: "apiserver.config.k8s.io/v1alpha1", kind: KIND, ty: KIND },
    ],
    types: r#"{
        "AuthorizationConfiguration": {"fields": {
            "kind": {"type": "string"}, "apiVersion": {"type": "string"},
            "authorizers": {"type": "[]AuthorizerConfiguration"}
        }},
        "AuthorizerConfiguration": {"fields": {
            "type": {"type": "string"}, "name": {"type": "string"}, "webhook": {"type": "WebhookConfiguration"}
        }},
        "WebhookConfiguration": {"fields": {
            "authorizedTTL": {"type": "string"}, "cacheAuthorizedRequests": {"type": "boolean"},
            "unauthorizedTTL": {"type": "string"}, "cacheUnauthorizedRequests": {"type": "boolean"},
            "timeout": {"type": "string"}, "subjectAccessReviewVersion": {"type": "string"},
            "matchConditionSubjectAccessReviewVersion": {"type": "string"}, "failurePolicy": {"type": "string"},
            "connectionInfo": {"type": "WebhookConnectionInfo"}, "matchConditions": {"type": "[]WebhookMatchCondition"}
        }},
        "WebhookConnectionInfo": {"fields": {"type": {"type": "string"}, "kubeConfigFile": {"type": "string"}}},
        "WebhookMatchCondition": {"fields": {"expression": {"type": "string"}}}
    }"#,
    strict: true,
};

/// Timeout of an authorization webhook.
///
/// Limit (Authentication and authorization): the configuration is rejected.
const MAX_TIMEOUT: Duration = Duration::from_secs(30);
const AUTHORIZED_TTL: Duration = Duration::from_secs(5 * 60);
const UNAUTHORIZED_TTL: Duration = Duration::from_secs(30);
/// Match conditions of one authorization webhook.
///
/// Limit (Authentication and authorization): the configuration is rejected.
const MAX_CONDITIONS: usize = 64;
/// Name of the webhook that flags define.
const DEFAULT_WEBHOOK: &str = "default";

/// Authorization configuration.
#[derive(Debug)]
pub(crate) struct Configuration {
    pub(super) authorizers: Vec<AuthorizerConfiguration>,
}

/// Configuration of one authorizer.
#[derive(Debug)]
pub(super) struct AuthorizerConfiguration {
    pub(super) mode: AuthorizationMode,
    pub(super) name: String,
    pub(super) webhook: Option<WebhookConfiguration>,
}

/// Configuration of an authorization webhook.
#[derive(Debug)]
pub(super) struct WebhookConfiguration {
    pub(super) authorized_ttl: Duration,
    pub(super) unauthorized_ttl: Duration,
    pub(super) timeout: Duration,
    pub(super) version: ReviewVersion,
    pub(super) failure_policy: FailurePolicy,
    pub(super) kube_config_file: PathBuf,
    pub(super) match_conditions: Vec<String>,
}

/// Decision if a webhook call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailurePolicy {
    /// The next authorizers decide.
    NoOpinion,
    /// The request is denied.
    Deny,
}

impl FailurePolicy {
    pub(super) fn decision(self) -> Decision {
        match self {
            Self::NoOpinion => Decision::no_opinion(""),
            Self::Deny => Decision::deny(""),
        }
    }
}

impl Configuration {
    /// Converts flags.
    pub(super) fn from_flags(flags: &AuthorizationFlags) -> Self {
        let webhook = |file: &PathBuf| WebhookConfiguration {
            authorized_ttl: flags.authorized_ttl,
            unauthorized_ttl: flags.unauthorized_ttl,
            timeout: MAX_TIMEOUT,
            version: flags.webhook_version,
            failure_policy: FailurePolicy::NoOpinion,
            kube_config_file: file.clone(),
            match_conditions: Vec::new(),
        };
        let authorizer = |mode: &AuthorizationMode| match mode {
            AuthorizationMode::Webhook => AuthorizerConfiguration {
                mode: *mode,
                name: DEFAULT_WEBHOOK.to_owned(),
                webhook: flags.webhook_config_file.as_ref().map(webhook),
            },
            _ => AuthorizerConfiguration { mode: *mode, name: required_name(*mode), webhook: None },
        };
        Self { authorizers: flags.modes.iter().map(authorizer).collect() }
    }

    /// Reads the content of a file. `started` are the modes, except for webhooks, with which the server has started. They cannot
    /// be removed, and no other mode can be added that must be known at startup.
    ///
    /// # Errors
    /// The configuration is invalid.
    pub(crate) fn read(bytes: &[u8], started: Option<&BTreeSet<AuthorizationMode>>) -> Result<Self, String> {
        let object = SCHEME
            .decode(bytes)
            .map_err(|error| format!("failed to load AuthorizationConfiguration from file: {error}"))?;
        let mut reader = Reader::default();
        let authorizers = reader.authorizers(&object.at(&["authorizers"]));
        if !reader.errors.is_empty() {
            return Err(aggregate(&reader.errors));
        }
        let configuration = Self { authorizers };
        configuration.check_names()?;
        configuration.check_modes(started)?;
        Ok(configuration)
    }

    fn check_names(&self) -> Result<(), String> {
        let others =
            self.authorizers.iter().filter(|authorizer| authorizer.mode != AuthorizationMode::Webhook);
        let errors =
            others.filter(|authorizer| authorizer.name != required_name(authorizer.mode)).map(|one| {
                let (expected, mode) = (required_name(one.mode), one.mode.name());
                format!("expected name {expected} for authorizer {mode} instead of {}", one.name)
            });
        let errors: Vec<_> = errors.collect();
        if errors.is_empty() { Ok(()) } else { Err(aggregate(&errors)) }
    }

    fn check_modes(&self, started: Option<&BTreeSet<AuthorizationMode>>) -> Result<(), String> {
        let Some(started) = started else { return Ok(()) };
        let modes: BTreeSet<AuthorizationMode> =
            self.authorizers.iter().map(|authorizer| authorizer.mode).collect();
        let mut missing: Vec<_> = started.difference(&modes).map(|mode| mode.name()).collect();
        if !missing.is_empty() {
            missing.sort_unstable();
            return Err(format!("missing required types: [{}]", missing.join(" ")));
        }
        let permanent_modes = [AuthorizationMode::Node, AuthorizationMode::Rbac, AuthorizationMode::Abac];
        match permanent_modes.iter().find(|mode| modes.contains(mode) && !started.contains(mode)) {
            Some(mode) => Err(format!(
                "authorizer type {} is not allowed if it was not enabled at initial server startup",
                mode.name()
            )),
            None => Ok(()),
        }
    }
}

/// Returns the name that an authorizer of a mode other than webhook must have.
fn required_name(mode: AuthorizationMode) -> String {
    mode.name().to_ascii_lowercase()
}

/// Decoder that collects errors.
#[derive(Default)]
struct Reader {
    errors: Vec<Error>,
}

impl Reader {
    fn authorizers(&mut self, list: &Cursor<'_>) -> Vec<AuthorizerConfiguration> {
        let path = list.path();
        if list.is_empty() {
            self.errors.push(Error::required(&path, "at least one authorization mode must be defined"));
        }
        let (mut modes, mut names, mut read) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
        for item in list.items() {
            let Some(mode) = self.mode(&item.field("type"), &mut modes) else { continue };
            self.name(&item.field("name"), &mut names);
            let webhook = item.field("webhook");
            let webhook = match (mode, webhook.is_present()) {
                (AuthorizationMode::Webhook, false) => {
                    self.errors.push(webhook.required("required when type=Webhook"));
                    continue;
                }
                (AuthorizationMode::Webhook, true) => self.webhook(&item.path(), &webhook),
                (_, true) => {
                    let message = "may only be specified when type=Webhook";
                    self.errors.push(Error::invalid(&webhook.path(), "non-null", message));
                    None
                }
                (_, false) => None,
            };
            read.push(AuthorizerConfiguration { mode, name: item.field("name").str().to_owned(), webhook });
        }
        read
    }

    fn mode(&mut self, at: &Cursor<'_>, seen: &mut BTreeSet<AuthorizationMode>) -> Option<AuthorizationMode> {
        let supported = ["ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"];
        if at.str().is_empty() {
            self.errors.push(at.required(""));
            return None;
        }
        let Some(mode) = AuthorizationMode::from_name(at.str()) else {
            self.errors.push(at.not_supported(&supported));
            return None;
        };
        if !seen.insert(mode) && mode != AuthorizationMode::Webhook {
            self.errors.push(at.duplicate());
            return None;
        }
        Some(mode)
    }

    fn name<'a>(&mut self, at: &Cursor<'a>, seen: &mut BTreeSet<&'a str>) {
        let name = at.str();
        let diagnostics = dns1123_subdomain(name);
        if name.is_empty() {
            self.errors.push(at.required(""));
        } else if seen.contains(name) {
            self.errors.push(at.duplicate());
        } else if !diagnostics.is_empty() {
            self.errors.push(at.invalid(&format!("authorizer name is invalid: {}", diagnostics.join(", "))));
        }
        seen.insert(name);
    }

    /// Reads the configuration of a webhook. As in upstream, the paths of errors omit `webhook`.
    fn webhook(&mut self, path: &Field, at: &Cursor<'_>) -> Option<WebhookConfiguration> {
        let timeout = self.duration(path, at, "timeout", None);
        if timeout.is_some_and(|timeout| timeout > MAX_TIMEOUT) {
            let printed = at.field("timeout").str().parse::<GoDuration>().map(|d| d.to_string());
            let path = path.child("timeout");
            self.errors.push(Error::invalid(&path, printed.unwrap_or_default(), "must be > 0s and <= 30s"));
        }
        let ttl = |reader: &mut Self, field: &str, cached: &str, default| {
            let ttl = reader.duration(path, at, field, Some(default));
            if at.field(cached).opt_bool() == Some(false) { Some(Duration::ZERO) } else { ttl }
        };
        let authorized_ttl = ttl(self, "authorizedTTL", "cacheAuthorizedRequests", AUTHORIZED_TTL);
        let unauthorized_ttl = ttl(self, "unauthorizedTTL", "cacheUnauthorizedRequests", UNAUTHORIZED_TTL);
        let version = self.one_of(path, at, "subjectAccessReviewVersion", &["v1", "v1beta1"]);
        let conditions = at.field("matchConditions");
        self.condition_version(path, at, !conditions.is_empty());
        let policy = self.one_of(path, at, "failurePolicy", &["NoOpinion", "Deny"]);
        let kube_config_file = self.connection(&path.child("connectionInfo"), &at.field("connectionInfo"));
        let match_conditions = self.conditions(&path.child("matchConditions"), &conditions);
        Some(WebhookConfiguration {
            authorized_ttl: authorized_ttl?,
            unauthorized_ttl: unauthorized_ttl?,
            timeout: timeout?,
            version: ReviewVersion::from_name(version?)?,
            failure_policy: match policy? {
                "Deny" => FailurePolicy::Deny,
                _ => FailurePolicy::NoOpinion,
            },
            kube_config_file: kube_config_file?,
            match_conditions,
        })
    }

    /// Reads a positive duration. Zero selects the default, if there is one.
    fn duration(
        &mut self,
        path: &Field,
        at: &Cursor<'_>,
        field: &str,
        default: Option<Duration>,
    ) -> Option<Duration> {
        let (path, text) = (path.child(field), at.field(field).str());
        let time = match text {
            "" => Ok(GoDuration(0)),
            text => text.parse::<GoDuration>(),
        };
        let error = match time {
            Ok(GoDuration(0)) => match default {
                Some(default) => return Some(default),
                None => Error::required(&path, ""),
            },
            Ok(time @ GoDuration(1..)) => return Some(time.to_std()),
            Ok(time) => {
                let message = if default.is_some() { "must be > 0s" } else { "must be > 0s and <= 30s" };
                Error::invalid(&path, time.to_string(), message)
            }
            Err(error) => Error::invalid(&path, text, &error.to_string()),
        };
        self.errors.push(error);
        None
    }

    fn one_of<'a>(
        &mut self,
        path: &Field,
        at: &Cursor<'a>,
        field: &'a str,
        supported: &[&str],
    ) -> Option<&'a str> {
        let (path, text) = (path.child(field), at.field(field).opt_str().unwrap_or_default());
        if text.is_empty() {
            self.errors.push(Error::required(&path, ""));
            return None;
        }
        if !supported.contains(&text) {
            self.errors.push(Error::not_supported(&path, text, supported));
            return None;
        }
        Some(text)
    }

    fn condition_version(&mut self, path: &Field, at: &Cursor<'_>, are_conditions: bool) {
        let field = "matchConditionSubjectAccessReviewVersion";
        let path = path.child(field);
        match at.field(field).str() {
            "" if are_conditions => {
                self.errors.push(Error::required(&path, "required if match conditions are specified"));
            }
            "" | "v1" => {}
            other => self.errors.push(Error::not_supported(&path, other, &["v1"])),
        }
    }

    fn connection(&mut self, path: &Field, at: &Cursor<'_>) -> Option<PathBuf> {
        let (at_file, file) = (path.child("kubeConfigFile"), at.field("kubeConfigFile"));
        let error = match at.field("type").str() {
            "" => Error::required(&path.child("type"), ""),
            "InClusterConfig" if file.is_present() => {
                Error::invalid(&at_file, file.str(), "can only be set when type=KubeConfigFile")
            }
            // Upstream accepts this type here, but fails to start.
            "InClusterConfig" => Error::invalid(
                &path.child("type"),
                "InClusterConfig",
                "is not supported by an API server itself",
            ),
            "KubeConfigFile" => match kubeconfig_error(file.str()) {
                None if file.str().is_empty() => Error::required(&at_file, ""),
                None => return Some(PathBuf::from(file.str())),
                Some(message) => Error::invalid(&at_file, file.str(), &message),
            },
            _ => Error::not_supported_printed(
                &path.child("type"),
                &at.json(),
                &["InClusterConfig", "KubeConfigFile"],
            ),
        };
        self.errors.push(error);
        None
    }

    fn conditions(&mut self, path: &Field, list: &Cursor<'_>) -> Vec<String> {
        if list.len() > MAX_CONDITIONS {
            self.errors.push(Error::too_many(path, list.len(), MAX_CONDITIONS));
            return Vec::new();
        }
        let mut seen = Vec::new();
        for (index, condition) in list.items().enumerate() {
            let (path, text) =
                (path.index(index).child("expression"), condition.field("expression").str().to_owned());
            if text.trim().is_empty() {
                self.errors.push(Error::required(&path, ""));
            } else if seen.contains(&text) {
                self.errors.push(Error::duplicate(&path, &text));
            } else {
                if let Err(error) = MatchCondition::compile(&text) {
                    self.errors.push(Error::invalid(&path, &text, &error));
                }
                seen.push(text);
            }
        }
        seen
    }
}

/// Returns the reason why a kubeconfig cannot be used; `None` if it can, or if the path is empty.
fn kubeconfig_error(file: &str) -> Option<String> {
    let path = Path::new(file);
    if file.is_empty() {
        return None;
    }
    if !path.is_absolute() {
        return Some("must be an absolute path".to_owned());
    }
    match std::fs::metadata(path) {
        Err(error) => Some(format!("error loading file: stat {file}: {}", error_text(&error))),
        Ok(found) if !found.is_file() => Some("must be a regular file".to_owned()),
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(authorizers: &str) -> Result<Configuration, String> {
        let text =
            format!("apiVersion: apiserver.config.k8s.io/v1\nkind: {KIND}\nauthorizers: {authorizers}");
        Configuration::read(text.as_bytes(), None)
    }

    fn webhook(fields: &str) -> Result<Configuration, String> {
        read(&format!("[{{type: Webhook, name: w, webhook: {{{fields}}}}}]"))
    }

    const VALID_WEBHOOK: &str = "timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: Deny, connectionInfo: {type: KubeConfigFile, kubeConfigFile: /dev/../etc/hostname}";

    #[test]
    fn authorizers_are_read_in_order_with_defaults() {
        let authorizers = format!(
            "[{{type: Node, name: node}}, {{type: Webhook, name: w, webhook: {{{VALID_WEBHOOK}}}}}, {{type: RBAC, name: rbac}}]"
        );
        let read = read(&authorizers).unwrap();
        let modes: Vec<_> = read.authorizers.iter().map(|authorizer| authorizer.mode).collect();
        assert_eq!(modes, [AuthorizationMode::Node, AuthorizationMode::Webhook, AuthorizationMode::Rbac]);
        let webhook = read.authorizers[1].webhook.as_ref().unwrap();
        assert_eq!((webhook.authorized_ttl, webhook.unauthorized_ttl), (AUTHORIZED_TTL, UNAUTHORIZED_TTL));
        assert_eq!((webhook.timeout.as_secs(), webhook.failure_policy), (3, FailurePolicy::Deny));
        let without_cache = super::tests::webhook(&format!(
            "{VALID_WEBHOOK}, cacheAuthorizedRequests: false, unauthorizedTTL: 1s"
        ))
        .unwrap();
        let webhook = without_cache.authorizers[0].webhook.as_ref().unwrap();
        assert_eq!((webhook.authorized_ttl, webhook.unauthorized_ttl.as_secs()), (Duration::ZERO, 1));
    }

    #[test]
    fn errors_have_upstreams_messages() {
        for (authorizers, expected) in [
            ("[]", "authorizers: Required value: at least one authorization mode must be defined"),
            ("[{name: x}]", "authorizers[0].type: Required value"),
            (
                "[{type: Foo, name: x}]",
                r#"authorizers[0].type: Unsupported value: "Foo": supported values: "ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook""#,
            ),
            (
                "[{type: RBAC, name: rbac}, {type: RBAC, name: rbac}]",
                r#"authorizers[1].type: Duplicate value: "RBAC""#,
            ),
            ("[{type: RBAC, name: other}]", "expected name rbac for authorizer RBAC instead of other"),
            ("[{type: RBAC}]", "authorizers[0].name: Required value"),
            (
                "[{type: Webhook, name: w}]",
                "authorizers[0].webhook: Required value: required when type=Webhook",
            ),
            (
                "[{type: RBAC, name: rbac, webhook: {}}]",
                r#"authorizers[0].webhook: Invalid value: "non-null": may only be specified when type=Webhook"#,
            ),
        ] {
            assert_eq!(read(authorizers).unwrap_err(), expected, "{authorizers}");
        }
        let strict = read("[{type: RBAC, name: rbac, extra: 1}]").unwrap_err();
        assert!(strict.contains(r#"unknown field "authorizers[0].extra""#), "{strict}");
    }

    #[test]
    fn a_webhook_requires_all_fields_without_defaults() {
        let error = webhook("").unwrap_err();
        for field in ["timeout", "subjectAccessReviewVersion", "failurePolicy", "connectionInfo.type"] {
            assert!(error.contains(&format!("authorizers[0].{field}: Required value")), "{field}: {error}");
        }
        for (fields, expected) in [
            ("timeout: 31s", r#"authorizers[0].timeout: Invalid value: "31s": must be > 0s and <= 30s"#),
            ("authorizedTTL: -1s", r#"authorizers[0].authorizedTTL: Invalid value: "-1s": must be > 0s"#),
            (
                "failurePolicy: Allow",
                r#"authorizers[0].failurePolicy: Unsupported value: "Allow": supported values: "NoOpinion", "Deny""#,
            ),
            (
                "subjectAccessReviewVersion: v2",
                r#"authorizers[0].subjectAccessReviewVersion: Unsupported value: "v2": supported values: "v1", "v1beta1""#,
            ),
            (
                "connectionInfo: {type: KubeConfigFile, kubeConfigFile: x}",
                r#"authorizers[0].connectionInfo.kubeConfigFile: Invalid value: "x": must be an absolute path"#,
            ),
            (
                "connectionInfo: {type: KubeConfigFile, kubeConfigFile: /nosuch}",
                r#"authorizers[0].connectionInfo.kubeConfigFile: Invalid value: "/nosuch": error loading file: stat /nosuch: no such file or directory"#,
            ),
            (
                "matchConditions: [{expression: 'true'}]",
                "authorizers[0].matchConditionSubjectAccessReviewVersion: Required value: required if match conditions are specified",
            ),
            (
                "matchConditions: [{expression: '1'}]",
                r#"authorizers[0].matchConditions[0].expression: Invalid value: "1": must evaluate to bool but got int"#,
            ),
            (
                "matchConditions: [{expression: 'true'}, {expression: 'true'}]",
                r#"authorizers[0].matchConditions[1].expression: Duplicate value: "true""#,
            ),
        ] {
            let refused = webhook(fields).unwrap_err();
            assert!(refused.contains(expected), "{fields}: {refused}");
        }
    }

    #[test]
    fn modes_that_must_be_known_at_startup_cannot_change() {
        let text = |authorizers: &str| {
            format!("apiVersion: apiserver.config.k8s.io/v1\nkind: {KIND}\nauthorizers: {authorizers}")
        };
        let started = BTreeSet::from([AuthorizationMode::Rbac, AuthorizationMode::AlwaysDeny]);
        let read =
            |authorizers: &str| Configuration::read(text(authorizers).as_bytes(), Some(&started)).map(drop);
        let both = "{type: RBAC, name: rbac}, {type: AlwaysDeny, name: alwaysdeny}";
        assert_eq!(read(&format!("[{both}]")), Ok(()));
        assert_eq!(
            read("[{type: AlwaysDeny, name: alwaysdeny}]").unwrap_err(),
            "missing required types: [RBAC]"
        );
        let error = read(&format!("[{both}, {{type: Node, name: node}}]")).unwrap_err();
        assert_eq!(
            error,
            "authorizer type Node is not allowed if it was not enabled at initial server startup"
        );
    }
}
