//! Wording of log lines and of error messages.
//!
//! A log line is subject, action and cause in lower case, with values in fields; an error message states what failed, why, and
//! what to do next.

use std::collections::BTreeSet;

use crate::calls::{Call, calls, placeholders};
use crate::tree::Tree;

const LOGS: [&str; 5] = ["error!", "warn!", "info!", "debug!", "trace!"];
const ERROR: &str = "#[error";

/// Words and phrases that leave the subject or the action of a sentence open, separated by commas: pronouns used as nouns,
/// conditions without a name, and actions that have a standard term (request, report, store, resume, accept).
const BANNED: &str = "\
    anybody, anything, it, nobody, none, nothing, others, ours, somebody, something, they, what, whatever, who, \
    whoever, whom, whose, \
    all the same, anew, away, beside, due, elsewhere, for a while, for now, given up, gone, here, is there, left out, \
    let go, meanwhile, no such, not there, once more, peace, silent, stand, stands, stood, \
    asked, asks, broke, came, comes, goes, hears, judge, judged, know, known, knows, mended, said, say, says, taken, takes, \
    tell, tells, told, took, went";

/// Names of fields that hold an error in the place of `error`, or that collide with fields of tracing.
const FIELDS: &[&str] =
    &["cause", "e", "err", "failure", "fault", "message", "problem", "status", "target", "why"];

/// First words that begin in upper case and have no other capital; words such as HTTPS and PostgreSQL need no entry.
const PRODUCTS: &[&str] = &["Kubernetes", "Portico"];

/// Messages that may break the convention: the beginning of a path, and a part of the text.
const EXCEPTIONS: &[(&str, &str)] = &[
    // Texts of kube-apiserver and its libraries.
    ("machinery/kinds/src/runtime_config.rs", "in runtime-config because it is introduced at"),
    ("machinery/schema/src/merge/error.rs", "the server rejected our request due to an error in our request"),
    ("server/admission/src/loaded_plugins.rs", "admission controller(s) successfully in the following order"),
    ("server/src/assembly/authorizers/webhook.rs", "Failed to make webhook authorizer request"),
    ("server/src/assembly/token_webhook.rs", "Failed to make webhook authenticator request"),
    // Keys of queues are of any type.
    ("machinery/kit/src/workqueue/workers.rs", "reconcile "),
];

/// Messages that break the convention, and exceptions that excuse no message.
pub fn violations(tree: &Tree) -> Vec<String> {
    let (mut broken, mut used) = (Vec::new(), BTreeSet::new());
    for (path, text) in tree.program() {
        for (message, violation) in violations_of_file(path, text) {
            match EXCEPTIONS
                .iter()
                .position(|(prefix, part)| path.starts_with(prefix) && message.contains(part))
            {
                Some(row) => drop(used.insert(row)),
                None => broken.push(violation),
            }
        }
    }
    let unused = EXCEPTIONS.iter().enumerate().filter(|(row, _)| !used.contains(row));
    broken.extend(unused.map(|(_, (prefix, part))| format!("exception without a message: {prefix}: {part}")));
    broken
}

/// Texts of a file that break the convention, with a description of the violation.
fn violations_of_file(path: &str, text: &str) -> Vec<(String, String)> {
    let mut broken = Vec::new();
    for call in calls(text, &[LOGS.as_slice(), &[ERROR]].concat()) {
        let message = call.text().unwrap_or_default();
        let faults = if call.name == ERROR {
            violations_of_text(&message)
        } else {
            violations_of_log_line(&call, &message)
        };
        if !faults.is_empty() {
            let violation = format!("{path}:{}: {}: {message}", call.line, faults.join(", "));
            broken.push((message, violation));
        }
    }
    broken
}

fn violations_of_log_line(call: &Call, message: &str) -> Vec<String> {
    let mut faults = violations_of_text(message);
    if message.is_empty() {
        faults.push("no message".to_owned());
    }
    let first = message.split(' ').next().unwrap_or_default();
    let capitals = first.chars().filter(|c| c.is_uppercase()).count();
    if message.starts_with(char::is_uppercase) && capitals < 2 && !PRODUCTS.contains(&first) {
        faults.push("upper-case first letter".to_owned());
    }
    faults.extend(call.fields().iter().filter_map(|field| violation_of_field(field)));
    faults
}

