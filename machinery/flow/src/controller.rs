//! All priority levels of a server: applies the configuration objects, classifies requests, and reassigns seats (upstream's
//! `configController`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use portico_machinery::flow_control::{CATCH_ALL, EXEMPT, FlowSchema, LimitResponse, PriorityLevel};
use portico_machinery::{RequestInfo, UserInfo};

use crate::classify::matches;
use crate::dealer::hash_flow;
use crate::level::{Level, Wake};
use crate::limits::{SeatLimits, assign_seats};
use crate::mandatory;
use crate::queue_set::ClassifiedRequest;

/// Controller of the priority levels of a server.
#[derive(Debug)]
pub struct FlowController<W> {
    /// Sum of `--max-requests-inflight` and `--max-mutating-requests-inflight`.
    seats: u32,
    table: Mutex<LevelTable<W>>,
}

#[derive(Debug)]
struct LevelTable<W> {
    levels: BTreeMap<String, Arc<Level<W>>>,
    fair_fraction: f64,
}

/// Rules that classify requests. They do not change with later changes of the objects.
#[derive(Debug)]
pub struct FlowRules<W> {
    schemas: Vec<MatchedSchema<W>>,
}

impl<W> Default for FlowRules<W> {
    fn default() -> Self {
        Self { schemas: Vec::new() }
    }
}

/// Flow schema with its priority level.
#[derive(Debug)]
pub struct MatchedSchema<W> {
    /// Flow schema.
    pub schema: Arc<FlowSchema>,
    /// Specification of the priority level.
    pub spec: Arc<PriorityLevel>,
    /// State of the priority level.
    pub level: Arc<Level<W>>,
    /// Maximum number of seats of one request, or 0 if there is no limit.
    pub max_seats: u32,
    counts_index: usize,
}

impl<W> MatchedSchema<W> {
    /// Returns a request of this schema with its flow.
    #[must_use]
    pub fn classified(&self, user: &Arc<UserInfo>, request: &Arc<RequestInfo>) -> ClassifiedRequest {
        let distinguisher = self.schema.distinguisher;
        let hash = match self.spec.response {
            LimitResponse::Queue(queuing) if queuing.queues > 1 => {
                hash_flow(&self.schema.name, distinguisher.flow_name(user, request))
            }
            _ => 0,
        };
        let (user, request) = (Arc::clone(user), Arc::clone(request));
        ClassifiedRequest { counts_index: self.counts_index, hash, distinguisher, user, request }
    }

    /// Records the number of watches that receive the event of a write.
    pub fn observe_watches(&self, watches: u32)
    where
        W: Wake,
    {
        self.level.observe_watches(self.counts_index, watches);
    }
}

impl<W> FlowRules<W> {
    /// Returns the first schema that matches a request, or `None` before the first configuration.
    #[must_use]
    pub fn classify(&self, user: &UserInfo, request: &RequestInfo) -> Option<&MatchedSchema<W>> {
        let schema = self.schemas.iter().find(|matched| matches(&matched.schema, user, request));
        // A user in neither of the groups of all users: the catch-all schema applies to all requests without another match.
        schema.or_else(|| self.schemas.iter().find(|matched| matched.schema.name == CATCH_ALL))
    }
}

impl<W: Wake> FlowController<W> {
    /// Returns a controller for a server with this number of seats.
    #[must_use]
    pub fn new(seats: u32) -> Self {
        Self { seats, table: Mutex::new(LevelTable { levels: BTreeMap::new(), fair_fraction: 0.0 }) }
    }

