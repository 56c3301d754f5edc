//! Behaviour, through the doors that users use.
