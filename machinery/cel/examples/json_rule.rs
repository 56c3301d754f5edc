//! Validates JSON with a rule, after checking its type and its maximum cost: `cargo run --example json_rule`.

use std::error::Error;
use std::sync::Arc;

use portico_cel::decl::{DeclKind, Field, ListKind};
use portico_cel::value::from_json;
use portico_cel::{DeclType, DeclaredSizes, Environment};
use serde_json::json;

/// An object with a list of at most ten ports.
fn schema() -> DeclType {
    let port = DeclType::scalar(DeclKind::Int, 0, 1);
    let ports = DeclType::list(Arc::new(port), ListKind::Atomic, 10);
    let field = Field { name: "ports".into(), escaped: "ports".into(), of: Arc::new(ports) };
    DeclType::object("Service", vec![field], 2)
}

#[expect(clippy::print_stdout, reason = "an example")]
fn main() -> Result<(), Box<dyn Error>> {
    let schema = schema();
    let environment = Environment::builder().variable("self", schema.ty.clone()).build();

    // The checker knows the fields of the schema.
    if let Err(error) = environment.compile("self.port > 0") {
        println!("{error}\n");
    }

    let program = environment.compile("self.ports.all(port, port > 0 && port < 1024)")?;
    let estimate = program.estimate(&DeclaredSizes(&schema));
    println!("type {}, cost {} to {}", program.result_type(), estimate.min, estimate.max);

    for object in [json!({"ports": [80, 443]}), json!({"ports": [8080]})] {
        let value = from_json(&object, &schema)?;
        println!("{object}: {:?}", program.run(&[("self", value)])?.as_bool());
    }
    Ok(())
}
