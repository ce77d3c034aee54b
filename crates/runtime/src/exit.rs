//! Exit codes, after `sysexits.h`, and the way from an error to one.

use std::process::ExitCode;

use crate::report::chain;

/// Why a process ends when nobody asked it to.
#[derive(Debug, thiserror::Error)]
pub enum Exit {
    /// The configuration is wrong; starting again without a change will not help. Code 64.
    #[error("configuration")]
    Config(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A dependency stayed away for longer than the budget. Code 69.
    #[error("dependency gone")]
    Dependency(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A bug. Code 70.
    #[error("bug")]
    Bug(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Exit {
    /// A configuration fault.
    pub fn config(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Config(error.into())
    }

    /// A dependency that stayed away.
    pub fn dependency(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Dependency(error.into())
    }

    /// A bug.
    pub fn bug(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Bug(error.into())
    }

    /// The process's exit code.
    pub const fn code(&self) -> u8 {
        match self {
            Self::Config(_) => 64,
            Self::Dependency(_) => 69,
            Self::Bug(_) => 70,
        }
    }
}

/// Turns the outcome of a service into its exit code and tells why, once, on standard error.
pub fn finish(service: &str, outcome: Result<(), Exit>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(exit) => {
            eprintln!("{service}: {}", chain(&exit));
            ExitCode::from(exit.code())
        }
    }
}
