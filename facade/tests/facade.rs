//! Tests of the facade through its listener: HTTPS on port 0, a scripted control service behind the generated traits, and
//! a TLS backend.

#[cfg(test)]
mod facade {
    pub mod backend;
    pub mod client;
    pub mod control;
    mod cut;
    mod fail_static;
    mod local;
    mod newer;
    mod policy;
    mod proxied;
    pub mod rig;
    mod serving;
    mod several;
    mod shutdown;
    mod silent;
    mod stalled;
}
