//! The five classes of failure that every service sorts its errors into.
//!
//! Owns the vocabulary only; each service maps its own errors with one exhaustive match.

/// What a failure means for the work that met it (D-12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// A dependency is down: pause and try again for as long as it takes.
    Outage,
    /// This record is permanently wrong: dead letter, and go on.
    Record,
    /// The outcome is unknown: do it again, which is harmless, without limit.
    Unsure,
    /// The configuration is wrong: stop with exit code 64.
    Config,
    /// The program is wrong: stop with exit code 70.
    Bug,
}

impl Class {
    /// The word used as label value and in log fields.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Outage => "outage",
            Self::Record => "record",
            Self::Unsure => "unsure",
            Self::Config => "config",
            Self::Bug => "bug",
        }
    }

    /// Whether the same work is to be tried again in place.
    pub const fn is_retried(self) -> bool {
        matches!(self, Self::Outage | Self::Unsure)
    }
}
