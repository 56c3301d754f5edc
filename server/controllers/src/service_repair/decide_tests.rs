//! Tests with upstream's cases of inconsistent Services and IPAddresses.

use super::*;

const BORN: &str = "2026-01-01T00:00:00Z";

fn service(name: &str, addresses: &[&str]) -> Object {
    let mut service = Object::new(&GroupVersion::new("", "v1").kind("Service"));
    service.set(&["metadata", "namespace"], "ns");
    service.set(&["metadata", "name"], name);
    service.set(&["metadata", "creationTimestamp"], BORN);
    service.set(&["spec", "type"], if addresses.is_empty() { "ExternalName" } else { "ClusterIP" });
    if let Some(first) = addresses.first() {
        service.set(&["spec", "clusterIP"], first);
        service.set(&["spec", "clusterIPs"], addresses);
    }
    service
}

fn address(service: &str) -> Object {
    let mut address = address_for(&self::service(service, &[]), "10.0.0.9".parse().unwrap());
    address.set(&["metadata", "creationTimestamp"], BORN);
    address
}

fn reason(repair: &Repair) -> &'static str {
    match repair {
        Repair::Leave => "",
        Repair::Warn(warning) | Repair::Make(Some(warning)) => warning.reason,
        Repair::Make(None) => "make",
    }
}

#[test]
fn an_address_of_a_service_is_put_down_as_its_own() {
    let ranges = ["10.0.0.0/24".parse().unwrap()];
    let web = service("web", &["10.0.0.9"]);
    let look =
        |known: Option<&Object>, other: Option<&Object>| repair(&web, "10.0.0.9", &ranges, known, other);
    let mut gateway = address("web");
    gateway.set(&["spec", "parentRef", "resource"], "gateways");
    let mut bare = address("web");
    bare.remove(&["metadata", "labels"]);
    let (other, twin) = (service("other", &["10.0.0.8"]), service("other", &["10.0.0.9"]));
    let rows = [
        (look(Some(&address("web")), Some(&web)), ""),
        (look(None, None), "ClusterIPNotAllocated"),
        (look(Some(&gateway), None), "ClusterIPNotAllocated"),
        (look(Some(&address("other")), None), "ClusterIPNotAllocated"),
        (look(Some(&address("other")), Some(&twin)), "ClusterIPAlreadyAllocated"),
        (look(Some(&address("other")), Some(&other)), ""),
        (look(Some(&bare), Some(&web)), "make"),
        (repair(&web, "10.9.0.9", &ranges, None, None), "ClusterIPOutOfRange"),
        (repair(&web, "nonsense", &ranges, None, None), "ClusterIPNotValid"),
    ];
    for (at, (got, want)) in rows.iter().enumerate() {
        assert_eq!(reason(got), *want, "row {at}: {got:?}");
    }
    assert_eq!(
        look(None, None),
        Repair::Make(Some(Warning {
            reason: "ClusterIPNotAllocated",
            action: "ClusterIPAllocation",
            note: "Cluster IP [IPv4]: 10.0.0.9 is not allocated; repairing".to_owned(),
        }))
    );
}

#[test]
fn an_address_of_nobody_goes_once_a_slow_writer_is_ruled_out() {
    let at = |seconds: i64| time::parse(BORN).unwrap() + jiff::SignedDuration::from_secs(seconds);
    let reason = |cleanup: Cleanup| match cleanup {
        Cleanup::Leave => String::new(),
        Cleanup::Wait(left) => format!("{left:?}"),
        Cleanup::Delete(warning) => warning.reason.to_owned(),
    };
    let (web, mut late) = (address("web"), address("web"));
    late.set(&["metadata", "creationTimestamp"], "2026-01-01T00:00:01Z");
    let mut gateway = web.clone();
    gateway.set(&["spec", "parentRef", "resource"], "gateways");
    let mut theirs = web.clone();
    theirs.set(&["metadata", "labels", MANAGER_LABEL], "somebody");
    let (holder, other) = (service("web", &["10.0.0.9"]), service("web", &["10.0.0.8"]));
    let external = service("web", &[]);
    let rows = [
        (&theirs, None, 900, ""),
        (&gateway, None, 0, "IPAddressNotAllocated"),
        (&web, None, 20, "40s"),
        (&web, None, 61, "IPAddressNotAllocated"),
        (&web, Some(&holder), 900, ""),
        (&web, Some(&other), 0, "IPAddressWrongReference"),
        (&late, Some(&other), 2, "4s"),
        (&late, Some(&other), 7, "IPAddressWrongReference"),
        (&web, Some(&external), 20, "40s"),
        (&web, Some(&external), 61, "IPAddressWrongReference"),
    ];
    for (address, referred, seconds, want) in rows {
        assert_eq!(reason(cleanup(address, referred, at(seconds))), want, "{seconds} {address:?}");
    }
}

#[test]
fn a_headless_service_has_no_address() {
    let mut headless = service("web", &["None"]);
    assert!(addresses_of(&headless).is_empty());
    headless.remove(&["spec"]);
    assert!(addresses_of(&headless).is_empty());
}
