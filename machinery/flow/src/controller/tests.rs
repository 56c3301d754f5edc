//! Tests of configuration, classification and assignment of seats.

use std::time::Duration;

use portico_machinery::flow_control::{Distinguisher, PolicyRules, Queuing, ResourceRule};
use portico_machinery::rbac::Subject;
use portico_machinery::user::{AUTHENTICATED, MASTERS};

use super::*;
use crate::level::ArrivalOutcome;
use crate::queue_set::RejectReason;
use crate::work::Work;

/// Waker without effect.
#[derive(Debug)]
struct NoopWaker;

impl Wake for NoopWaker {
    fn wake(self) {}
}

fn level(name: &str, shares: u32) -> Arc<PriorityLevel> {
    Arc::new(PriorityLevel {
        name: name.to_owned(),
        uid: format!("uid-of-{name}"),
        shares,
        lendable_percent: 0,
        borrowing_limit_percent: Some(0),
        response: LimitResponse::Queue(Queuing { queues: 8, hand_size: 2, queue_length_limit: 1 }),
    })
}

fn schema(name: &str, precedence: i32, level: &str, user: &str) -> Arc<FlowSchema> {
    let all = || vec!["*".to_owned()];
    let rule = ResourceRule {
        verbs: all(),
        api_groups: all(),
        resources: all(),
        cluster_scope: true,
        namespaces: all(),
    };
    let subjects = vec![Subject::User(user.to_owned())];
    let rules = PolicyRules { subjects, resource_rules: vec![rule], ..PolicyRules::default() };
    Arc::new(FlowSchema {
        name: name.to_owned(),
        uid: String::new(),
        precedence,
        level: level.to_owned(),
        distinguisher: Distinguisher::ByUser,
        rules: vec![rules],
    })
}

fn user(name: &str, group: &str) -> Arc<UserInfo> {
    Arc::new(UserInfo::new(name, [group]))
}

fn pods() -> Arc<RequestInfo> {
    Arc::new(RequestInfo::parse("GET", "/api/v1/pods", "").unwrap())
}

fn class_of(rules: &FlowRules<NoopWaker>, user: &UserInfo) -> (String, String) {
    let matched = rules.classify(user, &pods()).unwrap();
    (matched.schema.name.clone(), matched.level.name().to_owned())
}

fn arrive(rules: &FlowRules<NoopWaker>, user: &Arc<UserInfo>, now: Instant) -> ArrivalOutcome {
    let matched = rules.classify(user, &pods()).unwrap();
    matched.level.arrive(matched.classified(user, &pods()), Work::ONE_SEAT, now, || NoopWaker)
}

#[test]
fn without_objects_masters_are_exempt_and_other_users_match_the_catch_all() {
    let rules = FlowController::new(600).apply_config(&[], &[], Instant::now());
    let exempt = ("exempt".to_owned(), "exempt".to_owned());
    assert_eq!(class_of(&rules, &user("root", MASTERS)), exempt);
    let caught = ("catch-all".to_owned(), "catch-all".to_owned());
    assert_eq!(class_of(&rules, &user("amy", AUTHENTICATED)), caught);
    assert_eq!(class_of(&rules, &user("nobody", "")), caught);
}

#[test]
fn schemas_are_sorted_by_precedence_then_name_and_need_an_existing_level() {
    let schemas = [
        schema("lost", 1, "nowhere", "amy"),
        schema("b", 100, "two", "amy"),
        schema("a", 100, "one", "amy"),
        schema("late", 101, "two", "*"),
    ];
    let levels = [level("one", 10), level("two", 10)];
    let rules = FlowController::new(600).apply_config(&schemas, &levels, Instant::now());
    assert_eq!(class_of(&rules, &user("amy", AUTHENTICATED)).0, "a");
    assert_eq!(class_of(&rules, &user("bob", AUTHENTICATED)).0, "late");
}

