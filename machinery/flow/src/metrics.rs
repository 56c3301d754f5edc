//! Upstream's `apiserver_flowcontrol_*`, read off the levels when somebody asks. Two dispatchers of one process differ in what
//! their metrics begin with.

use std::fmt::{Debug, Error, Formatter};
use std::time::Instant;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::counts::{Counts, Histogram};
use crate::current::{Kind, Phase};
use crate::dispatcher::Dispatcher;
use crate::dump::LevelDump;
use crate::queue_set::{DispatchMarks, Reason};
use crate::seat_seconds::SeatSeconds;
use crate::utilization::UtilizationDump;

/// A level's or schema's figure.
type Labels<'a> = Vec<(&'static str, &'a str)>;

/// See the module.
pub struct FlowMetrics {
    /// Whose.
    pub dispatcher: Dispatcher,
    /// What all names begin with: `apiserver_flowcontrol`.
    pub prefix: &'static str,
}

impl Debug for FlowMetrics {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str("FlowMetrics")
    }
}

impl Collector for FlowMetrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let now = Instant::now();
        let levels: Vec<LevelDump> = self.dispatcher.levels().iter().map(|level| level.dump(now)).collect();
        let mut page = Page { encoder, levels: &levels, prefix: self.prefix };
        page.of_levels()?;
        page.of_dispatch()?;
        page.of_schemas()?;
        page.of_requests()?;
        page.over_time()?;
        page.reads_and_writes(&self.dispatcher)?;
        let fair = ConstGauge::new(self.dispatcher.fair_fraction());
        let help = "Fair fraction of the seats for each priority level that can use them";
        let name = page.full("seat_fair_frac");
        fair.encode(page.encoder.encode_descriptor(&name, help, None, MetricType::Gauge)?)
    }
}

struct Page<'e, 'l> {
    encoder: DescriptorEncoder<'e>,
    levels: &'l [LevelDump],
    prefix: &'static str,
}

impl Page<'_, '_> {
    fn full(&self, name: &str) -> String {
        format!("{}_{name}", self.prefix)
    }

    fn of_levels(&mut self) -> Result<(), Error> {
        self.level("nominal_limit_seats", "Seats of each priority level by its shares", |l| {
            l.limits.nominal.into()
        })?;
        self.level("lower_limit_seats", "Seats that each priority level keeps", |l| l.limits.min.into())?;
        self.level("upper_limit_seats", "Seats of each priority level at most", |l| l.limits.max.into())?;
        self.level("current_limit_seats", "Seats of each priority level now", |l| l.limits.current.into())?;
        self.level("demand_seats_high_watermark", "Most seats wanted in the last period", |l| {
            l.demand.high_watermark.into()
        })?;
        self.level("demand_seats_average", "Seats wanted in the last period on average", |l| {
            l.demand.average
        })?;
        self.level("demand_seats_stdev", "Their standard deviation", |l| l.demand.deviation)?;
        self.level("demand_seats_smoothed", "Seats wanted as known for longer", |l| l.demand.smoothed)?;
        self.level("target_seats", "Seats that each priority level should have", |l| l.target)?;
        self.level("current_r", "Virtual time of each priority level", |l| l.virtual_time.as_f64())
    }

    /// Of levels from whose queues a request has been let run.
    fn of_dispatch(&mut self) -> Result<(), Error> {
        let marks: Vec<(&str, DispatchMarks)> =
            self.levels.iter().filter_map(|l| Some((l.name.as_str(), l.last_dispatch?))).collect();
        type Figures = fn(&DispatchMarks) -> [SeatSeconds; 2];
        let figures: [(&str, &str, bool, Figures); 4] = [
            ("dispatch_r", "Virtual time of the last dispatch", false, |m| [m.virtual_time; 2]),
            ("latest_s", "When the last dispatch was to be, in virtual time", false, |m| [m.latest; 2]),
            ("next_s_bounds", "First and last virtual time of a queue's next dispatch", true, |m| m.bounds),
            ("next_discounted_s_bounds", "The same less what is under way", true, |m| m.discounted_bounds),
        ];
        for (name, help, bounds, of) in figures {
            let name = self.full(name);
            let mut family = self.encoder.encode_descriptor(&name, help, None, MetricType::Gauge)?;
            for (level, marks) in &marks {
                let named = ["min", "max"].into_iter().zip(of(marks)).take(if bounds { 2 } else { 1 });
                for (bound, figure) in named {
                    let bound = bounds.then_some(("bound", bound));
                    let labels: Labels<'_> = bound.into_iter().chain([("priority_level", *level)]).collect();
                    ConstGauge::new(figure.as_f64()).encode(family.encode_family(&labels)?)?;
                }
            }
        }
        Ok(())
    }

    /// Ratios of levels: each nanosecond is an observation.
    fn over_time(&mut self) -> Result<(), Error> {
        let name = "priority_level_request_utilization";
        self.ratios(name, "Requests that wait or run, of those that may", |used| {
            vec![(Some(("phase", "waiting")), &used.waiting), (Some(("phase", "executing")), &used.executing)]
        })?;
        let name = "priority_level_seat_utilization";
        self.ratios(name, "Seats that are taken, of those that there are", |used| {
            vec![(Some(("phase", "executing")), &used.seats)]
        })?;
        self.ratios("demand_seats", "Seats that could be used, of those that there are", |used| {
            vec![(None, &used.demand)]
        })
    }

