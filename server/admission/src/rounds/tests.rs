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
    /// Adds to odd numbers only.
    AddIfOdd(u8),
    /// Halves the number.
    Halve,
}

impl Effect {
    fn apply(self, number: u8) -> u8 {
        match self {
            Self::Nothing => number,
            Self::Add(addend) => number.wrapping_add(addend),
            Self::Set(value) => value,
            Self::AddIfOdd(addend) if number % 2 == 1 => number.wrapping_add(addend),
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
    is_reinvocable: bool,
}

/// All steps that change the object, in order.
#[derive(Clone, Debug)]
struct Steps {
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
fn run_by_code(steps: &Steps, mut number: u8) -> History {
    let (mut rounds, mut history) = (Rounds::default(), Vec::new());
    let mut reinvocations = [Reinvocation::default(), Reinvocation::default()];
    loop {
        steps.plugins.iter().for_each(|effect| number = effect.apply(number));
        let kinds = [("policy", &steps.policies), ("webhook", &steps.webhooks)];
        for ((kind, actors), reinvocation) in kinds.into_iter().zip(&mut reinvocations) {
            reinvocation.begin(&rounds, Some(&object(number)));
            for (index, actor) in actors.iter().enumerate() {
                let id = index.to_string();
                if !reinvocation.is_due(&rounds, &id) {
                    continue;
                }
                history.push((rounds.number(), kind, index));
                let changed = actor.effect.apply(number);
                if changed != number {
                    number = changed;
                    reinvocation.require_reinvoking();
                    rounds.should_reinvoke = true;
                }
                if actor.is_reinvocable {
                    reinvocation.add_invoked(&id);
                }
            }
            reinvocation.end(&rounds, Some(&object(number)));
        }
        if !rounds.advance() {
            return (history, number);
        }
    }
}

/// Runs the steps by the rules. There is a second round if a policy or webhook changed the object. In the second round, a policy
/// or webhook with `IfNeeded` runs again if the object differs from the object after the first run of its kind, or if another one
/// of its kind changes the object after it ran in the first round and before its turn in the second.
fn run_by_rules(steps: &Steps, mut number: u8) -> History {
    let kinds = [("policy", &steps.policies), ("webhook", &steps.webhooks)];
    let mut history = Vec::new();
    // Per kind: the positions at which the object was changed, and the resulting number.
    let mut first = Vec::new();
    steps.plugins.iter().for_each(|effect| number = effect.apply(number));
    for (kind, actors) in kinds {
        let mut changed = Vec::new();
        for (index, actor) in actors.iter().enumerate() {
            history.push((0, kind, index));
            let next = actor.effect.apply(number);
            if next != number {
                changed.push(index);
            }
            number = next;
        }
        first.push((changed, number));
    }
    if first.iter().all(|(changed, _)| changed.is_empty()) {
        return (history, number);
    }
    steps.plugins.iter().for_each(|effect| number = effect.apply(number));
    for ((kind, actors), (changed, first_result)) in kinds.into_iter().zip(first) {
        let differs_from_first_run = number != first_result;
        let mut changed_in_second = false;
        for (index, actor) in actors.iter().enumerate() {
            let changed_after = changed.iter().any(|position| *position > index);
            if !actor.is_reinvocable || !(differs_from_first_run || changed_after || changed_in_second) {
                continue;
            }
            history.push((1, kind, index));
            let next = actor.effect.apply(number);
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
        (effects(), any::<bool>()).prop_map(|(effect, is_reinvocable)| Actor { effect, is_reinvocable }),
        0..6,
    )
}

fn any_steps() -> impl Strategy<Value = Steps> {
    let plugins = proptest::collection::vec(effects(), 0..3);
    (plugins, actors(), actors()).prop_map(|(plugins, policies, webhooks)| Steps {
        plugins,
        policies,
        webhooks,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn steps_run_in_the_rounds_that_upstreams_rules_require(world in any_steps(), number: u8) {
        prop_assert_eq!(run_by_code(&world, number), run_by_rules(&world, number));
    }
}

#[test]
fn steps_are_reinvoked_if_the_object_changed_after_them() {
    let (mut rounds, mut reinvocation) = (Rounds::default(), Reinvocation::default());
    assert!(reinvocation.is_due(&rounds, "a"));
    reinvocation.add_invoked("a");
    reinvocation.require_reinvoking();
    reinvocation.add_invoked("b");
    reinvocation.end(&rounds, None);
    rounds.should_reinvoke = true;
    assert!(rounds.advance());
    reinvocation.begin(&rounds, None);
    assert!(reinvocation.is_due(&rounds, "a") && !reinvocation.is_due(&rounds, "b"));
    reinvocation.begin(&rounds, Some(&Object::default()));
    assert!(reinvocation.is_due(&rounds, "b"), "a plugin changed the object after the step ran");
    assert!(!rounds.advance(), "there are at most two rounds");
}
