//! ResourceClaims: how many, and how many devices of each class at the most; by the extended resources that classes stand
//! for, too, less what the pods that request them are charged.

use jiff::Timestamp;
use portico_machinery::{Cursor, Object, Quantity};
use portico_validation::pod_spec::totals::{Amounts, add};

use crate::counts::one_of;
use crate::evaluator::Evaluator;
use crate::pods::{DEVICES, Pods, REQUESTS, is_extended_name};
use crate::surroundings::{Surroundings, requests};

const COUNT: &str = "count/resourceclaims.resource.k8s.io";
/// Behind the name of a class.
const OF_CLASS: &str = ".deviceclass.resource.k8s.io/devices";
/// As many as can be allocated at all: what "all" may come to.
const MOST: i64 = 32;

/// How ResourceClaims are measured.
pub(crate) struct ResourceClaims<'a> {
    pub(crate) surroundings: &'a Surroundings,
}

/// Whether a resource of quotas limits requests of an extended resource.
pub(crate) fn is_extended_request(name: &str) -> bool {
    name.strip_prefix(REQUESTS).is_some_and(is_extended_name)
}

impl Evaluator for ResourceClaims<'_> {
    fn counts(&self, resource: &str) -> bool {
        let extended = resource.strip_prefix(REQUESTS).filter(|name| is_extended_name(name));
        resource == COUNT
            || resource.ends_with(OF_CLASS)
            || extended.is_some_and(|name| self.surroundings.has_class_for(name, DEVICES))
    }

    fn usage(&self, claim: &Object, now: Timestamp) -> Amounts {
        let mut usage = one_of([COUNT]);
        for request in requests(claim).items() {
            add(&mut usage, &of_request(&request));
        }
        let extended = self.extended(&usage);
        let charged = self.surroundings.pod_of(claim).map(|pod| Pods.usage(pod, now)).unwrap_or_default();
        for (name, amount) in extended {
            let left = amount.minus(charged.get(&name).unwrap_or(&Quantity::ZERO));
            if left.is_positive() {
                usage.insert(name, left);
            }
        }
        usage
    }
}

impl ResourceClaims<'_> {
    /// Devices of classes as requests of the extended resources that the classes stand for.
    fn extended(&self, usage: &Amounts) -> Amounts {
        let mut extended = Amounts::new();
        for (name, amount) in usage {
            let Some(class) = name.strip_suffix(OF_CLASS).filter(|class| !class.is_empty()) else { continue };
            extended.insert(format!("{REQUESTS}{DEVICES}{class}"), amount.clone());
            if let Some(name) = self.surroundings.extended_of(class) {
                extended.insert(format!("{REQUESTS}{name}"), amount.clone());
            }
        }
        extended
    }
}

/// The devices of a request, by class.
fn of_request(request: &Cursor<'_>) -> Amounts {
    let exactly = request.field("exactly");
    if exactly.is_present() {
        return Amounts::from([devices(&exactly)]);
    }
    // One of them: the most that may be of each class.
    let mut most = Amounts::new();
    for (class, count) in request.field("firstAvailable").items().map(|one| devices(&one)) {
        let kept = most.entry(class).or_default();
        *kept = std::mem::take(kept).max(count);
    }
    most
}

fn devices(request: &Cursor<'_>) -> (String, Quantity) {
    let count = match request.field("allocationMode").str() {
        "ExactCount" => request.field("count").i64().unwrap_or(0),
        "All" => MOST,
        _ => 0,
    };
    (format!("{}{OF_CLASS}", request.field("deviceClassName").str()), Quantity::whole(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(json: &str) -> Object {
        Object::from_json(json.as_bytes()).unwrap()
    }

    fn used(usage: &Amounts, name: &str) -> String {
        usage.get(name).map_or_else(String::new, ToString::to_string)
    }

    const DEVICES_OF_GPU: &str = "gpu.deviceclass.resource.k8s.io/devices";
    const IMPLICIT: &str = "requests.deviceclass.resource.kubernetes.io/gpu";
    const EXTENDED: &str = "requests.example.com/gpu";

    #[test]
    fn devices_count_by_class_and_by_the_extended_resource_that_the_class_stands_for() {
        let class =
            object(r#"{"metadata":{"name":"gpu"},"spec":{"extendedResourceName":"example.com/gpu"}}"#);
        let surroundings = Surroundings::of_classes([&class]);
        let claims = ResourceClaims { surroundings: &surroundings };
        for (name, counts) in [
            (COUNT, true),
            (DEVICES_OF_GPU, true),
            (IMPLICIT, true),
            (EXTENDED, true),
            ("requests.deviceclass.resource.kubernetes.io/other", false),
            ("requests.example.com/other", false),
            ("requests.cpu", false),
        ] {
            assert_eq!(claims.counts(name), counts, "{name}");
        }
        let claim = object(
            r#"{"spec":{"devices":{"requests":[
                {"exactly":{"deviceClassName":"gpu","allocationMode":"ExactCount","count":2}},
                {"firstAvailable":[{"deviceClassName":"gpu","allocationMode":"ExactCount","count":1},
                    {"deviceClassName":"gpu","allocationMode":"ExactCount","count":3}]},
                {"exactly":{"deviceClassName":"other","allocationMode":"All"}}]}}}"#,
        );
        let usage = claims.usage(&claim, Timestamp::UNIX_EPOCH);
        for name in [DEVICES_OF_GPU, IMPLICIT, EXTENDED] {
            assert_eq!(used(&usage, name), "5", "{name}");
        }
        assert_eq!(used(&usage, "other.deviceclass.resource.k8s.io/devices"), "32");
    }

    #[test]
    fn a_claim_that_was_made_for_a_pods_extended_resources_is_charged_what_the_pod_is_not() {
        let class =
            object(r#"{"metadata":{"name":"gpu"},"spec":{"extendedResourceName":"example.com/gpu"}}"#);
        let claim = |name: &str, second: u8| {
            object(&format!(
                r#"{{"metadata":{{"name":"{name}","creationTimestamp":"2026-01-01T00:00:0{second}Z",
                    "annotations":{{"resource.kubernetes.io/extended-resource-claim":"true"}},
                    "ownerReferences":[{{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u","controller":true}}]}},
                    "spec":{{"devices":{{"requests":[{{"exactly":
                        {{"deviceClassName":"gpu","allocationMode":"ExactCount","count":3}}}}]}}}}}}"#
            ))
        };
        let pod = |status: &str| {
            object(&format!(
                r#"{{"metadata":{{"name":"p","uid":"u"}},"status":{status},
                    "spec":{{"containers":[{{"resources":{{"requests":{{"example.com/gpu":"2"}}}}}}]}}}}"#
            ))
        };
        let (first, second) = (claim("a", 1), claim("b", 2));
        let named =
            |name: &str| format!(r#"{{"extendedResourceClaimStatus":{{"resourceClaimName":"{name}"}}}}"#);
        for (status, claim, charged) in [
            ("{}".to_owned(), &first, "1"),
            ("{}".to_owned(), &second, "3"),
            (named("b"), &first, "3"),
            (named("b"), &second, "1"),
        ] {
            let both = vec![first.clone(), second.clone()];
            let surroundings = Surroundings::of_classes([&class]).with(vec![pod(&status)], both);
            let usage = ResourceClaims { surroundings: &surroundings }.usage(claim, Timestamp::UNIX_EPOCH);
            let of = (used(&usage, EXTENDED), used(&usage, DEVICES_OF_GPU));
            assert_eq!(of, (charged.to_owned(), "3".to_owned()), "{status} {}", claim.name());
        }
    }
}
