//! What docs/PERFORMANCE.md reports.
