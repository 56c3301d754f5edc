//! The proxy between real sockets: a plain HTTP front, the proxy, and backends that speak TLS.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod backend;
mod circuit;
mod cut_requests;
mod cut_responses;
mod decisions;
mod egress;
mod front;
mod http2;
mod identity;
mod pool;
mod responses;
mod tls;
mod upgrades;
mod uploads;
