//! Tests with upstream's cases of inconsistent Services and IPAddresses.

use super::*;

const CREATED: &str = "2026-01-01T00:00:00Z";

fn service(name: &str, addresses: &[&str]) -> Object {
    let mut service = Object::new(&GroupVersion::new("", "v1").kind("Service"));
    service.set(&["metadata", "namespace"], "ns");
    service.set(&["metadata", "name"], name);
    service.set(&["metadata", "creationTimestamp"], CREATED);
    service.set(&["spec", "type"], if addresses.is_empty() { "ExternalName" } else { "ClusterIP" });
    if let Some(first) = addresses.first() {
        service.set(&["spec", "clusterIP"], first);
        service.set(&["spec", "clusterIPs"], addresses);
    }
    service
}

fn address(service: &str) -> Object {
    let mut address = address_for(&self::service(service, &[]), "10.0.0.9".parse().unwrap());
    address.set(&["metadata", "creationTimestamp"], CREATED);
    address
}

fn reason(repair: &Repair) -> &'static str {
    match repair {
        Repair::Skip => "",
        Repair::Warn(warning) | Repair::Create(Some(warning)) => warning.reason,
        Repair::Create(None) => "make",
    }
}

#[test]
fn each_address_of_a_service_gets_an_ip_address_object() {
    let ranges = ["10.0.0.0/24".parse().unwrap()];
    let web = service("web", &["10.0.0.9"]);
    let repair = |known: Option<&Object>, other: Option<&Object>| {
        decide_repair(&web, "10.0.0.9", &ranges, known, other)
    };
    let mut gateway = address("web");
    gateway.set(&["spec", "parentRef", "resource"], "gateways");
    let mut bare = address("web");
    bare.remove(&["metadata", "labels"]);
    let (other, twin) = (service("other", &["10.0.0.8"]), service("other", &["10.0.0.9"]));
    let rows = [
        (repair(Some(&address("web")), Some(&web)), ""),
        (repair(None, None), "ClusterIPNotAllocated"),
        (repair(Some(&gateway), None), "ClusterIPNotAllocated"),
        (repair(Some(&address("other")), None), "ClusterIPNotAllocated"),
        (repair(Some(&address("other")), Some(&twin)), "ClusterIPAlreadyAllocated"),
        (repair(Some(&address("other")), Some(&other)), ""),
        (repair(Some(&bare), Some(&web)), "make"),
        (decide_repair(&web, "10.9.0.9", &ranges, None, None), "ClusterIPOutOfRange"),
        (decide_repair(&web, "nonsense", &ranges, None, None), "ClusterIPNotValid"),
    ];
    for (at, (got, want)) in rows.iter().enumerate() {
        assert_eq!(reason(got), *want, "row {at}: {got:?}");
    }
    assert_eq!(
        repair(None, None),
        Repair::Create(Some(Warning {
            reason: "ClusterIPNotAllocated",
            action: "ClusterIPAllocation",
            note: "Cluster IP [IPv4]: 10.0.0.9 is not allocated; repairing".to_owned(),
        }))
    );
}

#[test]
fn an_unused_ip_address_is_deleted_after_the_grace_period() {
    let at = |seconds: i64| time::parse(CREATED).unwrap() + jiff::SignedDuration::from_secs(seconds);
    let reason = |cleanup: Cleanup| match cleanup {
        Cleanup::Keep => String::new(),
        Cleanup::Wait(left) => format!("{left:?}"),
        Cleanup::Delete(warning) => warning.reason.to_owned(),
    };
    let (web, mut newer) = (address("web"), address("web"));
    newer.set(&["metadata", "creationTimestamp"], "2026-01-01T00:00:01Z");
    let mut gateway = web.clone();
    gateway.set(&["spec", "parentRef", "resource"], "gateways");
    let mut foreign = web.clone();
    foreign.set(&["metadata", "labels", MANAGER_LABEL], "other");
    let (holder, other) = (service("web", &["10.0.0.9"]), service("web", &["10.0.0.8"]));
    let external = service("web", &[]);
    let rows = [
        (&foreign, None, 900, ""),
        (&gateway, None, 0, "IPAddressNotAllocated"),
        (&web, None, 20, "40s"),
        (&web, None, 61, "IPAddressNotAllocated"),
        (&web, Some(&holder), 900, ""),
        (&web, Some(&other), 0, "IPAddressWrongReference"),
        (&newer, Some(&other), 2, "4s"),
        (&newer, Some(&other), 7, "IPAddressWrongReference"),
        (&web, Some(&external), 20, "40s"),
        (&web, Some(&external), 61, "IPAddressWrongReference"),
    ];
    for (address, referred, seconds, want) in rows {
        assert_eq!(reason(decide_cleanup(address, referred, at(seconds))), want, "{seconds} {address:?}");
    }
}

#[test]
fn a_headless_service_has_no_address() {
    let mut headless = service("web", &["None"]);
    assert!(addresses_of(&headless).is_empty());
    headless.remove(&["spec"]);
    assert!(addresses_of(&headless).is_empty());
}
