//! Metrics of control services: the one in use, states, distances, switches, and repeated calls.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use portico_kit::metrics::{Desc, Registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::member::{Member, MemberState};
use super::member_states::MemberStates;

type ByServer = [(&'static str, String); 1];
type ByReason = [(&'static str, &'static str); 1];

/// Metrics of control services, labeled with the addresses from the facade's settings.
pub(crate) struct Metrics {
    in_use: Family<ByServer, Gauge>,
    up: Family<ByServer, Gauge>,
    round_trip: Family<ByServer, Gauge<f64, AtomicU64>>,
    moves: Family<ByReason, Counter>,
    resent: Counter,
    refused: Family<ByServer, Counter>,
}

impl Metrics {
    pub(super) fn new(registry: &Registry) -> Self {
        Self {
            in_use: registry.gauge_vec(Desc::gauge(
                "portico_control_service_in_use",
                &["server"],
                "1 if the facade uses this control service, 0 otherwise",
            )),
            up: registry.gauge_vec(Desc::gauge(
                "portico_control_service_up",
                &["server"],
                "1 if a control service responds, passes its health checks and is not shutting \
                 down, 0 otherwise",
            )),
            round_trip: registry.float_gauge_vec(Desc::gauge(
                "portico_control_service_round_trip_seconds",
                &["server"],
                "Lowest recent round-trip time to a control service in seconds",
            )),
            moves: registry.counter_vec(Desc::counter(
                "portico_control_service_moves_total",
                &["reason"],
                "Switches to another control service, by reason for leaving the previous one",
            )),
            resent: registry.counter(Desc::counter(
                "portico_control_service_resent_calls_total",
                &[],
                "Calls sent again because a control service did not respond",
            )),
            refused: registry.counter_vec(Desc::counter(
                "portico_control_service_refused_total",
                &["server"],
                "Times a control service was rejected because it serves a different store",
            )),
        }
    }

    /// Sets the gauges to the current states.
    pub(super) fn update<'m>(&self, members: impl Iterator<Item = &'m Member>, states: &MemberStates) {
        for member in members {
            let label = [("server", member.name.clone())];
            self.in_use.get_or_create(&label).set((states.current() == member.index).into());
            self.up.get_or_create(&label).set((states.state(member.index) == MemberState::Serving).into());
        }
    }

    pub(super) fn set_round_trip(&self, member: &Member, took: Duration) {
        self.round_trip.get_or_create(&[("server", member.name.clone())]).set(took.as_secs_f64());
    }

    pub(super) fn count_switch(&self, reason: &'static str) {
        self.moves.get_or_create(&[("reason", reason)]).inc();
    }

    pub(super) fn count_resent(&self) {
        self.resent.inc();
    }

    pub(super) fn count_refused(&self, member: &Member) {
        self.refused.get_or_create(&[("server", member.name.clone())]).inc();
    }
}
