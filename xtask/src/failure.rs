//! Why a task failed, as the text the developer reads.

use std::error::Error;
use std::fmt;
use std::process::ExitStatus;

/// The end of a task that did not work out: a text, and the exit code of `x`.
#[derive(Debug)]
pub(crate) struct Failure {
    text: String,
    code: u8,
}

impl Failure {
    /// A failure of the task itself.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            code: 1,
        }
    }

    /// A wrong call.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            code: 2,
        }
    }

    /// A program that was run and failed; its exit code becomes that of `x`.
    pub(crate) fn program(what: &str, status: ExitStatus) -> Self {
        let code = status
            .code()
            .and_then(|code| u8::try_from(code).ok())
            .filter(|code| *code != 0);
        Self {
            text: format!("{what} failed ({status})"),
            code: code.unwrap_or(1),
        }
    }

    pub(crate) fn code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<sandbox::Error> for Failure {
    fn from(error: sandbox::Error) -> Self {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            text.push_str(&format!(": {cause}"));
            source = cause.source();
        }
        Self::new(text)
    }
}
