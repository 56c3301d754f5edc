//! Tests of arriving, waiting and finishing requests in the queues of a level.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use portico_machinery::flow_control::{Distinguisher, LimitResponse, Queuing};
use proptest::prelude::*;

use super::*;
use crate::dealer::hash_flow;
use crate::work::estimate_write;

const QUEUES: LimitResponse =
    LimitResponse::Queue(Queuing { queues: 16, hand_size: 4, queue_length_limit: 50 });
const ONE_QUEUE: LimitResponse =
    LimitResponse::Queue(Queuing { queues: 1, hand_size: 1, queue_length_limit: 2 });
const MILLI: Duration = Duration::from_millis(1);

/// Queue set whose wakers are the numbers of requests.
struct TestQueueSet {
    set: QueueSet<u32>,
    now: Instant,
    next: u32,
}

impl TestQueueSet {
    fn new(response: LimitResponse, limit: u32) -> Self {
        let now = Instant::now();
        let mut set = QueueSet::new(response, limit, now);
        set.counts_index("s");
        Self { set, now, next: 0 }
    }

    fn arrive(&mut self, flow: &str, work: Work) -> ArrivalResult {
        let classified = ClassifiedRequest {
            counts_index: 0,
            hash: hash_flow("s", flow),
            distinguisher: Distinguisher::ByUser,
            user: Arc::new(UserInfo::new(flow, [""; 0])),
            request: Arc::default(),
        };
        self.next += 1;
        self.set.arrive(classified, work, self.now, || self.next)
    }

    fn run(&mut self, flow: &str) -> Ticket {
        match self.arrive(flow, Work::ONE_SEAT) {
            ArrivalResult::Executing(ticket) => ticket,
            other => panic!("{other:?}"),
        }
    }

    fn wait(&mut self, flow: &str) -> Ticket {
        match self.arrive(flow, Work::ONE_SEAT) {
            ArrivalResult::Waiting(ticket) => ticket,
            other => panic!("{other:?}"),
        }
    }

    /// Ends a request, and returns the numbers of the requests that were woken.
    fn finish(&mut self, ticket: Ticket) -> Vec<u32> {
        self.set.finish(ticket, self.now);
        self.set.take_woken()
    }
}

fn work_with_seats(seats: u32) -> Work {
    Work { initial_seats: seats, ..Work::ONE_SEAT }
}

#[test]
fn a_request_runs_while_there_are_seats_then_waits_and_is_then_rejected() {
    let mut set = TestQueueSet::new(ONE_QUEUE, 1);
    let first = set.run("a");
    set.wait("a");
    set.wait("a");
    assert_eq!(set.arrive("a", Work::ONE_SEAT), ArrivalResult::Rejected(RejectReason::QueueFull));
    assert_eq!(set.finish(first), [2]);
    let counts = &set.set.counts[0];
    assert_eq!((counts.dispatched, counts.waiting, counts.executing), (2, 1, 1));
    assert_eq!(counts.rejected, [1, 0, 0, 0]);
}

#[test]
fn a_level_without_queues_rejects_and_an_exempt_one_does_not() {
    let mut set = TestQueueSet::new(LimitResponse::Reject, 1);
    let first = set.run("a");
    assert_eq!(set.arrive("b", Work::ONE_SEAT), ArrivalResult::Rejected(RejectReason::ConcurrencyLimit));
    set.finish(first);
    set.run("b");
    let mut exempt = TestQueueSet::new(LimitResponse::Exempt, 0);
    for _ in 0..1000 {
        exempt.run("a");
    }
}

#[test]
fn requests_of_a_queue_are_served_in_the_order_in_which_they_came() {
    let mut set = TestQueueSet::new(
        LimitResponse::Queue(Queuing { queues: 1, hand_size: 1, queue_length_limit: 50 }),
        1,
    );
    let mut running = set.run("a");
    let waiting: Vec<Ticket> = (0..20).map(|_| set.wait("a")).collect();
    // The third request is abandoned.
    set.set.abandon(waiting[2], RejectReason::TimeOut, set.now);
    let mut order = Vec::new();
    for ticket in waiting.iter().enumerate().filter(|(at, _)| *at != 2).map(|(_, ticket)| *ticket) {
        set.now += MILLI;
        order.extend(set.finish(running));
        running = ticket;
    }
    let expected: Vec<u32> = (2..=21).filter(|number| *number != 4).collect();
    assert_eq!(order, expected);
    assert_eq!(set.set.timed_out, 1);
}

