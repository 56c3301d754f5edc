//! What is served here: discovery and OpenAPI fragments, local and fetched from backends.