fn violations_of_text(text: &str) -> Vec<String> {
    let (plain, placeholders) = placeholders(text);
    let prose: String = plain.split('`').step_by(2).collect::<Vec<_>>().join(" _ ").to_lowercase();
    let words: Vec<&str> =
        prose.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|w| !w.is_empty()).collect();
    let prose = format!(" {} ", words.join(" "));
    let mut faults: Vec<String> = BANNED
        .split(", ")
        .filter(|banned| prose.contains(&format!(" {banned} ")))
        .map(|banned| format!("`{banned}`"))
        .collect();
    if placeholders
        .iter()
        .any(|placeholder| placeholder.split_once(':').is_some_and(|(_, f)| f.contains('?')))
    {
        faults.push("debug formatting".to_owned());
    }
    if text.ends_with('.') {
        faults.push("final period".to_owned());
    }
    faults
}

/// Returns the violation of one argument before a message: `name`, `%name`, `name = value`.
fn violation_of_field(field: &str) -> Option<String> {
    if ["target:", "parent:", "name:"].iter().any(|directive| field.starts_with(directive)) {
        return None;
    }
    let (name, value) = field.split_once('=').unwrap_or((field.trim_start_matches(['%', '?']), field));
    let (name, value) = (name.trim(), value.trim());
    if value.starts_with('?') {
        return Some(format!("debug formatting of the field {name}"));
    }
    let is_error = crate::source::has_word(value, "error");
    (name != "error" && (is_error || FIELDS.contains(&name))).then(|| format!("field named {name}"))
}

#[cfg(test)]
fn faults(text: &str) -> Vec<String> {
    violations_of_file("a.rs", text).into_iter().map(|(_, violation)| violation).collect()
}

#[test]
fn each_kind_of_violation_is_found() {
    for (sample, fault) in [
        ("tracing::warn!(?state, \"lease lost\");", "debug formatting of the field state"),
        ("warn!(state = ?state, \"lease lost\");", "debug formatting of the field state"),
        ("info!(\"lease {state:?} lost\");", "debug formatting"),
        ("debug!(\"lease {:?} lost\", state);", "debug formatting"),
        ("trace!(\"nobody has the lease\");", "`nobody`"),
        ("error!(\"the store does not open: the disk is away\");", "`away`"),
        ("tracing::info!(\n    name,\n    \"the file is \\\n     left out\"\n);", "`left out`"),
        ("info!(\"Lease lost\");", "upper-case first letter"),
        ("info!(\"lease lost.\");", "final period"),
        ("info!(\"\");", "no message"),
        ("info!(lease);", "no message"),
        ("info!(%status, \"lease lost\");", "field named status"),
        ("info!(reason = %error, \"lease lost\");", "field named reason"),
        ("info!(target = address, \"lease lost\");", "field named target"),
        ("#[error(\"it is closed\")]", "`it`"),
        ("#[error(\"{0:?} is not a name\")]", "debug formatting"),
        ("#[error(\n    \"{} is not a name.\",\n    path.display()\n)]", "final period"),
    ] {
        let found = faults(sample);
        assert_eq!(found.len(), 1, "{sample}: {found:?}");
        assert!(found[0].contains(&format!(": {fault}: ")), "{sample}: {found:?}");
    }
}

#[test]
fn messages_of_the_convention_pass() {
    let good = "fn a() {\n    tracing::warn!(\n        target: \"http\",\n        error = %reason(&error),\n        duration_ms,\n        \"cannot reach the backend \\\n         {name}, retrying in {seconds:.1} s\",\n    );\n    info!(\"HTTPS listener closed\");\n    info!(\"PostgreSQL session ended\");\n    debug!(\"Kubernetes names `it` {{}}\");\n}\n#[error(\"Object {0} is missing: use --force\")]\n#[error(transparent)]\n";
    assert_eq!(faults(good), [""; 0]);
}

#[test]
fn an_exception_without_a_message_is_found() {
    let (path, text) = EXCEPTIONS[0];
    let tree = Tree::with(&[(path, &format!("#[error(\"{text}\")]\n")), ("Cargo.toml", "")]);
    let found = violations(&tree);
    assert_eq!(found.len(), EXCEPTIONS.len() - 1, "{found:?}");
    assert!(found.iter().all(|line| line.starts_with("exception without a message: ")), "{found:?}");
}