#[test]
fn a_request_wider_than_the_level_runs_alone() {
    let mut set = TestQueueSet::new(ONE_QUEUE, 2);
    let first = set.run("a");
    let ArrivalResult::Waiting(big) = set.arrive("a", work_with_seats(5)) else { panic!("there is no room") };
    set.wait("a");
    assert_eq!(set.finish(first), [2]);
    assert_eq!(set.set.seats_in_use, 5);
    assert_eq!(set.finish(big), [3]);
}

#[test]
fn requests_behind_a_blocked_request_run_when_it_is_abandoned() {
    let mut set = TestQueueSet::new(ONE_QUEUE, 2);
    set.run("a");
    let ArrivalResult::Waiting(big) = set.arrive("a", work_with_seats(2)) else { panic!("there is no room") };
    set.wait("a");
    set.set.abandon(big, RejectReason::Cancelled, set.now);
    assert_eq!(set.set.take_woken(), [3]);
    assert_eq!(set.set.cancelled, 1);
}

#[test]
fn seats_linger_after_a_write_and_are_released_when_due() {
    let mut set = TestQueueSet::new(ONE_QUEUE, 1);
    let ArrivalResult::Executing(write) = set.arrive("a", estimate_write(10, 1)) else {
        panic!("a seat is free")
    };
    set.wait("a");
    assert_eq!(set.finish(write), [0_u32; 0]);
    assert_eq!((set.set.executing, set.set.seats_in_use), (0, 1));
    assert_eq!(set.set.next_due(), Some(set.now + 5 * MILLI));
    set.set.advance(set.now + 4 * MILLI);
    assert!(set.set.take_woken().is_empty());
    set.set.advance(set.now + 5 * MILLI);
    assert_eq!(set.set.take_woken(), [2]);
    assert_eq!(set.set.next_due(), None);
}

#[test]
fn a_larger_limit_lets_more_run_and_fewer_queues_drain() {
    let mut set = TestQueueSet::new(QUEUES, 0);
    let waiting: Vec<Ticket> = (0..8).map(|user| set.wait(&format!("user-{user}"))).collect();
    let few = LimitResponse::Queue(Queuing { queues: 2, hand_size: 1, queue_length_limit: 50 });
    set.set.configure(few, 3, set.now);
    assert_eq!(set.set.take_woken().len(), 3);
    set.set.configure(few, 8, set.now);
    assert_eq!(set.set.take_woken().len(), 5);
    waiting.into_iter().for_each(|ticket| drop(set.finish(ticket)));
    assert_eq!((set.set.queues.len(), set.set.seats_in_use), (2, 0));
}

#[test]
fn a_counts_index_is_not_reused_while_an_earlier_request_uses_it() {
    let mut set = TestQueueSet::new(QUEUES, 1);
    set.set.retain_counts(|_| false);
    let late = set.run("a");
    let waiting = set.wait("b");
    assert_eq!(set.set.counts_index("next"), 1);
    set.finish(late);
    assert_eq!(set.set.counts_index("after"), 2, "one that waited runs");
    set.finish(waiting);
    assert_eq!(set.set.counts[0].executing_seats, 0);
    assert_eq!(set.set.counts_index("last"), 0);
    assert_eq!(set.set.counts_index("next"), 1);
}

