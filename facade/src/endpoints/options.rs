//! Optional endpoints of a facade, from its settings.

use crate::settings::{FacadeSettings, ZPages};

/// Endpoints in addition to those that every facade has.
#[derive(Clone, Debug, Default)]
pub struct EndpointOptions {
    /// `--profiling`
    pub profiling: bool,
    /// `--console`
    pub console: bool,
    /// `/flagz` and `/statusz`
    pub zpages: ZPages,
    /// `--test-faults`
    pub test_faults: bool,
}

impl EndpointOptions {
    /// Reads the options from the settings.
    #[must_use]
    pub fn from_settings(settings: &FacadeSettings) -> Self {
        Self {
            profiling: settings.profiling,
            console: settings.console,
            zpages: settings.zpages.clone(),
            test_faults: settings.test_faults,
        }
    }
}
