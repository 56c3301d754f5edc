//! Errors of sealing and opening values.

/// Reason why a value cannot be sealed or opened, with upstream's messages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The value or its key is invalid. A retry fails as well.
    #[error("{text}")]
    Refused {
        text: String,
        /// gRPC code of the response of the key service, if it was called.
        code: Option<&'static str>,
    },
    /// The key service is unavailable. A retry may succeed.
    #[error("{text}")]
    Unavailable {
        text: String,
        /// gRPC code, if there was a response.
        code: Option<&'static str>,
    },
}

impl SealError {
    pub(crate) fn refused(text: impl Into<String>) -> Self {
        Self::Refused { text: text.into(), code: None }
    }

    /// Returns the gRPC code of the cause, as metrics name it.
    pub(crate) fn code(&self) -> &'static str {
        let (Self::Refused { code, .. } | Self::Unavailable { code, .. }) = self;
        code.unwrap_or("unknown-non-grpc")
    }

    /// Combines errors in upstream's format. The result is `Unavailable` if any error is; `None` if there are no errors.
    pub(crate) fn combine(mut errors: Vec<Self>) -> Option<Self> {
        if errors.len() <= 1 {
            return errors.pop();
        }
        let code = errors.iter().find_map(|error| match error {
            Self::Refused { code, .. } | Self::Unavailable { code, .. } => *code,
        });
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let text = format!("[{}]", texts.join(", "));
        Some(match errors.iter().any(|error| matches!(error, Self::Unavailable { .. })) {
            true => Self::Unavailable { text, code },
            false => Self::Refused { text, code },
        })
    }
}
