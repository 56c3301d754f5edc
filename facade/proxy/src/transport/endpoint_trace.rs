//! Selection of the address of a traced request, with reasons.

use portico_kit::request_trace::{RequestTrace, TraceEndpoint};

use super::registry::Transport;

impl Transport {
    /// Records the selected address in the trace, with the reasons against the other ones.
    pub(super) fn trace_choice(&self, trace: &RequestTrace, chosen: usize) {
        let endpoints = (0..self.targets.len()).map(|index| self.endpoint_state(index, chosen)).collect();
        trace.set_endpoints(endpoints);
        trace.record_duration("backend", std::time::Duration::ZERO, self.targets[chosen].address.to_string());
    }

    fn endpoint_state(&self, index: usize, chosen: usize) -> TraceEndpoint {
        let target = &self.targets[index];
        let weight = self.rotation.weight(index);
        let is_ejected = target.ejection.as_ref().is_some_and(|ejection| ejection.is_open());
        let weight_text = |weight: u32| format!("weight {weight}");
        let (state, message) = match weight {
            weight if index == chosen => {
                let ejected = if is_ejected { "ejected before, tried again by this request" } else { "" };
                ("chosen", weight.map_or_else(|| ejected.to_owned(), weight_text))
            }
            _ if is_ejected => {
                let failures = target.ejection.as_ref().map_or(0, |ejection| ejection.failures());
                ("ejected", format!("{failures} consecutive failures"))
            }
            _ if target.circuit.is_open() => {
                let why = target.circuit.last().and_then(|outcome| outcome.failure);
                (
                    "not dialed",
                    why.map(|(stage, why)| format!("{}: {why}", stage.as_str())).unwrap_or_default(),
                )
            }
            Some(0) => ("last resort", "weight 0".to_owned()),
            weight => ("another turn", weight.map(weight_text).unwrap_or_default()),
        };
        TraceEndpoint { endpoint: target.address.to_string(), state, message }
    }
}
