//! The embedded kinds, and those of them that a release and a `--runtime-config` serve.

use std::sync::{Arc, OnceLock};

use portico_machinery::expiration::Evaluator;

use crate::emulation;
use crate::error::LoadError;
use crate::load;
use crate::registry::Kinds;
use crate::runtime_config::{RuntimeConfig, RuntimeConfigError};

impl Kinds {
    /// The embedded kinds that are served by default, shared from the first ask on.
    ///
    /// # Errors
    /// [`LoadError`] when the embedded data do not fit together, which a test of this crate rules out.
    pub fn builtin() -> Result<Arc<Self>, LoadError> {
        static BUILTIN: OnceLock<Result<Arc<Kinds>, LoadError>> = OnceLock::new();
        BUILTIN.get_or_init(|| Self::all()?.retain(|info| !info.off_by_default)).clone()
    }

    /// All embedded kinds, also those that are off by default; read at first ask and shared from then on.
    ///
    /// # Errors
    /// As [`Kinds::builtin`].
    pub fn all() -> Result<Arc<Self>, LoadError> {
        static ALL: OnceLock<Result<Arc<Kinds>, LoadError>> = OnceLock::new();
        ALL.get_or_init(|| load::all().map(Arc::new)).clone()
    }

    /// The kinds that a release serves and a `--runtime-config` asks for.
    ///
    /// # Errors
    /// As [`Kinds::builtin`].
    pub fn serving(evaluator: &Evaluator, wanted: &RuntimeConfig) -> Result<Arc<Self>, LoadError> {
        Self::all()?.of_release(evaluator, wanted)
    }

    /// Checks that what is asked for by name is there in the release that is emulated.
    ///
    /// # Errors
    /// [`RuntimeConfigError::ResourceToCome`], [`RuntimeConfigError::VersionToCome`].
    pub fn check_introduced(evaluator: &Evaluator, wanted: &RuntimeConfig) -> Result<(), RuntimeConfigError> {
        let all = Self::all()?;
        emulation::served(&all, evaluator, wanted).problem.map_or(Ok(()), Err)
    }

    /// Those of these kinds that a release serves and a `--runtime-config` asks for; a group version without any kind left is
    /// served no more.
    ///
    /// # Errors
    /// As [`Kinds::builtin`].
    pub fn of_release(
        self: &Arc<Self>,
        evaluator: &Evaluator,
        wanted: &RuntimeConfig,
    ) -> Result<Arc<Self>, LoadError> {
        let served = emulation::served(self, evaluator, wanted).kinds;
        self.retain(|info| served.contains(&info.gvr()))
    }

    /// Distinguishes the data that built-in kinds are described by from any others: part of the names of documents made of them.
    #[must_use]
    pub fn fingerprint(&self) -> &'static str {
        static FINGERPRINT: OnceLock<String> = OnceLock::new();
        FINGERPRINT.get_or_init(load::fingerprint)
    }
}
