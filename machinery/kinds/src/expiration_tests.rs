//! Kinds that come and go with releases.

use std::sync::Arc;

use portico_machinery::GroupVersion;
use portico_machinery::expiration::{Evaluator, Release};

use crate::{KindInfo, Kinds, RuntimeConfig};

#[test]
fn a_release_without_a_kind_no_longer_serves_it_nor_an_empty_group_version() {
    let kinds = Kinds::builtin().unwrap();
    let release = |minor| Evaluator::new(Release { major: 1, minor });
    let usual = RuntimeConfig::default();
    assert!(Arc::ptr_eq(&kinds.of_release(&release(36), &usual).unwrap(), &kinds));
    let infos = kinds.iter().map(|info| {
        let mut info = KindInfo::clone(info);
        if info.resource == "leases" {
            info.lifecycle.removed = Some(Release { major: 1, minor: 40 });
        }
        info
    });
    let dying = Arc::new(
        Kinds::new(infos.map(Arc::new).collect(), kinds.priorities().to_vec(), kinds.types().clone())
            .unwrap(),
    );
    let leases = GroupVersion::new("coordination.k8s.io", "v1");
    for (minor, served) in [(39, true), (40, false)] {
        let kinds = dying.of_release(&release(minor), &usual).unwrap();
        assert_eq!(kinds.by_resource(&leases.resource("leases")).is_some(), served);
        assert_eq!(kinds.served().any(|info| info.group_version == leases), served);
    }
}

/// What is served by default in an earlier release or with these settings, and not in this one, or the other way round.
fn differs(evaluator: Evaluator, settings: &[&str]) -> Vec<String> {
    let config = RuntimeConfig::parse(settings.iter().copied()).unwrap();
    let names = |kinds: Arc<Kinds>| {
        let mut names: Vec<String> =
            kinds.iter().map(|kind| format!("{}/{}", kind.group_version(), kind.resource)).collect();
        names.sort();
        names
    };
    let now = names(Kinds::serving(&Evaluator::new(Release { major: 1, minor: 36 }), &config).unwrap());
    let then = names(Kinds::serving(&evaluator, &config).unwrap());
    let gone = now.iter().filter(|name| !then.contains(name)).map(|name| format!("-{name}"));
    let come = then.iter().filter(|name| !now.contains(name)).map(|name| format!("+{name}"));
    gone.chain(come).collect()
}

#[test]
fn an_emulated_release_has_what_it_had() {
    let at = |minor| Evaluator::new(Release { major: 1, minor });
    let mutating = ["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"]
        .map(|resource| format!("-admissionregistration.k8s.io/v1/{resource}"));
    assert_eq!(differs(at(35), &[]), mutating);
    assert_eq!(differs(at(34), &[]), mutating);
    let v1 = [
        "-resource.k8s.io/v1/deviceclasses",
        "-resource.k8s.io/v1/resourceclaims",
        "-resource.k8s.io/v1/resourceclaimtemplates",
        "-resource.k8s.io/v1/resourceslices",
        "-storage.k8s.io/v1/volumeattributesclasses",
    ];
    let older: Vec<String> = mutating.iter().cloned().chain(v1.map(str::to_owned)).collect();
    assert_eq!(differs(at(33), &[]), older);
}

#[test]
fn newer_kinds_are_served_where_flags_ask_for_them() {
    let at = |minor| Evaluator::new(Release { major: 1, minor });
    let forward = Evaluator { forward_compatible: true, ..at(34) };
    // Nothing older of it is on.
    assert_eq!(differs(forward, &[]).len(), 2);
    let beta = ["admissionregistration.k8s.io/v1beta1=true"];
    assert_eq!(differs(at(34), &beta).len(), 2);
    assert_eq!(differs(forward, &beta), Vec::<String>::new());
    let named = Evaluator { runtime_config_forward_compatible: true, ..at(34) };
    assert_eq!(differs(named, &[]).len(), 2);
    let one = ["admissionregistration.k8s.io/v1/mutatingadmissionpolicies=true"];
    assert_eq!(differs(named, &one), ["-admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings"]);
    let check = |evaluator: &Evaluator, settings: &[&str]| {
        let config = RuntimeConfig::parse(settings.iter().copied()).unwrap();
        Kinds::check_introduced(evaluator, &config).map_err(|e| e.to_string())
    };
    assert_eq!(check(&named, &one), Ok(()));
    assert_eq!(
        check(&at(34), &one).unwrap_err(),
        "cannot enable resource admissionregistration.k8s.io/v1, Resource=mutatingadmissionpolicies in runtime-config because it is introduced at 1.36 after the current version 1.34. Consider setting --runtime-config-emulation-forward-compatible=true"
    );
    assert_eq!(
        check(&at(33), &["resource.k8s.io/v1=true"]).unwrap_err(),
        "cannot enable version resource.k8s.io/v1 in runtime-config because all the resources have been introduced after the current version 1.33. Consider setting --runtime-config-emulation-forward-compatible=true"
    );
}
