//! One of the two servers: a persistent connection, and comparable responses.

use std::net::SocketAddr;

use http::HeaderMap;
use portico_tests::http::{Connection, FullResponse, HttpError, collect};
use portico_tests::objects::DEFINITIONS;
use serde_json::{Value, json};

use super::custom;
use super::{wire, words};
use crate::fixture::Fixture;
use crate::normalization;
use crate::player::{self, Player};
use crate::step::{Compare, Step};

/// Namespace of the cases.
pub const NAMESPACE: &str = "campaign";

/// A server with one connection.
pub struct ComparedServer<'a> {
    player: Player<'a>,
    connection: Option<Connection>,
    names: Vec<(String, String)>,
}

impl<'a> ComparedServer<'a> {
    pub async fn new(fixture: &'a Fixture, address: SocketAddr, ca: &[u8]) -> Self {
        let player = Player::new(fixture, address, ca, false).await;
        Self { player, connection: None, names: fixture.placeholders() }
    }

    /// Creates the namespace of all cases, the service account that pods need, and the custom resource.
    pub async fn prepare(&mut self) {
        let core =
            |kind: &str, name: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
        for (target, body) in [
            ("/api/v1/namespaces".to_owned(), core("Namespace", NAMESPACE)),
            (format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts"), core("ServiceAccount", "default")),
            (DEFINITIONS.to_owned(), custom::definition()),
        ] {
            let step = Step { method: "POST".to_owned(), target, body: Some(body), ..Step::default() };
            let answer = self.response(&step, "").await;
            assert_eq!(answer["status"], 201, "{answer}");
        }
        let served = Step {
            method: "GET".to_owned(),
            target: custom::collection(),
            status_in: vec![200],
            ..Step::default()
        };
        let answer = self.player.play(&served).await;
        assert_eq!(answer["status"], 200, "{answer}");
    }

    /// Returns the comparable response to a step of the case with this name.
    pub async fn response(&mut self, step: &Step, name: &str) -> Value {
        let answered = match self.exchange(step).await {
            // The connection may have been closed since the last request: send the step again.
            Err(_) => self.exchange(step).await,
            answered => answered,
        };
        let Ok(FullResponse { status, headers, body, .. }) = answered else {
            self.connection = None;
            return json!({"error": "the connection broke"});
        };
        let body = read(&headers, &body);
        self.player.store_variables(step, &headers, &body);
        let mut answer = json!({"status": status.as_u16()});
        player::show(&mut answer, step, &headers);
        if step.compare == Compare::Body {
            let mut body = normalization::body(body, step, &self.names);
            words::replace(&mut body, step.body.as_ref(), name);
            answer["body"] = body;
        }
        answer
    }

    async fn exchange(&mut self, step: &Step) -> Result<FullResponse, HttpError> {
        let request = self.player.request(step)?;
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.player.client(step).connect().await?,
        };
        let answer = collect(connection.send(request).await?).await?;
        self.connection = Some(connection);
        Ok(answer)
    }
}

/// Decodes a body that is JSON or protobuf, or has a line of JSON for each event of a watch.
fn read(headers: &HeaderMap, body: &[u8]) -> Value {
    let media_type = headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    if media_type.contains("protobuf") && !body.is_empty() {
        return wire::read(body);
    }
    let lines: Option<Vec<Value>> = body
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).ok())
        .collect();
    match lines {
        Some(lines) if lines.len() > 1 => Value::Array(lines),
        _ => player::json_or_text(body),
    }
}
