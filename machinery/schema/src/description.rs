//! Descriptions as data: the written form of types, read into a [`TypeSet`](crate::TypeSet).
