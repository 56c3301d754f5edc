//! Limits of estimated costs: of one rule times its maximum number of evaluations, and of all rules of a schema.

use portico_machinery::field::{Error, Path};

/// Estimated cost of one rule, times the number of times it can run.
///
/// Limit (Definitions and schemas, cost units): the definition is rejected.
pub(super) const MAX_PER_EXPRESSION: u64 = 10_000_000;
/// Estimated cost of all rules of a schema.
///
/// Limit (Definitions and schemas, cost units): the definition is rejected.
const MAX_PER_SCHEMA: u64 = 100_000_000;
/// Maximum number of expensive rules that an error lists.
const MAX_LISTED: usize = 4;

/// Sum of the costs of a schema's expressions.
#[derive(Debug, Default)]
pub(super) struct CostTotal {
    sum: u64,
    expensive: Vec<(Path, u64)>,
}

impl CostTotal {
    pub fn add(&mut self, path: Path, cost: u64) {
        self.sum = self.sum.saturating_add(cost);
        // Costs below a hundredth of the limit are not listed.
        if cost < MAX_PER_SCHEMA / 100 {
            return;
        }
        self.expensive.push((path, cost));
        self.expensive.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
        self.expensive.truncate(MAX_LISTED);
    }

    /// Returns the errors if the sum exceeds the limit.
    pub fn errors(self, schema: &Path) -> Vec<Error> {
        if self.sum <= MAX_PER_SCHEMA {
            return Vec::new();
        }
        let contributed =
            "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        let mut errors: Vec<Error> =
            self.expensive.iter().map(|(path, _)| Error::forbidden(path, contributed)).collect();
        let subject = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.push(Error::forbidden(schema, &limit_message(subject, self.sum, MAX_PER_SCHEMA)));
        errors
    }
}

/// Formats upstream's message for a cost above its limit.
#[expect(clippy::cast_precision_loss, reason = "approximate factor for a message")]
pub(super) fn limit_message(subject: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor_text = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{subject} exceeds budget by factor of {factor_text} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}
