//! Revisions and watch: the committed log, its cache and its SQL.
