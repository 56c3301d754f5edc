//! Usage of ResourceClaims: count, maximum devices per device class, and devices per extended resource of a class. The extended
//! resources that are already charged to the requesting pod are subtracted.

use jiff::Timestamp;
use portico_machinery::{Cursor, Object, Quantity};
use portico_validation::pod_spec::totals::{ResourceList, add_resources};

use crate::counts::one_each;
use crate::device_context::{DeviceContext, device_requests};
use crate::evaluator::Evaluator;
use crate::pods::{DEVICE_CLASS_PREFIX, PodEvaluator, REQUESTS_PREFIX, is_extended_name};

const COUNT: &str = "count/resourceclaims.resource.k8s.io";
/// Suffix of a device class in the quota resource that limits its devices.
const CLASS_SUFFIX: &str = ".deviceclass.resource.k8s.io/devices";
/// Maximum number of devices in one allocation, charged for requests with allocation mode `All`.
const MAX_ALLOCATED_DEVICES: i64 = 32;

/// Evaluator of ResourceClaims.
pub(crate) struct ResourceClaimEvaluator<'a> {
    pub(crate) context: &'a DeviceContext,
}

/// True if a quota resource limits requests of an extended resource.
pub(crate) fn is_extended_request(name: &str) -> bool {
    name.strip_prefix(REQUESTS_PREFIX).is_some_and(is_extended_name)
}

impl Evaluator for ResourceClaimEvaluator<'_> {
    fn matches_resource(&self, resource: &str) -> bool {
        let extended = resource.strip_prefix(REQUESTS_PREFIX).filter(|name| is_extended_name(name));
        resource == COUNT
            || resource.ends_with(CLASS_SUFFIX)
            || extended.is_some_and(|name| self.context.has_class_for(name, DEVICE_CLASS_PREFIX))
    }

    fn usage(&self, claim: &Object, now: Timestamp) -> ResourceList {
        let mut usage = one_each([COUNT]);
        for request in device_requests(claim).items() {
            add_resources(&mut usage, &devices_of_request(&request));
        }
        let extended_usage = self.extended_requests(&usage);
        let charged =
            self.context.charged_pod(claim).map(|pod| PodEvaluator.usage(pod, now)).unwrap_or_default();
        for (name, amount) in extended_usage {
            let remainder = amount.minus(charged.get(&name).unwrap_or(&Quantity::ZERO));
            if remainder.is_positive() {
                usage.insert(name, remainder);
            }
        }
        usage
    }
}

impl ResourceClaimEvaluator<'_> {
    /// Converts devices of classes to requests of the extended resources of these classes.
    fn extended_requests(&self, usage: &ResourceList) -> ResourceList {
        let mut extended = ResourceList::new();
        for (name, amount) in usage {
            let Some(class) = name.strip_suffix(CLASS_SUFFIX).filter(|class| !class.is_empty()) else {
                continue;
            };
            extended.insert(format!("{REQUESTS_PREFIX}{DEVICE_CLASS_PREFIX}{class}"), amount.clone());
            if let Some(name) = self.context.extended_resource_of(class) {
                extended.insert(format!("{REQUESTS_PREFIX}{name}"), amount.clone());
            }
        }
        extended
    }
}

/// Returns the devices of a request, by class.
fn devices_of_request(request: &Cursor<'_>) -> ResourceList {
    let exactly = request.field("exactly");
    if exactly.is_present() {
        return ResourceList::from([devices_of_subrequest(&exactly)]);
    }
    // One of the subrequests is allocated: for each class, charge the largest amount.
    let mut most = ResourceList::new();
    for (class, count) in request.field("firstAvailable").items().map(|one| devices_of_subrequest(&one)) {
        let entry = most.entry(class).or_default();
        *entry = std::mem::take(entry).max(count);
    }
    most
}

fn devices_of_subrequest(request: &Cursor<'_>) -> (String, Quantity) {
    let count = match request.field("allocationMode").str() {
        "ExactCount" => request.field("count").i64().unwrap_or(0),
        "All" => MAX_ALLOCATED_DEVICES,
        _ => 0,
    };
    (format!("{}{CLASS_SUFFIX}", request.field("deviceClassName").str()), Quantity::whole(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(json: &str) -> Object {
        Object::from_json(json.as_bytes()).unwrap()
    }

    fn amount_text(usage: &ResourceList, name: &str) -> String {
        usage.get(name).map_or_else(String::new, ToString::to_string)
    }

    const DEVICES_OF_GPU: &str = "gpu.deviceclass.resource.k8s.io/devices";
    const IMPLICIT: &str = "requests.deviceclass.resource.kubernetes.io/gpu";
    const EXTENDED: &str = "requests.example.com/gpu";

    #[test]
    fn devices_count_by_class_and_by_the_extended_resource_of_the_class() {
        let class =
            object(r#"{"metadata":{"name":"gpu"},"spec":{"extendedResourceName":"example.com/gpu"}}"#);
        let context = DeviceContext::from_classes([&class]);
        let claims = ResourceClaimEvaluator { context: &context };
        for (name, counts) in [
            (COUNT, true),
            (DEVICES_OF_GPU, true),
            (IMPLICIT, true),
            (EXTENDED, true),
            ("requests.deviceclass.resource.kubernetes.io/other", false),
            ("requests.example.com/other", false),
            ("requests.cpu", false),
        ] {
            assert_eq!(claims.matches_resource(name), counts, "{name}");
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
            assert_eq!(amount_text(&usage, name), "5", "{name}");
        }
        assert_eq!(amount_text(&usage, "other.deviceclass.resource.k8s.io/devices"), "32");
    }

    #[test]
    fn a_claim_for_extended_resources_of_a_pod_is_charged_only_the_amount_not_charged_to_the_pod() {
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
            let context = DeviceContext::from_classes([&class]).with_namespace(vec![pod(&status)], both);
            let usage = ResourceClaimEvaluator { context: &context }.usage(claim, Timestamp::UNIX_EPOCH);
            let amounts = (amount_text(&usage, EXTENDED), amount_text(&usage, DEVICES_OF_GPU));
            assert_eq!(amounts, (charged.to_owned(), "3".to_owned()), "{status} {}", claim.name());
        }
    }
}
