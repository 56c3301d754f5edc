//! The vocabulary of the Kubernetes API, without IO.
