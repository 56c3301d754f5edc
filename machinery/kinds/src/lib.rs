//! Kinds as data: the embedded descriptions of built-in kinds and their loader.
