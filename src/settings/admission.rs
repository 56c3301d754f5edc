//! Which admission plugins are on, by upstream's names.

use clap::Args;

use super::SettingError;

/// Every name that upstream's flags know. Those that this server has no plugin for are taken and change nothing, so that
/// command lines made for upstream start it as well; of some it warns.
const KNOWN: [&str; 37] = [
    "AlwaysAdmit",
    "AlwaysDeny",
    "AlwaysPullImages",
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "ClusterTrustBundleAttest",
    "DefaultIngressClass",
    "DefaultStorageClass",
    "DefaultTolerationSeconds",
    "DenyServiceExternalIPs",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "ImagePolicyWebhook",
    "LimitPodHardAntiAffinityTopology",
    "LimitRanger",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "NamespaceAutoProvision",
    "NamespaceExists",
    "NamespaceLifecycle",
    "NodeDeclaredFeatureValidator",
    "NodeRestriction",
    "OwnerReferencesPermissionEnforcement",
    "PersistentVolumeClaimResize",
    "PodNodeSelector",
    "PodSecurity",
    "PodTolerationRestriction",
    "PodTopologyLabels",
    "Priority",
    "ResourceQuota",
    "RuntimeClass",
    "ServiceAccount",
    "StorageObjectInUseProtection",
    "TaintNodesByCondition",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
];

/// Plugins that upstream has off and this server does not have: who turns one on expects something of it.
const ABSENT: [&str; 12] = [
    "AlwaysDeny",
    "AlwaysPullImages",
    "DenyServiceExternalIPs",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "ImagePolicyWebhook",
    "LimitPodHardAntiAffinityTopology",
    "NamespaceAutoProvision",
    "NodeRestriction",
    "OwnerReferencesPermissionEnforcement",
    "PodNodeSelector",
    "PodTolerationRestriction",
];

/// Admission plugins to turn on and off.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Admission"))]
pub(crate) struct Admission {
    /// Admission plugins to turn on besides those that are on by default. What this server has is on by default.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) enable_admission_plugins: Vec<String>,
    /// Admission plugins to turn off although they are on by default.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) disable_admission_plugins: Vec<String>,
}

impl Admission {
    /// The plugins that are turned on and that this server does not have.
    pub(crate) fn absent(&self) -> impl Iterator<Item = &str> {
        self.enable_admission_plugins.iter().map(String::as_str).filter(|name| ABSENT.contains(name))
    }

    pub(super) fn check(&self) -> Result<(), SettingError> {
        let lists = [
            ("--enable-admission-plugins", &self.enable_admission_plugins),
            ("--disable-admission-plugins", &self.disable_admission_plugins),
        ];
        for (flag, names) in lists {
            if let Some(name) = names.iter().find(|name| !KNOWN.contains(&name.as_str())) {
                return Err(SettingError::new(flag, format!("{name:?} is unknown")));
            }
        }
        let both = |name: &&String| self.disable_admission_plugins.contains(name);
        match self.enable_admission_plugins.iter().find(both) {
            Some(name) => Err(SettingError::new(
                "--enable-admission-plugins",
                format!("{name:?} stands in --disable-admission-plugins, too"),
            )),
            None => Ok(()),
        }
    }
}
