//! Why a setting cannot be used.

/// A setting that cannot be used; printed as one line, exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{setting}: {message}")]
pub(crate) struct SettingError {
    setting: String,
    message: String,
}

impl SettingError {
    pub(crate) fn new(setting: &str, message: impl std::fmt::Display) -> Self {
        Self { setting: setting.to_owned(), message: message.to_string() }
    }
}
