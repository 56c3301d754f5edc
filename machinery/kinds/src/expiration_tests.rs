//! Tests of kinds that releases introduce and remove.

use std::sync::Arc;

use portico_machinery::GroupVersion;
use portico_machinery::expiration::{ExpirationEvaluator, Release};

use crate::{KindInfo, Kinds, RuntimeConfig};

#[test]
fn a_release_serves_neither_removed_kinds_nor_empty_group_versions() {
    let kinds = Kinds::builtin().unwrap();
    let release = |minor| ExpirationEvaluator::new(Release { major: 1, minor });
    let default_config = RuntimeConfig::default();
    assert!(Arc::ptr_eq(&kinds.filter_enabled(&release(36), &default_config).unwrap(), &kinds));
    let infos = kinds.iter().map(|info| {
        let mut info = KindInfo::clone(info);
        if info.resource == "leases" {
            info.lifecycle.removed = Some(Release { major: 1, minor: 40 });
        }
        info
    });
    let with_removed_kind = Arc::new(
        Kinds::new(infos.map(Arc::new).collect(), kinds.priorities().to_vec(), kinds.types().clone())
            .unwrap(),
    );
    let leases = GroupVersion::new("coordination.k8s.io", "v1");
    for (minor, served) in [(39, true), (40, false)] {
        let kinds = with_removed_kind.filter_enabled(&release(minor), &default_config).unwrap();
        assert_eq!(kinds.by_resource(&leases.resource("leases")).is_some(), served);
        assert_eq!(kinds.served_group_versions().any(|info| info.group_version == leases), served);
    }
}

/// Returns the difference between the kinds served with these settings and the kinds served by default.
fn served_difference(evaluator: ExpirationEvaluator, settings: &[&str]) -> Vec<String> {
    let config = RuntimeConfig::parse(settings.iter().copied()).unwrap();
    let names = |kinds: Arc<Kinds>| {
        let mut names: Vec<String> =
            kinds.iter().map(|kind| format!("{}/{}", kind.group_version(), kind.resource)).collect();
        names.sort();
        names
    };
    let now =
        names(Kinds::enabled(&ExpirationEvaluator::new(Release { major: 1, minor: 36 }), &config).unwrap());
    let then = names(Kinds::enabled(&evaluator, &config).unwrap());
    let removed = now.iter().filter(|name| !then.contains(name)).map(|name| format!("-{name}"));
    let added = then.iter().filter(|name| !now.contains(name)).map(|name| format!("+{name}"));
    removed.chain(added).collect()
}

#[test]
fn an_emulated_release_serves_its_kinds() {
    let emulating = |minor| ExpirationEvaluator::new(Release { major: 1, minor });
    let mutating = ["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"]
        .map(|resource| format!("-admissionregistration.k8s.io/v1/{resource}"));
    assert_eq!(served_difference(emulating(35), &[]), mutating);
    assert_eq!(served_difference(emulating(34), &[]), mutating);
    let v1 = [
        "-resource.k8s.io/v1/deviceclasses",
        "-resource.k8s.io/v1/resourceclaims",
        "-resource.k8s.io/v1/resourceclaimtemplates",
        "-resource.k8s.io/v1/resourceslices",
        "-storage.k8s.io/v1/volumeattributesclasses",
    ];
    let older: Vec<String> = mutating.iter().cloned().chain(v1.map(str::to_owned)).collect();
    assert_eq!(served_difference(emulating(33), &[]), older);
}

#[test]
fn newer_kinds_are_served_if_flags_enable_them() {
    let emulating = |minor| ExpirationEvaluator::new(Release { major: 1, minor });
    let forward_compatible = ExpirationEvaluator { forward_compatible: true, ..emulating(34) };
    // No older version of the newer kinds is enabled.
    assert_eq!(served_difference(forward_compatible, &[]).len(), 2);
    let beta = ["admissionregistration.k8s.io/v1beta1=true"];
    assert_eq!(served_difference(emulating(34), &beta).len(), 2);
    assert_eq!(served_difference(forward_compatible, &beta), Vec::<String>::new());
    let named = ExpirationEvaluator { runtime_config_forward_compatible: true, ..emulating(34) };
    assert_eq!(served_difference(named, &[]).len(), 2);
    let one_resource = ["admissionregistration.k8s.io/v1/mutatingadmissionpolicies=true"];
    assert_eq!(
        served_difference(named, &one_resource),
        ["-admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings"]
    );
    let check = |evaluator: &ExpirationEvaluator, settings: &[&str]| {
        let config = RuntimeConfig::parse(settings.iter().copied()).unwrap();
        Kinds::check_introduced(evaluator, &config).map_err(|e| e.to_string())
    };
    assert_eq!(check(&named, &one_resource), Ok(()));
    assert_eq!(
        check(&emulating(34), &one_resource).unwrap_err(),
        "cannot enable resource admissionregistration.k8s.io/v1, Resource=mutatingadmissionpolicies in runtime-config because it is introduced at 1.36 after the current version 1.34. Consider setting --runtime-config-emulation-forward-compatible=true"
    );
    assert_eq!(
        check(&emulating(33), &["resource.k8s.io/v1=true"]).unwrap_err(),
        "cannot enable version resource.k8s.io/v1 in runtime-config because all the resources have been introduced after the current version 1.33. Consider setting --runtime-config-emulation-forward-compatible=true"
    );
}
