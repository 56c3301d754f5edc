//! Kinds that come and go with releases.

use std::sync::Arc;

use portico_machinery::GroupVersion;
use portico_machinery::expiration::{Evaluator, Release};

use crate::{KindInfo, Kinds};

#[test]
fn a_release_without_a_kind_no_longer_serves_it_nor_an_empty_group_version() {
    let kinds = Kinds::builtin().unwrap();
    let release = |minor| Evaluator::new(Release { major: 1, minor });
    assert!(Arc::ptr_eq(&kinds.unexpired(&release(36)).unwrap(), &kinds));
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
        let kinds = dying.unexpired(&release(minor)).unwrap();
        assert_eq!(kinds.by_resource(&leases.resource("leases")).is_some(), served);
        assert_eq!(kinds.served().any(|info| info.group_version == leases), served);
    }
}