/// Returns how often each flow was served while a number of requests of each flow waits all the time.
fn serve_flows(flows: &[(&'static str, usize)], rounds: usize) -> BTreeMap<&'static str, usize> {
    let mut set = TestQueueSet::new(QUEUES, 4);
    let mut flow_of = BTreeMap::new();
    let mut waiting: BTreeMap<&str, usize> = BTreeMap::new();
    let mut running: Vec<Ticket> = Vec::new();
    let mut tickets = BTreeMap::new();
    let mut served = BTreeMap::new();
    for round in 0..rounds {
        for (flow, wanted) in flows {
            while *waiting.entry(flow).or_default() < *wanted {
                match set.arrive(flow, Work::ONE_SEAT) {
                    ArrivalResult::Executing(ticket) => running.push(ticket),
                    ArrivalResult::Waiting(ticket) => {
                        *waiting.entry(flow).or_default() += 1;
                        flow_of.insert(set.next, *flow);
                        tickets.insert(set.next, ticket);
                    }
                    ArrivalResult::Rejected(_) => break,
                }
            }
        }
        set.now += 10 * MILLI;
        let ended = running.remove(round % running.len());
        for number in set.finish(ended) {
            let flow = flow_of[&number];
            *served.entry(flow).or_default() += 1;
            *waiting.entry(flow).or_default() -= 1;
            running.push(tickets[&number]);
        }
    }
    served
}

#[test]
fn a_flooding_flow_does_not_take_the_half_of_another_flow() {
    let served = serve_flows(&[("flood", 4), ("quiet", 4)], 2000);
    let (flood, quiet) = (served["flood"], served["quiet"]);
    assert!(flood.abs_diff(quiet) * 10 < flood + quiet, "{served:?}");
}

#[test]
fn a_flow_with_few_requests_is_served_at_once() {
    // The requests of the first flow fill its four queues; the single request of the other is served at each turn of its queue.
    let served = serve_flows(&[("flood", 40), ("quiet", 1)], 2000);
    assert!(served["quiet"] * 8 > served["flood"], "{served:?}");
}

#[derive(Clone, Debug)]
enum Op {
    Arrive(u8, u32, u32),
    Finish(usize),
    Abandon(usize),
    Wait(u64),
    Limit(u32, bool),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0_u8..6, 1_u32..6, 0_u32..60).prop_map(|(flow, seats, watches)| Op::Arrive(flow, seats, watches)),
        5 => (0_usize..100).prop_map(Op::Finish),
        1 => (0_usize..100).prop_map(Op::Abandon),
        2 => (0_u64..20).prop_map(Op::Wait),
        1 => (0_u32..20, any::<bool>()).prop_map(|(limit, few)| Op::Limit(limit, few)),
    ]
}

fn check(set: &QueueSet<u32>) {
    let seats: u32 =
        set.requests.iter().filter(|(_, h)| h.started.is_some()).map(|(_, h)| h.work.max_seats()).sum();
    assert_eq!(seats, set.seats_in_use);
    let waiting: usize = set.queues.iter().map(|queue| queue.waiting.len()).sum();
    assert_eq!(waiting, set.waiting as usize);
    let wanted: u32 = set.queues.iter().map(|queue| queue.waiting_seats).sum();
    assert_eq!(wanted, set.waiting_seats);
    let active = set.queues.iter().filter(|queue| queue.is_active()).count();
    assert_eq!(active, set.active_queues as usize);
}

proptest! {
    #[test]
    fn no_seat_is_lost_and_no_request_waits_while_a_seat_is_free(ops in proptest::collection::vec(op(), 1..200)) {
        let mut set = TestQueueSet::new(QUEUES, 6);
        let (mut running, mut waiting) = (Vec::new(), BTreeMap::new());
        for op in ops {
            match op {
                Op::Arrive(flow, seats, watches) => {
                    let work = Work { initial_seats: seats, ..estimate_write(watches, 10) };
                    match set.arrive(&flow.to_string(), work) {
                        ArrivalResult::Executing(ticket) => running.push(ticket),
                        ArrivalResult::Waiting(ticket) => drop(waiting.insert(set.next, ticket)),
                        ArrivalResult::Rejected(_) => {}
                    }
                }
                Op::Finish(at) if !running.is_empty() => {
                    let ticket = running.swap_remove(at % running.len());
                    set.set.finish(ticket, set.now);
                }
                Op::Abandon(at) if !waiting.is_empty() => {
                    let number = *waiting.keys().nth(at % waiting.len()).unwrap();
                    set.set.abandon(waiting.remove(&number).unwrap(), RejectReason::TimeOut, set.now);
                }
                Op::Wait(millis) => {
                    set.now += Duration::from_millis(millis);
                    set.set.advance(set.now);
                }
                Op::Limit(limit, few) => {
                    let few_queues = LimitResponse::Queue(Queuing { queues: 4, hand_size: 2, queue_length_limit: 50 });
                    set.set.configure(if few { few_queues } else { QUEUES }, limit, set.now);
                }
                Op::Finish(_) | Op::Abandon(_) => {}
            }
            for number in set.set.take_woken() {
                running.push(waiting.remove(&number).unwrap());
            }
            check(&set.set);
        }
        // All remaining requests are served in the end.
        set.set.configure(QUEUES, 6, set.now);
        for _ in 0..1000 {
            for number in set.set.take_woken() {
                running.push(waiting.remove(&number).unwrap());
            }
            running.drain(..).for_each(|ticket| set.set.finish(ticket, set.now));
            set.now += Duration::from_secs(1);
            set.set.advance(set.now);
        }
        prop_assert!(waiting.is_empty());
        prop_assert_eq!((set.set.waiting, set.set.executing, set.set.seats_in_use), (0, 0, 0));
        prop_assert!(set.set.requests.is_empty());
    }
}
