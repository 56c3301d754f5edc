//! Usage of Services: count, load balancers and node ports.

use jiff::Timestamp;
use portico_machinery::{Object, Quantity};
use portico_validation::pod_spec::totals::ResourceList;

use crate::counts::one_each;
use crate::evaluator::Evaluator;

const COUNT: &str = "count/services";
const SERVICES: &str = "services";
const NODE_PORTS: &str = "services.nodeports";
const LOAD_BALANCERS: &str = "services.loadbalancers";

/// Evaluator of Services.
pub(crate) struct ServiceEvaluator;

impl Evaluator for ServiceEvaluator {
    fn matches_resource(&self, resource: &str) -> bool {
        matches!(resource, COUNT | SERVICES | NODE_PORTS | LOAD_BALANCERS)
    }

    fn usage(&self, service: &Object, _now: Timestamp) -> ResourceList {
        let spec = service.at(&["spec"]);
        let balanced = spec.field("type").str() == "LoadBalancer";
        // All ports are counted, also those whose node ports are not yet allocated.
        let ports = match spec.field("type").str() {
            "NodePort" => spec.field("ports").len(),
            "LoadBalancer" if spec.field("allocateLoadBalancerNodePorts").opt_bool() == Some(false) => {
                let numbered =
                    |port: &portico_machinery::Cursor<'_>| port.field("nodePort").i64().unwrap_or(0) != 0;
                spec.field("ports").items().filter(numbered).count()
            }
            "LoadBalancer" => spec.field("ports").len(),
            _ => 0,
        };
        let mut usage = one_each([COUNT, SERVICES]);
        usage.insert(LOAD_BALANCERS.to_owned(), Quantity::whole(i64::from(balanced)));
        usage.insert(NODE_PORTS.to_owned(), Quantity::whole(i64::try_from(ports).unwrap_or(i64::MAX)));
        usage
    }
}
