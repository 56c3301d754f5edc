//! Why a value cannot be sealed or opened.

/// Why a value cannot be sealed or opened; the texts are upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The value, or what it is sealed with, is not what it must be: asking again changes nothing.
    #[error("{text}")]
    Refused {
        /// Why.
        text: String,
        /// The gRPC code of the key service's answer, if it was asked.
        code: Option<&'static str>,
    },
    /// The key service does not answer: it may later.
    #[error("{text}")]
    Unavailable {
        /// Why.
        text: String,
        /// The gRPC code, if there was one.
        code: Option<&'static str>,
    },
}

impl SealError {
    pub(crate) fn refused(text: impl Into<String>) -> Self {
        Self::Refused { text: text.into(), code: None }
    }

    /// The gRPC code behind it, as metrics name it.
    pub(crate) fn code(&self) -> &'static str {
        let (Self::Refused { code, .. } | Self::Unavailable { code, .. }) = self;
        code.unwrap_or("unknown-non-grpc")
    }

    /// Several as one, in upstream's form; what may pass later makes the whole so. None of none.
    pub(crate) fn all(mut errors: Vec<Self>) -> Option<Self> {
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
