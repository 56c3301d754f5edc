//! Error of an invalid setting.

/// Error of an invalid setting. It is printed as one line and an optional hint, and the exit code is 2.
#[derive(Debug, thiserror::Error)]
#[error("{setting}: {message}")]
pub(crate) struct SettingError {
    setting: String,
    message: String,
    hint: Option<String>,
}

impl SettingError {
    /// Creates an error with the name of the setting and the reason why its value is invalid.
    pub(crate) fn new(setting: &str, message: impl std::fmt::Display) -> Self {
        Self { setting: setting.to_owned(), message: message.to_string(), hint: None }
    }

    /// Adds the hint to print below the message.
    pub(crate) fn with_hint(self, hint: Option<String>) -> Self {
        Self { hint, ..self }
    }

    /// Returns the hint to print below the message, if the error has one.
    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}
