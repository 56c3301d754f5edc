//! Services: how many, how many load balancers, how many node ports.

use jiff::Timestamp;
use portico_machinery::{Object, Quantity};
use portico_validation::pod_spec::totals::Amounts;

use crate::counts::one_of;
use crate::evaluator::Evaluator;

const COUNT: &str = "count/services";
const SERVICES: &str = "services";
const NODE_PORTS: &str = "services.nodeports";
const LOAD_BALANCERS: &str = "services.loadbalancers";

/// How Services are measured.
pub(crate) struct Services;

impl Evaluator for Services {
    fn counts(&self, resource: &str) -> bool {
        matches!(resource, COUNT | SERVICES | NODE_PORTS | LOAD_BALANCERS)
    }

    fn usage(&self, service: &Object, _now: Timestamp) -> Amounts {
        let spec = service.at(&["spec"]);
        let balanced = spec.field("type").str() == "LoadBalancer";
        // Ports have no numbers yet where they will be given some.
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
        let mut usage = one_of([COUNT, SERVICES]);
        usage.insert(LOAD_BALANCERS.to_owned(), Quantity::whole(i64::from(balanced)));
        usage.insert(NODE_PORTS.to_owned(), Quantity::whole(i64::try_from(ports).unwrap_or(i64::MAX)));
        usage
    }
}
