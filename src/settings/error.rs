//! Error of an invalid setting.

/// An invalid setting; printed as one line, exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{setting}: {message}")]
pub(crate) struct SettingError {
    setting: String,
    message: String,
}

impl SettingError {
    /// A setting with an invalid value.
    pub(crate) fn new(setting: &str, message: impl std::fmt::Display) -> Self {
        Self { setting: setting.to_owned(), message: message.to_string() }
    }
}
