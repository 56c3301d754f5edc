//! Tests of the cache: hits, limits, and caches that languages share or do not share.

use super::*;
use crate::environment::Environment;
use crate::language::Language;
use crate::types::Type;
use crate::value::Value;

fn program_bytes(cache: &PatternCache) -> usize {
    cache.0.program_bytes.load(Ordering::Relaxed)
}

fn is_cached(cache: &PatternCache, pattern: &str) -> bool {
    cache.compile_within(pattern, &|_| Err(EvalError::Budget)).is_ok()
}

#[test]
fn compiled_and_refused_patterns_are_cached() {
    let cache = PatternCache::new();
    let first = cache.compile("^a+$").unwrap();
    assert!(first.is_match("aa") && is_cached(&cache, "^a+$"));
    let long = format!("(a{})", "|b".repeat(MAX_CACHED_LENGTH));
    assert!(cache.compile(&long).is_ok() && !is_cached(&cache, &long));
    let unpaid = |_| Err(EvalError::Budget);
    for refused in ["(b", r"((\pL|\pN){30}){30}"] {
        let error = cache.compile(refused).unwrap_err().to_string();
        assert_eq!(cache.compile_within(refused, &unpaid).unwrap_err().to_string(), error);
    }
    assert!(matches!(cache.compile_within("^new$", &unpaid), Err(EvalError::Budget)));
}

#[test]
fn environments_share_a_cache_only_if_their_languages_do() {
    let environment = |language: Language| {
        Environment::builder()
            .language(language)
            .variable("text", Type::String)
            .variable("pattern", Type::String)
            .build()
    };
    let run = |environment: &Environment, pattern: &'static str| {
        let program = environment.compile("text.matches('^literal$') || text.matches(pattern)").unwrap();
        program.run(&[("text", "ab".into()), ("pattern", pattern.into())]).unwrap().as_bool()
    };
    let shared = PatternCache::new();
    let of_shared = || Language::standard().with_pattern_cache(shared.clone());
    let (one, two) = (environment(of_shared()), environment(of_shared()));
    let apart = environment(Language::standard());
    assert_eq!((run(&one, "^ab$"), run(&two, "b$"), run(&apart, "^a")), (Some(true), Some(true), Some(true)));
    let cache = apart.pattern_cache();
    assert!(is_cached(&shared, "^ab$") && is_cached(&shared, "b$") && !is_cached(&shared, "^a"));
    assert!(is_cached(cache, "^a") && !is_cached(cache, "^ab$") && !is_cached(cache, "b$"));
}

#[test]
fn programs_own_literal_patterns_up_to_the_limit_of_their_cache() {
    let cache = PatternCache::with_limits(SIZES[0] * 4, SIZES[0]);
    let environment = Environment::builder()
        .language(Language::standard().with_pattern_cache(cache.clone()))
        .variable("text", Type::String)
        .build();
    let holds =
        |program: &crate::Program| program.run(&[("text", Value::from("ab"))]).unwrap().as_bool().unwrap();
    let first = environment.compile("text.matches('^a')").unwrap();
    assert_eq!(program_bytes(&cache), SIZES[0]);
    let second = environment.compile("text.matches('b$')").unwrap();
    assert_eq!(program_bytes(&cache), SIZES[0], "the second pattern stays in the cache");
    assert!(holds(&first) && holds(&second));
    assert!(environment.compile("text.matches('(a')").is_err(), "syntax errors are reported nonetheless");
    drop(first);
    assert_eq!(program_bytes(&cache), 0);
}

#[test]
fn compiling_takes_steps_by_the_size_of_the_pattern() {
    let steps = |pattern: &str| {
        let counted = std::cell::Cell::new(0);
        let count = |steps| {
            counted.set(counted.get() + steps);
            Ok(())
        };
        compile(pattern, &count).unwrap().is_ok().then(|| counted.get())
    };
    assert!(steps("^[a-z]+$").unwrap() < 2_000);
    assert!(steps(r"\pL{20}").unwrap() > MAX_COMPILED_BYTES / STEP_COMPILED_BYTES);
}

#[test]
fn only_the_syntax_is_checked_if_the_meter_is_exhausted() {
    let (cache, meter) = (PatternCache::new(), Meter::new(20_000));
    let owned = |pattern: &str| OwnedPattern::compile(&cache, pattern, &meter);
    let large = |number: usize| owned(&format!(r"((\pL|\pN){{30}}){{30}}{number}"));
    let refused = (0..100).filter(|number| large(*number).is_err()).count();
    assert!((1..5).contains(&refused), "{refused}");
    assert!(matches!(owned("^small$"), Ok(None)));
    assert!(owned("(a").is_err());
}

#[test]
fn recently_used_patterns_stay_when_the_cache_is_full() {
    let compiled = |pattern: &str| compile(pattern, &|_| Ok(())).unwrap().unwrap();
    let (small, large) = (compiled("^a+$"), compiled(r"\pL{20}"));
    assert_eq!((small.1, large.1), (SIZES[0], MAX_COMPILED_BYTES));
    let (mut cached, limit) = (Generations::default(), DEFAULT_CACHED_BYTES);
    cached.insert("^a+$", &Ok(small), limit);
    for number in 0..100 {
        cached.insert(&number.to_string(), &Ok(large.clone()), limit);
        assert!(cached.recent_bytes <= limit / 2);
        assert!(cached.recent.len() + cached.older.len() <= limit / MAX_COMPILED_BYTES + 2);
        assert!(cached.get("^a+$", limit).is_some());
    }
    assert!(cached.get("0", limit).is_none());
    let before = cached.recent_bytes;
    cached.insert("99", &Ok(large), limit);
    assert_eq!(cached.recent_bytes, before, "a pattern counts once");
}
