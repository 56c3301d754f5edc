//! Limits of the seats of a level: nominal, minimum, maximum, and current (upstream's borrowing).

use portico_machinery::flow_control::{LimitResponse, PriorityLevel};

use crate::allocation::{AllocationClass, allocate};
use crate::demand::SeatDemand;

/// Maximum fraction of the seats of its level that one request may take.
const MAX_SEATS_PERCENT: f64 = 0.15;

/// Numbers of seats of a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeatLimits {
    /// Share of the server's seats.
    pub nominal: u32,
    /// Seats that the level cannot lend.
    pub min: u32,
    /// Seats including all that the level may borrow.
    pub max: u32,
    /// Current number of seats.
    pub current: u32,
}

impl SeatLimits {
    /// Returns the limits of a level; `shares` is the sum over all levels.
    pub(crate) fn new(level: &PriorityLevel, server: u32, shares: u64) -> Self {
        let whole = f64::from(server) * f64::from(level.shares) / (shares.max(1) as f64);
        let nominal = whole.ceil() as u32;
        let percent = |percent: u32| (f64::from(nominal) * f64::from(percent) / 100.0).round() as u32;
        let lendable = percent(level.lendable_percent).min(nominal);
        let borrowing = level.borrowing_limit_percent.map_or(server, percent);
        Self {
            nominal,
            min: nominal - lendable,
            max: nominal.saturating_add(borrowing),
            current: nominal - lendable / 2,
        }
    }

    /// Returns the maximum number of seats of one request, or 0 if there is no limit.
    pub(crate) fn max_seats(&self, response: LimitResponse) -> u32 {
        match response {
            LimitResponse::Queue(queuing) => {
                let part = (f64::from(self.nominal) * MAX_SEATS_PERCENT).ceil() as u32;
                part.min(self.nominal / queuing.hand_size.max(1)).max(1)
            }
            LimitResponse::Exempt | LimitResponse::Reject => 0,
        }
    }
}

/// Need for seats of one level in an assignment of seats.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeatNeed {
    pub(crate) is_exempt: bool,
    pub(crate) limits: SeatLimits,
    pub(crate) demand: SeatDemand,
}

impl SeatNeed {
    /// Returns the minimum assignment: the maximum use up to the nominal limit, and at least the seats that cannot be lent.
    fn min_seats(&self) -> u32 {
        let used = self.demand.high_watermark;
        let own = if self.is_exempt { used } else { used.min(self.limits.nominal) };
        own.max(self.limits.min)
    }

    /// Returns the target of the assignment.
    pub(crate) fn target(&self) -> f64 {
        f64::from(self.min_seats()).max(self.demand.smoothed)
    }
}

/// Returns the current limit of each level, and the fair fraction.
pub(crate) fn assign_seats(needs: &[SeatNeed]) -> (Vec<u32>, f64) {
    let limited = || needs.iter().filter(|need| !need.is_exempt);
    let total: u32 = needs.iter().map(|need| need.limits.nominal).sum();
    let exempt: u32 = needs.iter().filter(|need| need.is_exempt).map(SeatNeed::min_seats).sum();
    let remaining = i64::from(total) - i64::from(exempt);
    let sum = |seats: fn(&SeatNeed) -> u32| limited().map(|need| i64::from(seats(need))).sum::<i64>();
    let (min, least) = (sum(|need| need.limits.min), sum(SeatNeed::min_seats));
    let each = |seats: &dyn Fn(&SeatNeed) -> u32| {
        needs
            .iter()
            .map(|need| if need.is_exempt { need.min_seats() } else { seats(need) })
            .collect::<Vec<u32>>()
    };
    if remaining <= min {
        return (each(&|need| need.limits.min), 0.0);
    }
    if remaining <= least {
        let fraction = (remaining - min) as f64 / (least - min) as f64;
        let part = |need: &SeatNeed| f64::from(need.min_seats() - need.limits.min) * fraction;
        return (each(&|need| need.limits.min + part(need).round() as u32), 0.0);
    }
    let class = |need: &SeatNeed| AllocationClass {
        target: need.target(),
        lower: f64::from(need.min_seats()),
        upper: f64::from(need.limits.max.max(need.min_seats())),
    };
    let classes: Vec<AllocationClass> = limited().map(class).collect();
    // Upstream allocates all nominal seats here, including those that exempt levels use.
    let Some((seats, fair)) = allocate(f64::from(total), &classes) else {
        return (each(&|need| need.limits.current), 0.0);
    };
    let mut seats = seats.into_iter();
    let mut next = |need: &SeatNeed| match need.is_exempt {
        true => need.min_seats(),
        false => seats.next().unwrap_or_default().round() as u32,
    };
    (needs.iter().map(&mut next).collect(), fair)
}

#[cfg(test)]
mod tests {
    use portico_machinery::flow_control::Queuing;

    use super::*;

    fn level(shares: u32, lendable_percent: u32, borrowing_limit_percent: Option<u32>) -> PriorityLevel {
        let queuing = Queuing { queues: 128, hand_size: 6, queue_length_limit: 50 };
        let (name, uid) = ("l".to_owned(), String::new());
        let response = LimitResponse::Queue(queuing);
        PriorityLevel { name, uid, shares, lendable_percent, borrowing_limit_percent, response }
    }

    fn need(limits: SeatLimits, high_watermark: u32) -> SeatNeed {
        let smoothed = f64::from(high_watermark);
        SeatNeed {
            is_exempt: false,
            limits,
            demand: SeatDemand { high_watermark, smoothed, ..SeatDemand::default() },
        }
    }

    #[test]
    fn the_suggested_levels_have_upstreams_limits() {
        // 600 seats, 245 shares.
        let high = SeatLimits::new(&level(40, 50, None), 600, 245);
        assert_eq!(high, SeatLimits { nominal: 98, min: 49, max: 698, current: 74 });
        assert_eq!(high.max_seats(level(40, 50, None).response), 15);
        let low = SeatLimits::new(&level(100, 90, None), 600, 245);
        assert_eq!((low.nominal, low.min), (245, 24));
        assert_eq!(SeatLimits::new(&level(5, 0, Some(20)), 600, 245).max, 16);
        assert_eq!(SeatLimits::new(&level(0, 0, None), 600, 245).nominal, 0);
    }

    #[test]
    fn a_busy_level_borrows_seats_of_idle_levels() {
        let (busy, idle) =
            (SeatLimits::new(&level(1, 0, None), 100, 2), SeatLimits::new(&level(1, 80, None), 100, 2));
        let (seats, fair) = assign_seats(&[need(busy, 500), need(idle, 0)]);
        assert_eq!(seats, [90, 10]);
        assert!(fair > 0.0);
        let (seats, _) = assign_seats(&[need(busy, 500), need(idle, 500)]);
        assert_eq!(seats, [50, 50]);
    }

    #[test]
    fn seats_of_exempt_levels_are_taken_from_lendable_seats() {
        let limits = SeatLimits::new(&level(1, 50, None), 100, 1);
        let exempt = SeatLimits { nominal: 0, min: 0, max: 0, current: 0 };
        let exempt = SeatNeed { is_exempt: true, ..need(exempt, 70) };
        assert_eq!(assign_seats(&[exempt, need(limits, 100)]).0, [70, 50]);
        let exempt = SeatNeed { demand: SeatDemand { high_watermark: 20, ..exempt.demand }, ..exempt };
        assert_eq!(assign_seats(&[exempt, need(limits, 100)]).0, [20, 80]);
    }
}
