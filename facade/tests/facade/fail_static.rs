//! Start of a facade without its control service.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use portico_facade::{FacadeSettings, FailStaticSettings};
use portico_machinery::digest::sha256_hex;
use portico_machinery::discovery::ServedVersion;
use portico_proto::convert::Payload;

use super::backend::Backend;
use super::control::ScriptedControl;
use super::rig::{Rig, eventually, route, served};

fn with_saved_state(
    dir: &std::path::Path,
    store_id: Option<&str>,
) -> impl FnOnce(&mut FacadeSettings) + use<> {
    let fail_static = FailStaticSettings {
        data_dir: dir.to_owned(),
        max_age: Duration::from_secs(3600),
        store_id: store_id.map(str::to_owned),
    };
    |settings| settings.fail_static = Some(fail_static)
}

fn unreachable_control() -> ScriptedControl {
    let control = ScriptedControl::new(Vec::new());
    control.set_away(true);
    control
}

#[tokio::test]
async fn a_restart_without_control_service_serves_routes_and_discovery_from_disk() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let backend = Backend::start("svc.ns.svc");
    let list = Bytes::from_static(
        b"{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":\"apps/v1\",\"resources\":[]}",
    );
    let mut snapshot = route("v1.g.example", &backend);
    let mut apps = served("apps", "v1");
    if let Some(Payload::Served(s)) = &mut apps.payload {
        *s = Arc::new(ServedVersion { resource_list: sha256_hex(&list), ..ServedVersion::clone(s) });
    }
    snapshot.push(apps);
    let control = ScriptedControl::new(snapshot);
    control.add_document(&sha256_hex(&list), list);
    let rig = Rig::with_settings(control, with_saved_state(dir.path(), None)).await.until_configured().await;
    let path = dir.path().join("facade-state/state");
    eventually(|| async {
        std::fs::read(&path).ok().filter(|b| b.windows(15).any(|w| w == b"APIResourceList"))
    })
    .await;
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    rig.facade.shutdown().await;

    let rig = Rig::with_settings(unreachable_control(), with_saved_state(dir.path(), None))
        .await
        .until_configured()
        .await;
    assert_eq!(rig.client.get("/apis/g.example/v1/things").await.code, 200);
    let verbose = rig.client.get("/readyz?verbose").await;
    assert_eq!(verbose.code, 200);
    assert!(verbose.text.contains("fail-static: serving revision 1 of store store"), "{}", verbose.text);
    let discovery = rig.client.get("/apis/apps/v1").await;
    assert!(discovery.text.contains("APIResourceList"), "{}", discovery.text);
    rig.facade.shutdown().await;

    let other =
        Rig::with_settings(unreachable_control(), with_saved_state(dir.path(), Some("another"))).await;
    assert_eq!(other.client.get("/apis/g.example/v1/things").await.code, 503);
    assert_eq!(other.client.get("/readyz").await.code, 500);
    other.facade.shutdown().await;

    // A state that was current two hours ago. The file itself is new, as a restored copy would be.
    let state = std::fs::read(&path).unwrap();
    let text =
        String::from_utf8_lossy(&state[..state.iter().position(|b| *b == b'\n').unwrap()]).into_owned();
    let at: u64 = text.split("\"current_at\":").nth(1).unwrap().split(',').next().unwrap().parse().unwrap();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    assert!(at <= now && at + 60 > now, "{at}");
    let aged = |at: u64, by: i64| {
        let header = text.replace(&at.to_string(), &at.checked_add_signed(by).unwrap().to_string());
        std::fs::write(&path, [header.as_bytes(), &state[text.len()..]].concat()).unwrap();
    };
    aged(at, 7200);
    let future = Rig::with_settings(unreachable_control(), with_saved_state(dir.path(), None)).await;
    assert_eq!(future.client.get("/readyz").await.code, 500, "the clock is not believed");
    future.facade.shutdown().await;
    aged(at, -7200);
    let stale = Rig::with_settings(unreachable_control(), with_saved_state(dir.path(), None)).await;
    let refused = stale.client.get("/apis/g.example/v1/things").await;
    assert_eq!(refused.code, 503);
    assert!(refused.text.contains("--fail-static-max-age"), "{}", refused.text);
    assert_eq!((stale.client.get("/readyz").await.code, stale.client.get("/livez").await.code), (500, 200));
}
