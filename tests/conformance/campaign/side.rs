//! One of the two servers: a connection that is kept, and answers as they are compared.

use std::net::SocketAddr;
use std::sync::LazyLock;

use portico_tests::http::{Broken, Connection, collect};
use regex::Regex;
use serde_json::{Value, json};

use crate::fixture::Fixture;
use crate::normalise;
use crate::play::{self, Player};
use crate::step::{Compare, Step};

/// Where cases live.
pub const NAMESPACE: &str = "campaign";

/// What a server chooses freely where nobody does.
const CHOSEN: [&str; 4] = ["clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort"];

/// A revision within a text: YAML, or an object in a message.
static REVISION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"(resourceVersion[\\": ]{1,8})[0-9]+"#).unwrap());
/// The volume that pods get for their service account.
static MOUNT: LazyLock<Regex> = LazyLock::new(|| Regex::new("kube-api-access-[a-z0-9]{5}").unwrap());

/// A server, asked over one connection.
pub struct Side<'a> {
    player: Player<'a>,
    connection: Option<Connection>,
    names: Vec<(String, String)>,
}

impl<'a> Side<'a> {
    pub async fn new(fixture: &'a Fixture, address: SocketAddr, ca: &[u8]) -> Self {
        let player = Player::new(fixture, address, ca, false).await;
        Self { player, connection: None, names: fixture.names() }
    }

    /// Makes the namespace of all cases, with the service account that pods need.
    pub async fn prepare(&mut self) {
        for (target, kind, name) in [
            ("/api/v1/namespaces".to_owned(), "Namespace", NAMESPACE),
            (format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts"), "ServiceAccount", "default"),
        ] {
            let body = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
            let step = Step { method: "POST".to_owned(), target, body: Some(body), ..Step::default() };
            let answer = self.answer(&step, "").await;
            assert_eq!(answer["status"], 201, "{answer}");
        }
    }

    /// The answer to a step of the case with this name.
    pub async fn answer(&mut self, step: &Step, name: &str) -> Value {
        let answered = match self.exchange(step).await {
            // The connection may have been closed since: once more.
            Err(_) => self.exchange(step).await,
            answered => answered,
        };
        let Ok((status, body)) = answered else { return json!({"error": "the connection broke"}) };
        let mut answer = json!({"status": status});
        if step.compare == Compare::Body {
            let mut body = normalise::body(body, step, &self.names);
            choose(&mut body, step.body.as_ref(), name);
            answer["body"] = body;
        }
        answer
    }

    async fn exchange(&mut self, step: &Step) -> Result<(u16, Value), Broken> {
        let request = self.player.request(step)?;
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.player.client(step).connect().await?,
        };
        let answer = collect(connection.send(request).await?).await?;
        self.connection = Some(connection);
        Ok((answer.status.as_u16(), play::json_or_text(&answer.body)))
    }
}

/// Replaces what the server has chosen, and the name of the case.
fn choose(value: &mut Value, sent: Option<&Value>, name: &str) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields.iter_mut() {
                let given = sent.and_then(|sent| sent.get(field));
                if CHOSEN.contains(&field.as_str()) && given.is_none_or(|given| given != value) {
                    *value = format!("<{field}>").into();
                } else {
                    choose(value, given, name);
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                choose(item, sent.and_then(|sent| sent.get(at)), name);
            }
        }
        Value::String(text) => {
            let chosen = REVISION.replace_all(text, "$1<rv>");
            let chosen = MOUNT.replace_all(&chosen, "kube-api-access-<chosen>");
            *text = if name.is_empty() { chosen.into_owned() } else { chosen.replace(name, "<name>") };
        }
        _ => {}
    }
}
