//! The proxy between real sockets: a plain HTTP front, the proxy, and backends that speak TLS.

mod backend;
mod circuit;
mod decisions;
mod front;
mod http2;
mod identity;
mod pool;
mod responses;
mod tls;
mod upgrades;