    /// Applies the configuration objects. Existing levels keep their requests; removed levels exist until their
    /// requests are finished.
    pub fn apply_config(
        &self,
        schemas: &[Arc<FlowSchema>],
        levels: &[Arc<PriorityLevel>],
        now: Instant,
    ) -> FlowRules<W> {
        let mut table = self.table.lock();
        let mut specs: BTreeMap<&str, Arc<PriorityLevel>> = BTreeMap::new();
        specs.insert(EXEMPT, mandatory::exempt_level());
        specs.insert(CATCH_ALL, mandatory::catch_all_level());
        specs.extend(levels.iter().map(|level| (level.name.as_str(), Arc::clone(level))));
        table.levels.retain(|name, level| {
            let exists = specs.contains_key(name.as_str());
            level.with_state(|state| {
                state.quiescing = !exists;
                exists || !state.set.is_idle()
            })
        });
        for (name, spec) in &specs {
            let new_level = || Arc::new(Level::new(spec, now));
            let level = table.levels.entry((*name).to_owned()).or_insert_with(new_level);
            level.with_state(|state| state.spec = Arc::clone(spec));
        }
        table.set_limits(self.seats);
        table.assign_seats(self.seats, now);
        let sorted = sort_schemas(schemas, |level| specs.contains_key(level));
        for level in table.levels.values() {
            let leads_here = |name: &str| sorted.iter().any(|s| s.name == name && s.level == level.name());
            level.with_state(|state| state.set.retain_counts(leads_here));
        }
        let matched = sorted.into_iter().filter_map(|schema| {
            let level = table.levels.get(&schema.level)?;
            let spec = Arc::clone(specs.get(schema.level.as_str())?);
            let max_seats = level.with_state(|state| state.limits.max_seats(spec.response));
            let counts_index = level.counts_index(&schema.name);
            Some(MatchedSchema { schema, spec, level: Arc::clone(level), max_seats, counts_index })
        });
        FlowRules { schemas: matched.collect() }
    }

    /// Reassigns seats by their use since the last call, and drops removed levels without requests.
    pub fn rebalance(&self, now: Instant) {
        let mut table = self.table.lock();
        table.levels.retain(|_, level| level.with_state(|state| !state.quiescing || !state.set.is_idle()));
        table.assign_seats(self.seats, now);
    }

    /// Returns all levels, sorted by name.
    #[must_use]
    pub fn levels(&self) -> Vec<Arc<Level<W>>> {
        self.table.lock().levels.values().cloned().collect()
    }

    /// Returns the maximum numbers of waiting and of running requests in all levels.
    #[must_use]
    pub fn capacity(&self) -> [u32; 2] {
        let table = self.table.lock();
        let queue_capacity = |response| match response {
            LimitResponse::Queue(queuing) => queuing.queues.saturating_mul(queuing.queue_length_limit),
            LimitResponse::Exempt | LimitResponse::Reject => 0,
        };
        let each = table.levels.values();
        let each =
            each.map(|level| level.with_state(|s| [queue_capacity(s.spec.response), s.limits.nominal]));
        each.fold([0, 0], |sum, room| [sum[0].saturating_add(room[0]), sum[1].saturating_add(room[1])])
    }

    /// Returns the fraction of their demand that levels got in the last assignment of seats.
    #[must_use]
    pub fn fair_fraction(&self) -> f64 {
        self.table.lock().fair_fraction
    }

    /// Returns the next time at which lingering seats are released that requests wait for, if any.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        self.table.lock().levels.values().filter_map(|level| level.next_due()).min()
    }

    /// Releases all seats that are due at `now`.
    pub fn advance(&self, now: Instant) {
        self.table.lock().levels.values().for_each(|level| level.advance(now));
    }
}

impl<W: Wake> LevelTable<W> {
    fn set_limits(&self, seats: u32) {
        let all = || self.levels.values();
        let shares: u64 = all().map(|level| level.with_state(|state| u64::from(state.spec.shares))).sum();
        for level in all() {
            level.with_state(|state| {
                let limits = SeatLimits::new(&state.spec, seats, shares);
                let new = state.limits == SeatLimits::default();
                let current = if new { limits.current } else { state.limits.current };
                state.limits = SeatLimits { current, ..limits };
            });
        }
    }

    fn assign_seats(&mut self, server: u32, now: Instant) {
        let needs: Vec<_> =
            self.levels.values().map(|level| level.with_state(|state| state.take_need(now))).collect();
        let (seats, fair) = assign_seats(&needs);
        self.fair_fraction = fair;
        for (level, seats) in self.levels.values().zip(seats) {
            level.with_state(|state| state.set_limit(seats, (f64::from(server) / 10.0).round() as u32, now));
        }
    }
}

/// Sorts schemas by precedence, then by name, without schemas whose level does not exist. The mandatory schemas are added if
/// their objects are missing.
fn sort_schemas(schemas: &[Arc<FlowSchema>], level_exists: impl Fn(&str) -> bool) -> Vec<Arc<FlowSchema>> {
    let mut sorted: Vec<_> = schemas.iter().filter(|schema| level_exists(&schema.level)).cloned().collect();
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
