//! Adds functions and shares a cache of regular expressions between two environments: `cargo run --example functions`.

use std::collections::HashMap;
use std::error::Error;

use portico_cel::{Environment, EvalError, Function, Language, Overload, PatternCache, Type, Value, library};

/// `owner(team)`: looks up a name in a table.
fn owner(table: HashMap<String, String>) -> Function {
    let overload = Overload::new("owner_string", [Type::String], Type::String, move |call| {
        let team = call.str(0)?;
        let owner = table.get(team).ok_or_else(|| EvalError::no_such_key(team))?;
        Ok(Value::text(owner.as_str()))
    });
    Function::new("owner", vec![overload])
}

#[expect(clippy::print_stdout, reason = "an example")]
fn main() -> Result<(), Box<dyn Error>> {
    let cache = PatternCache::new();
    let table = HashMap::from([("storage".to_owned(), "alice@example.com".to_owned())]);
    let owners = Environment::builder()
        .language(Language::standard().with_pattern_cache(cache.clone()))
        .library(library::strings())?
        .function(owner(table))?
        .variable("team", Type::String)
        .build();
    let program = owners.compile("owner(team).split('@')[0].upperAscii()")?;
    for team in ["storage", "network"] {
        println!("{team}: {:?}", program.run(&[("team", team.into())]));
    }

    // Another environment; its computed patterns are cached together with those of the first one.
    let filters = Environment::builder()
        .language(Language::standard().with_pattern_cache(cache))
        .variable("name", Type::String)
        .variable("pattern", Type::String)
        .build();
    let program = filters.compile("name.matches(pattern)")?;
    let result = program.run(&[("name", "web-1".into()), ("pattern", "^web-[0-9]+$".into())])?;
    println!("matches: {}", bool::try_from(&result)?);
    Ok(())
}
