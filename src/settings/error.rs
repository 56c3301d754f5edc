//! Error of an invalid setting.

/// An invalid setting; printed as one line, exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{setting}: {message}")]
pub(crate) struct SettingError {
    setting: String,
    message: String,
    is_unknown: bool,
}

impl SettingError {
    /// A setting with an invalid value.
    pub(crate) fn new(setting: &str, message: impl std::fmt::Display) -> Self {
        Self { setting: setting.to_owned(), message: message.to_string(), is_unknown: false }
    }

    /// A setting that no server has.
    pub(crate) fn unknown(setting: &str, message: impl std::fmt::Display) -> Self {
        Self { is_unknown: true, ..Self::new(setting, message) }
    }

    /// True if no server has this setting; a client verb may have it.
    pub(crate) fn is_unknown(&self) -> bool {
        self.is_unknown
    }
}
