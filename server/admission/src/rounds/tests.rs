//! Compares the reinvocation of webhooks and policies with a direct implementation of upstream's rules.
//!
//! The object is a number. Plugins, policies and webhooks change the number, and their effect depends on its value, so that some
//! of them change it in one round only.

use portico_machinery::Object;
use proptest::prelude::*;

use super::{Reinvocation, Rounds};

/// Effect of a step on the number.
#[derive(Clone, Copy, Debug)]
enum Effect {
    Nothing,
    Add(u8),
    /// Sets the number.
    Set(u8),
    /// Adds where the number is odd.
    AddIfOdd(u8),
    /// Halves the number.
    Halve,
}

impl Effect {
    fn on(self, number: u8) -> u8 {
        match self {
            Self::Nothing => number,
            Self::Add(more) => number.wrapping_add(more),
            Self::Set(other) => other,
            Self::AddIfOdd(more) if number % 2 == 1 => number.wrapping_add(more),
            Self::AddIfOdd(_) => number,
            Self::Halve => number / 2,
        }
    }
}

/// A policy or webhook.
#[derive(Clone, Copy, Debug)]
struct Actor {
    effect: Effect,
    /// True for `reinvocationPolicy: IfNeeded`.
    again: bool,
}

/// All steps that change the object, in order.
#[derive(Clone, Debug)]
struct World {
    plugins: Vec<Effect>,
    policies: Vec<Actor>,
    webhooks: Vec<Actor>,
}

/// Steps that ran, in order (round, kind, position), and the resulting number.
type History = (Vec<(usize, &'static str, usize)>, u8);

fn object(number: u8) -> Object {
    Object::from_json(format!(r#"{{"n":{number}}}"#).as_bytes()).unwrap()
}

/// Runs the steps with [`Rounds`] and [`Reinvocation`], as the chain does.
fn by_code(world: &World, mut number: u8) -> History {
    let (mut rounds, mut history) = (Rounds::default(), Vec::new());
    let mut reinvocations = [Reinvocation::default(), Reinvocation::default()];
    loop {
        world.plugins.iter().for_each(|effect| number = effect.on(number));
        let kinds = [("policy", &world.policies), ("webhook", &world.webhooks)];
        for ((kind, actors), reinvocation) in kinds.into_iter().zip(&mut reinvocations) {
            reinvocation.begin(&rounds, Some(&object(number)));
            for (at, actor) in actors.iter().enumerate() {
                let id = at.to_string();
                if !reinvocation.is_due(&rounds, &id) {
                    continue;
                }
                history.push((rounds.number(), kind, at));
                let changed = actor.effect.on(number);
                if changed != number {
                    number = changed;
                    reinvocation.changed();
                    rounds.wanted = true;
                }
                if actor.again {
                    reinvocation.asked(&id);
                }
            }
            reinvocation.end(&rounds, Some(&object(number)));
        }
        if !rounds.go_on() {
            return (history, number);
        }
    }
}

/// Runs the steps by the rules. There is a second round if a policy or webhook changed the object. In the second round, a policy
/// or webhook with `IfNeeded` runs again if the object differs from the object after the first run of its kind, or if another one
/// of its kind changes the object after it ran in the first round and before its turn in the second.
fn by_rules(world: &World, mut number: u8) -> History {
    let kinds = [("policy", &world.policies), ("webhook", &world.webhooks)];
    let mut history = Vec::new();
    // Per kind: the positions at which the object was changed, and the resulting number.
    let mut first = Vec::new();
    world.plugins.iter().for_each(|effect| number = effect.on(number));
    for (kind, actors) in kinds {
        let mut changed = Vec::new();
        for (at, actor) in actors.iter().enumerate() {
            history.push((0, kind, at));
            let next = actor.effect.on(number);
            if next != number {
                changed.push(at);
            }
            number = next;
        }
        first.push((changed, number));
    }
    if first.iter().all(|(changed, _)| changed.is_empty()) {
        return (history, number);
    }
    world.plugins.iter().for_each(|effect| number = effect.on(number));
    for ((kind, actors), (changed, left)) in kinds.into_iter().zip(first) {
        let came_back_changed = number != left;
        let mut changed_in_second = false;
        for (at, actor) in actors.iter().enumerate() {
            let changed_behind = changed.iter().any(|position| *position > at);
            if !actor.again || !(came_back_changed || changed_behind || changed_in_second) {
                continue;
            }
            history.push((1, kind, at));
            let next = actor.effect.on(number);
            changed_in_second |= next != number;
            number = next;
        }
    }
    (history, number)
}

fn effects() -> impl Strategy<Value = Effect> {
    prop_oneof![
        2 => Just(Effect::Nothing),
        2 => (0..8u8).prop_map(Effect::Add),
        2 => (0..8u8).prop_map(Effect::Set),
        2 => (0..8u8).prop_map(Effect::AddIfOdd),
        1 => Just(Effect::Halve),
    ]
}

fn actors() -> impl Strategy<Value = Vec<Actor>> {
    proptest::collection::vec(
        (effects(), any::<bool>()).prop_map(|(effect, again)| Actor { effect, again }),
        0..6,
    )
}

fn worlds() -> impl Strategy<Value = World> {
    let plugins = proptest::collection::vec(effects(), 0..3);
    (plugins, actors(), actors()).prop_map(|(plugins, policies, webhooks)| World {
        plugins,
        policies,
        webhooks,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn all_are_asked_in_the_rounds_that_upstreams_rules_require(world in worlds(), number: u8) {
        prop_assert_eq!(by_code(&world, number), by_rules(&world, number));
    }
}

#[test]
fn those_behind_whom_something_changed_are_asked_again() {
    let (mut rounds, mut reinvocation) = (Rounds::default(), Reinvocation::default());
    assert!(reinvocation.is_due(&rounds, "a"));
    reinvocation.asked("a");
    reinvocation.changed();
    reinvocation.asked("b");
    reinvocation.end(&rounds, None);
    rounds.wanted = true;
    assert!(rounds.go_on());
    reinvocation.begin(&rounds, None);
    assert!(reinvocation.is_due(&rounds, "a") && !reinvocation.is_due(&rounds, "b"));
    reinvocation.begin(&rounds, Some(&Object::default()));
    assert!(reinvocation.is_due(&rounds, "b"), "a plugin has changed it in between");
    assert!(!rounds.go_on(), "there are two rounds at most");
}