    fn reads_and_writes(&mut self, flow: &Dispatcher) -> Result<(), Error> {
        let (name, help) =
            (self.full("read_vs_write_current_requests"), "Requests that wait or run, of those that may");
        let mut family = self.encoder.encode_descriptor(&name, help, None, MetricType::Histogram)?;
        for (phase, phase_name) in [(Phase::Waiting, "waiting"), (Phase::Executing, "executing")] {
            for (kind, kind_name) in [(Kind::ReadOnly, "readOnly"), (Kind::Mutating, "mutating")] {
                let labels = [("phase", phase_name), ("request_kind", kind_name)];
                Shown(&flow.ratio(phase, kind)).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn ratios(
        &mut self,
        name: &str,
        help: &str,
        figures: impl Fn(&UtilizationDump) -> Vec<(Label, &Histogram)>,
    ) -> Result<(), Error> {
        let name = self.full(name);
        let mut family = self.encoder.encode_descriptor(&name, help, None, MetricType::Histogram)?;
        for level in self.levels {
            for (label, histogram) in figures(&level.utilization) {
                let labels: Labels<'_> =
                    label.into_iter().chain([("priority_level", level.name.as_str())]).collect();
                Shown(histogram).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn of_schemas(&mut self) -> Result<(), Error> {
        self.schema("current_inqueue_requests", "Requests that wait in queues", |c| c.waiting)?;
        self.schema("current_inqueue_seats", "Seats that requests in queues want", |c| c.waiting_seats)?;
        self.schema("current_executing_requests", "Requests that run", |c| c.executing)?;
        self.schema("current_executing_seats", "Seats that are taken", |c| c.executing_seats)
    }

    fn of_requests(&mut self) -> Result<(), Error> {
        self.counters("dispatched_requests", "Requests that were let run", |counts| {
            vec![(None, counts.dispatched)].into_iter().filter(|(_, count)| *count > 0).collect()
        })?;
        self.counters("rejected_requests", "Requests that were rejected", |counts| {
            let reasons = Reason::ALL.into_iter().zip(counts.rejected);
            let some = reasons.filter(|(_, count)| *count > 0);
            some.map(|(reason, count)| (Some(("reason", reason.as_str())), count)).collect()
        })?;
        self.counters(
            "request_dispatch_no_accommodation",
            "Times that the next request found too few seats",
            |counts| {
                vec![(None, counts.no_accommodation)].into_iter().filter(|(_, count)| *count > 0).collect()
            },
        )?;
        let name = "request_wait_duration_seconds";
        self.histograms(name, "Time that requests waited in queues", |counts| {
            vec![
                (Some(("execute", "true")), &counts.wait_served),
                (Some(("execute", "false")), &counts.wait_rejected),
            ]
        })?;
        self.histograms("request_execution_seconds", "Time that requests ran", |counts| {
            vec![
                (Some(("type", "regular")), &counts.execution),
                (Some(("type", "watch")), &counts.watch_execution),
            ]
        })?;
        let name = "request_queue_length_after_enqueue";
        self.histograms(name, "Length of queues that requests joined", |c| vec![(None, &c.queue_length)])?;
        self.histograms("work_estimated_seats", "Seats that requests were taken to need", |c| {
            vec![(None, &c.seats)]
        })?;
        self.histograms("watch_count_samples", "Watches that would see writes", |c| vec![(None, &c.watches)])
    }

    fn level(&mut self, name: &str, help: &str, figure: fn(&LevelDump) -> f64) -> Result<(), Error> {
        let name = self.full(name);
        let mut family = self.encoder.encode_descriptor(&name, help, None, MetricType::Gauge)?;
        for level in self.levels {
            let labels = [("priority_level", level.name.as_str())];
            ConstGauge::new(figure(level)).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn schema(&mut self, name: &str, help: &str, figure: fn(&Counts) -> u32) -> Result<(), Error> {
        let name = self.full(name);
        let mut family = self.encoder.encode_descriptor(&name, help, None, MetricType::Gauge)?;
        for (level, counts) in each(self.levels) {
            let labels = labels(level, counts, None);
            ConstGauge::new(i64::from(figure(counts))).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn counters(
        &mut self,
        name: &str,
        help: &str,
        figures: impl Fn(&Counts) -> Vec<(Label, u64)>,
    ) -> Result<(), Error> {
        let name = self.full(name);
        let mut family = self.encoder.encode_descriptor(&name, help, None, MetricType::Counter)?;
        for (level, counts) in each(self.levels) {
            for (label, figure) in figures(counts) {
                let labels = labels(level, counts, label);
                ConstCounter::new(figure).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn histograms(
        &mut self,
        name: &str,
        help: &str,
        figures: impl Fn(&Counts) -> Vec<(Label, &Histogram)>,
    ) -> Result<(), Error> {
        let name = self.full(name);
        let mut family = self.encoder.encode_descriptor(&name, help, None, MetricType::Histogram)?;
        for (level, counts) in each(self.levels) {
            for (label, histogram) in figures(counts).into_iter().filter(|(_, h)| !h.is_empty()) {
                let labels = labels(level, counts, label);
                Shown(histogram).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

/// One more label.
type Label = Option<(&'static str, &'static str)>;

fn each(levels: &[LevelDump]) -> impl Iterator<Item = (&str, &Counts)> {
    levels.iter().flat_map(|level| level.counts.iter().map(|counts| (level.name.as_str(), counts)))
}

fn labels<'a>(level: &'a str, counts: &'a Counts, more: Label) -> Labels<'a> {
    let own = [("priority_level", level), ("flow_schema", counts.schema.as_str())];
    own.into_iter().chain(more).collect()
}

/// A histogram as the library takes it.
struct Shown<'a>(&'a Histogram);

impl EncodeMetric for Shown<'_> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), Error> {
        let bounds = self.0.bounds.iter().copied().chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = bounds.zip(self.0.counts.iter().copied()).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        encoder.encode_histogram::<NoLabelSet>(self.0.sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}
