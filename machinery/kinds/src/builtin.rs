//! Embedded kinds, and their selection by release and `--runtime-config`.

use std::sync::{Arc, OnceLock};

use portico_machinery::expiration::ExpirationEvaluator;

use crate::emulation;
use crate::error::LoadError;
use crate::load;
use crate::registry::Kinds;
use crate::runtime_config::{RuntimeConfig, RuntimeConfigError};

impl Kinds {
    /// Returns the embedded kinds that are served by default. The result is cached.
    ///
    /// # Errors
    /// [`LoadError`] if the embedded data are inconsistent, which a test of this crate rules out.
    pub fn builtin() -> Result<Arc<Self>, LoadError> {
        static BUILTIN: OnceLock<Result<Arc<Kinds>, LoadError>> = OnceLock::new();
        BUILTIN.get_or_init(|| Self::all()?.retain(|info| !info.off_by_default)).clone()
    }

    /// Returns all embedded kinds, including those that are off by default. The result is cached.
    ///
    /// # Errors
    /// [`LoadError`] if the embedded data are inconsistent.
    pub fn all() -> Result<Arc<Self>, LoadError> {
        static ALL: OnceLock<Result<Arc<Kinds>, LoadError>> = OnceLock::new();
        ALL.get_or_init(|| load::all().map(Arc::new)).clone()
    }

    /// Returns the kinds that a release serves and that `--runtime-config` enables.
    ///
    /// # Errors
    /// [`LoadError`] if the embedded data are inconsistent.
    pub fn enabled(evaluator: &ExpirationEvaluator, config: &RuntimeConfig) -> Result<Arc<Self>, LoadError> {
        Self::all()?.filter_enabled(evaluator, config)
    }

    /// Checks that the emulated release has everything that the runtime config names.
    ///
    /// # Errors
    /// [`RuntimeConfigError::ResourceNotIntroduced`], [`RuntimeConfigError::VersionNotIntroduced`].
    pub fn check_introduced(
        evaluator: &ExpirationEvaluator,
        config: &RuntimeConfig,
    ) -> Result<(), RuntimeConfigError> {
        let all = Self::all()?;
        emulation::select_served(&all, evaluator, config).error.map_or(Ok(()), Err)
    }

    /// Returns those of these kinds that a release serves and that `--runtime-config` enables. A group version without any such
    /// kind is not served.
    ///
    /// # Errors
    /// [`LoadError`] if the embedded data are inconsistent.
    pub fn filter_enabled(
        self: &Arc<Self>,
        evaluator: &ExpirationEvaluator,
        config: &RuntimeConfig,
    ) -> Result<Arc<Self>, LoadError> {
        let served = emulation::select_served(self, evaluator, config).kinds;
        self.retain(|info| served.contains(&info.gvr()))
    }

    /// Hash of the data of the built-in kinds. It is part of the identifiers of documents that are generated from these data.
    #[must_use]
    pub fn fingerprint(&self) -> &'static str {
        static FINGERPRINT: OnceLock<String> = OnceLock::new();
        FINGERPRINT.get_or_init(load::fingerprint)
    }
}
