//! Merges and serves discovery and OpenAPI.
