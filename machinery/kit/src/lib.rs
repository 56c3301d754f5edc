//! Process plumbing: tasks, drain, lifecycle, hooks, health, backoff, TLS and backend dialling.
