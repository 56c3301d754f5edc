//! A client of several facades with the behavior of clients of a load balancer: a connection goes to the next ready facade that
//! accepts it. A request that was sent is not sent again.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use portico_kit::lifecycle::Signal;
use serde_json::Value;
use tokio::task::yield_now;
use tokio::time::{MissedTickBehavior, interval};

use crate::http::{FullResponse, Http, HttpError, collect};
use crate::wait::WAIT_LIMIT;

/// Interval of readiness checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// A client of several facades.
pub struct BalancedClient {
    clients: Vec<Http>,
    ready: Vec<AtomicBool>,
    next: AtomicUsize,
}

impl BalancedClient {
    /// Creates a client of these facades.
    pub fn new(clients: Vec<Http>) -> Self {
        let ready = clients.iter().map(|_| AtomicBool::new(true)).collect();
        Self { clients, ready, next: AtomicUsize::new(0) }
    }

    /// Returns the clients of the single facades.
    pub fn clients(&self) -> &[Http] {
        &self.clients
    }

    /// Returns true if this facade was ready at the last check.
    pub fn is_ready(&self, index: usize) -> bool {
        self.ready[index].load(Ordering::Relaxed)
    }

    /// Checks readiness until `stop`.
    pub async fn check_readiness(&self, stop: &Signal) {
        let mut ticks = interval(CHECK_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !stop.is_signaled() {
            ticks.tick().await;
            for (client, ready) in self.clients.iter().zip(&self.ready) {
                let request = Request::get("/readyz").body(Full::default()).unwrap();
                let is_ready = client.fetch(request).await.is_ok_and(|answer| answer.status == 200);
                ready.store(is_ready, Ordering::Relaxed);
            }
        }
    }

    /// Sends a request once, over the first connection that can be established.
    pub async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, HttpError> {
        let deadline = Instant::now() + WAIT_LIMIT;
        loop {
            let next = self.next.fetch_add(1, Ordering::Relaxed) % self.clients.len();
            if !self.is_ready(next) && Instant::now() < deadline {
                yield_now().await;
                continue;
            }
            match self.clients[next].connect().await {
                Ok(mut connection) => return connection.send(request).await,
                Err(error) if Instant::now() > deadline => return Err(error),
                Err(_) => {}
            }
        }
    }

    /// Returns the complete response to a request without a body.
    pub async fn get(&self, path: &str) -> Result<FullResponse, HttpError> {
        self.fetch(Method::GET, path, "").await
    }

    /// Returns the complete response to a request with JSON.
    pub async fn write(&self, method: Method, path: &str, body: &Value) -> Result<FullResponse, HttpError> {
        self.fetch(method, path, &body.to_string()).await
    }

    async fn fetch(&self, method: Method, path: &str, body: &str) -> Result<FullResponse, HttpError> {
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        let request = request.body(Full::new(Bytes::copy_from_slice(body.as_bytes())))?;
        collect(self.send(request).await?).await
    }
}
