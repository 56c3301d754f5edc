//! Why a setting cannot be used.

/// A setting that cannot be used; printed as one line, exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{setting}: {message}")]
pub(crate) struct SettingError {
    setting: String,
    message: String,
    is_unknown: bool,
}

impl SettingError {
    /// The value of a setting is wrong.
    pub(crate) fn new(setting: &str, message: impl std::fmt::Display) -> Self {
        Self { setting: setting.to_owned(), message: message.to_string(), is_unknown: false }
    }

    /// No server has such a setting.
    pub(crate) fn unknown(setting: &str, message: impl std::fmt::Display) -> Self {
        Self { is_unknown: true, ..Self::new(setting, message) }
    }

    /// Whether somebody else may have such a setting.
    pub(crate) fn is_unknown(&self) -> bool {
        self.is_unknown
    }
}