#[test]
fn a_removed_level_exists_until_its_requests_are_finished() {
    let now = Instant::now();
    let controller = FlowController::new(600);
    let schemas = [schema("s", 100, "gone", "amy")];
    let amy = user("amy", AUTHENTICATED);
    let rules = controller.apply_config(&schemas, &[level("gone", 10)], now);
    let ArrivalOutcome::Executing(ticket) = arrive(&rules, &amy, now) else { panic!("there are seats") };
    let later = controller.apply_config(&schemas, &[], now);
    assert_eq!(class_of(&later, &amy).0, "catch-all");
    let names = || controller.levels().iter().map(|l| l.name().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(), ["catch-all", "exempt", "gone"]);
    let matched = rules.classify(&amy, &pods()).unwrap();
    assert!(matched.level.dump(now).quiescing);
    matched.level.finish(ticket, now);
    controller.rebalance(now);
    assert_eq!(names(), ["catch-all", "exempt"]);
}

#[test]
fn a_removed_schema_is_counted_until_its_requests_are_finished() {
    let (now, amy) = (Instant::now(), user("amy", AUTHENTICATED));
    let controller = FlowController::new(600);
    let digest = |names: &[&str]| {
        let schemas: Vec<_> = names.iter().map(|name| schema(name, 100, "one", "amy")).collect();
        controller.apply_config(&schemas, &[level("one", 10)], now)
    };
    let counted = || {
        let levels = controller.levels();
        let level = levels.iter().find(|level| level.name() == "one").unwrap();
        level
            .dump(now)
            .counts
            .into_iter()
            .map(|counts| (counts.schema, counts.dispatched))
            .collect::<Vec<_>>()
    };
    let counts = |name: &str, requests| (name.to_owned(), requests);
    let rules = digest(&["old", "other"]);
    let ArrivalOutcome::Executing(ticket) = arrive(&rules, &amy, now) else { panic!("there are seats") };
    digest(&["other"]);
    assert_eq!(counted(), [counts("old", 1), counts("other", 0)], "a request runs");
    rules.classify(&amy, &pods()).unwrap().level.finish(ticket, now);
    digest(&["other"]);
    assert_eq!(counted(), [counts("other", 0)]);
    let rules = digest(&["other", "new"]);
    assert_eq!(counted(), [counts("new", 0), counts("other", 0)]);
    let ArrivalOutcome::Executing(_) = arrive(&rules, &amy, now) else { panic!("there are seats") };
    assert_eq!(counted(), [counts("new", 1), counts("other", 0)]);
}

#[test]
fn seats_follow_demand_and_rejections_have_a_retry_time() {
    let begin = Instant::now();
    let controller = FlowController::new(10);
    let lends = PriorityLevel { lendable_percent: 100, ..PriorityLevel::clone(&level("idle", 5)) };
    let borrows = PriorityLevel { borrowing_limit_percent: None, ..PriorityLevel::clone(&level("busy", 5)) };
    let levels = [Arc::new(lends), Arc::new(borrows)];
    let rules = controller.apply_config(&[schema("s", 100, "busy", "*")], &levels, begin);
    let current = || {
        let levels = controller.levels();
        levels.iter().find(|level| level.name() == "busy").unwrap().dump(begin).limits.current
    };
    let before = current();
    let mut rejected = 0;
    for flow in 0..100 {
        let amy = user(&format!("user-{flow}"), AUTHENTICATED);
        if let ArrivalOutcome::Rejected { reason, retry_after } = arrive(&rules, &amy, begin) {
            assert_eq!((reason, retry_after), (RejectReason::QueueFull, 1));
            rejected += 1;
        }
    }
    assert!(rejected > 0);
    controller.rebalance(begin + crate::BORROWING_PERIOD);
    assert!(current() > before, "{} after {before}", current());
    // The smoothed demand decreases slowly, and the seats are returned afterwards.
    for period in 2..400 {
        controller.rebalance(begin + Duration::from_secs(10 * period));
    }
    assert!(controller.fair_fraction() > 0.0);
}
