//! All priority levels of a server: applies the configuration objects, classifies requests, and reassigns seats (upstream's
//! `configController`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use portico_machinery::flow_control::{CATCH_ALL, EXEMPT, FlowSchema, PriorityLevel, Response};
use portico_machinery::{RequestInfo, UserInfo};

use crate::classify::matches;
use crate::dealer::hash_flow;
use crate::level::{Level, Wake};
use crate::limits::{Limits, share_out};
use crate::mandatory;
use crate::queue_set::About;

/// Controller of the priority levels of a server.
#[derive(Debug)]
pub struct Controller<W> {
    /// Sum of `--max-requests-inflight` and `--max-mutating-requests-inflight`.
    seats: u32,
    known: Mutex<Known<W>>,
}

#[derive(Debug)]
struct Known<W> {
    levels: BTreeMap<String, Arc<Level<W>>>,
    fair_fraction: f64,
}

/// Rules that classify requests. They do not change with later changes of the objects.
#[derive(Debug)]
pub struct Rules<W> {
    matched: Vec<Matched<W>>,
}

impl<W> Default for Rules<W> {
    fn default() -> Self {
        Self { matched: Vec::new() }
    }
}

/// Flow schema with its priority level.
#[derive(Debug)]
pub struct Matched<W> {
    /// Flow schema.
    pub schema: Arc<FlowSchema>,
    /// Specification of the priority level.
    pub spec: Arc<PriorityLevel>,
    /// State of the priority level.
    pub level: Arc<Level<W>>,
    /// Maximum number of seats of one request, or 0 if there is no limit.
    pub max_seats: u32,
    counts: usize,
}

impl<W> Matched<W> {
    /// Returns a request of this schema with its flow.
    #[must_use]
    pub fn about(&self, user: &Arc<UserInfo>, request: &Arc<RequestInfo>) -> About {
        let distinguisher = self.schema.distinguisher;
        let hash = match self.spec.response {
            Response::Queue(queuing) if queuing.queues > 1 => {
                hash_flow(&self.schema.name, distinguisher.of(user, request))
            }
            _ => 0,
        };
        let (user, request) = (Arc::clone(user), Arc::clone(request));
        About { schema: self.counts, hash, distinguisher, user, request }
    }

    /// Records the number of watches that receive the event of a write.
    pub fn observe_watches(&self, watches: u32)
    where
        W: Wake,
    {
        self.level.observe_watches(self.counts, watches);
    }
}

impl<W> Rules<W> {
    /// Returns the first schema that matches a request, or `None` before the first configuration.
    #[must_use]
    pub fn classify(&self, user: &UserInfo, request: &RequestInfo) -> Option<&Matched<W>> {
        let found = self.matched.iter().find(|matched| matches(&matched.schema, user, request));
        // A user in neither of the groups of all users: the catch-all schema applies to all requests without another match.
        found.or_else(|| self.matched.iter().find(|matched| matched.schema.name == CATCH_ALL))
    }
}

impl<W: Wake> Controller<W> {
    /// Returns a controller for a server with this number of seats.
    #[must_use]
    pub fn new(seats: u32) -> Self {
        Self { seats, known: Mutex::new(Known { levels: BTreeMap::new(), fair_fraction: 0.0 }) }
    }

    /// Applies the configuration objects. Existing levels keep their requests; removed levels exist until their
    /// requests are finished.
    pub fn digest(
        &self,
        schemas: &[Arc<FlowSchema>],
        levels: &[Arc<PriorityLevel>],
        now: Instant,
    ) -> Rules<W> {
        let mut known = self.known.lock();
        let mut specs: BTreeMap<&str, Arc<PriorityLevel>> = BTreeMap::new();
        specs.insert(EXEMPT, mandatory::exempt_level());
        specs.insert(CATCH_ALL, mandatory::catch_all_level());
        specs.extend(levels.iter().map(|level| (level.name.as_str(), Arc::clone(level))));
        known.levels.retain(|name, level| {
            let wanted = specs.contains_key(name.as_str());
            level.with(|state| {
                state.quiescing = !wanted;
                wanted || !state.set.is_idle()
            })
        });
        for (name, spec) in &specs {
            let made = || Arc::new(Level::new(spec, now));
            let level = known.levels.entry((*name).to_owned()).or_insert_with(made);
            level.with(|state| state.spec = Arc::clone(spec));
        }
        known.set_limits(self.seats);
        known.share_out(self.seats, now);
        let sorted = in_order_of_matching(schemas, |level| specs.contains_key(level));
        for level in known.levels.values() {
            let leads_here = |name: &str| sorted.iter().any(|s| s.name == name && s.level == level.name());
            level.with(|state| state.set.retain_counts(leads_here));
        }
        let matched = sorted.into_iter().filter_map(|schema| {
            let level = known.levels.get(&schema.level)?;
            let spec = Arc::clone(specs.get(schema.level.as_str())?);
            let max_seats = level.with(|state| state.limits.max_seats(spec.response));
            let counts = level.counts_of(&schema.name);
            Some(Matched { schema, spec, level: Arc::clone(level), max_seats, counts })
        });
        Rules { matched: matched.collect() }
    }

