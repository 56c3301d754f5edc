//! Owns HTTP and holds no truth: the handler chain, the director, local and remote APIs.
