//! The embedded kinds, and those of them that a release and a `--runtime-config` serve.

use std::sync::{Arc, OnceLock};

use portico_machinery::expiration::Evaluator;

use crate::error::LoadError;
use crate::load;
use crate::registry::Kinds;
use crate::runtime_config::RuntimeConfig;

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
        Self::all()?.retain(|info| wanted.serves(info))?.unexpired(evaluator)
    }

    /// Tells the data that built-in kinds are described by from any others: part of the names of documents made of them.
    #[must_use]
    pub fn fingerprint(&self) -> &'static str {
        static FINGERPRINT: OnceLock<String> = OnceLock::new();
        FINGERPRINT.get_or_init(load::fingerprint)
    }
}