    /// Reassigns seats by their use since the last call, and drops removed levels without requests.
    pub fn rebalance(&self, now: Instant) {
        let mut known = self.known.lock();
        known.levels.retain(|_, level| level.with(|state| !state.quiescing || !state.set.is_idle()));
        known.share_out(self.seats, now);
    }

    /// Returns all levels, sorted by name.
    #[must_use]
    pub fn levels(&self) -> Vec<Arc<Level<W>>> {
        self.known.lock().levels.values().cloned().collect()
    }

    /// Returns the maximum numbers of waiting and of running requests in all levels.
    #[must_use]
    pub fn room(&self) -> [u32; 2] {
        let known = self.known.lock();
        let waiting = |response| match response {
            Response::Queue(queuing) => queuing.queues.saturating_mul(queuing.queue_length_limit),
            Response::Exempt | Response::Reject => 0,
        };
        let each = known.levels.values();
        let each = each.map(|level| level.with(|s| [waiting(s.spec.response), s.limits.nominal]));
        each.fold([0, 0], |sum, room| [sum[0].saturating_add(room[0]), sum[1].saturating_add(room[1])])
    }

    /// Returns the fraction of their demand that levels got in the last assignment of seats.
    #[must_use]
    pub fn fair_fraction(&self) -> f64 {
        self.known.lock().fair_fraction
    }

    /// Returns the next time at which lingering seats are released that requests wait for, if any.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        self.known.lock().levels.values().filter_map(|level| level.next_due()).min()
    }

    /// Releases all seats that are due at `now`.
    pub fn advance(&self, now: Instant) {
        self.known.lock().levels.values().for_each(|level| level.advance(now));
    }
}

impl<W: Wake> Known<W> {
    fn set_limits(&self, seats: u32) {
        let all = || self.levels.values();
        let shares: u64 = all().map(|level| level.with(|state| u64::from(state.spec.shares))).sum();
        for level in all() {
            level.with(|state| {
                let limits = Limits::new(&state.spec, seats, shares);
                let new = state.limits == Limits::default();
                let current = if new { limits.current } else { state.limits.current };
                state.limits = Limits { current, ..limits };
            });
        }
    }

    fn share_out(&mut self, server: u32, now: Instant) {
        let needs: Vec<_> = self.levels.values().map(|level| level.with(|state| state.need(now))).collect();
        let (seats, fair) = share_out(&needs);
        self.fair_fraction = fair;
        for (level, seats) in self.levels.values().zip(seats) {
            level.with(|state| state.limit(seats, (f64::from(server) / 10.0).round() as u32, now));
        }
    }
}

/// Sorts schemas by precedence, then by name, without schemas whose level does not exist. The mandatory schemas are added if
/// their objects are missing.
fn in_order_of_matching(schemas: &[Arc<FlowSchema>], leads: impl Fn(&str) -> bool) -> Vec<Arc<FlowSchema>> {
    let mut sorted: Vec<_> = schemas.iter().filter(|schema| leads(&schema.level)).cloned().collect();
    sorted.sort_by(|a, b| (a.precedence, &a.name).cmp(&(b.precedence, &b.name)));
    let has = |name: &str| sorted.iter().any(|schema| schema.name == name);
    let (exempt, catch_all) = (has(EXEMPT), has(CATCH_ALL));
    if !exempt {
        sorted.insert(0, mandatory::exempt_schema());
    }
    if !catch_all {
        sorted.push(mandatory::catch_all_schema());
    }
    sorted
}

#[cfg(test)]
mod tests;
