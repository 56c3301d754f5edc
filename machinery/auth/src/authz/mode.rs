//! `--authorization-mode`: which authorizers are asked, in which order.

use std::sync::Arc;

use super::{AlwaysAllow, AlwaysDeny, Authorizer, Facades, Masters, Rbac, Union};

/// One of the modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// By roles and bindings.
    Rbac,
    /// Everybody may do everything.
    AlwaysAllow,
    /// Nobody but `system:masters` may do anything.
    AlwaysDeny,
}

/// The authorizers of these modes behind those that no mode turns off.
#[must_use]
pub fn of_modes(modes: &[Mode], rbac: &Arc<Rbac>) -> Arc<dyn Authorizer> {
    let mut all: Vec<Arc<dyn Authorizer>> = vec![Arc::new(Masters), Arc::new(Facades)];
    all.extend(modes.iter().map(|mode| match mode {
        Mode::Rbac => Arc::clone(rbac) as Arc<dyn Authorizer>,
        Mode::AlwaysAllow => Arc::new(AlwaysAllow),
        Mode::AlwaysDeny => Arc::new(AlwaysDeny),
    }));
    Arc::new(Union::new(all))
}

#[cfg(test)]
mod tests {
    use portico_machinery::{Attributes, UserInfo};

    use super::*;

    #[test]
    fn the_first_mode_with_an_opinion_decides() {
        let (rbac, alice) = (Arc::new(Rbac::default()), UserInfo::new("alice", ["dev"]));
        let admin = UserInfo::new("admin", ["system:masters"]);
        for (modes, may, why) in [
            (&[Mode::Rbac][..], false, ""),
            (&[Mode::Rbac, Mode::AlwaysAllow], true, ""),
            (&[Mode::AlwaysDeny], false, "Everything is forbidden."),
            (&[], false, ""),
        ] {
            let authorizer = of_modes(modes, &rbac);
            let ask = |user: &UserInfo| authorizer.authorize(&Attributes::path(user.clone(), "get", "/x"));
            assert_eq!((ask(&alice).allowed(), ask(&admin).allowed()), (may, true), "{modes:?}");
            assert_eq!(ask(&alice).reason, why, "{modes:?}");
        }
    }
}
