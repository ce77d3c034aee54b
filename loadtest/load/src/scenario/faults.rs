//! What is wrong with a scenario, all of it together, each with its key path.

use std::fmt;

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where it stands: `posts.arrivals.rate`.
    pub at: String,
    /// What is wrong, and the fix.
    pub text: String,
}

/// A scenario that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// The file, or the name of a built-in scenario.
    pub source: String,
    /// At least one.
    pub faults: Vec<Fault>,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "scenario {}", self.source)?;
        for fault in &self.faults {
            write!(f, "\n  {}: {}", fault.at, fault.text)?;
        }
        Ok(())
    }
}

impl std::error::Error for ScenarioError {}

/// Gathers faults.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<Fault>);

impl Faults {
    pub(super) fn add(&mut self, at: impl Into<String>, text: impl Into<String>) {
        self.0.push(Fault {
            at: at.into(),
            text: text.into(),
        });
    }

    /// Adds a fault unless `good`.
    pub(super) fn unless(&mut self, good: bool, at: &str, text: &str) {
        if !good {
            self.add(at, text);
        }
    }

    /// The value, or the fault that it is not there.
    pub(super) fn need<T: Default>(&mut self, value: Option<T>, at: &str, example: &str) -> T {
        // What was there and could not be read is told already.
        if value.is_none() && !self.0.iter().any(|fault| fault.at == at) {
            self.add(at, format!("is missing; for example {example}"));
        }
        value.unwrap_or_default()
    }

    pub(super) fn into_result<T>(self, source: &str, value: T) -> Result<T, ScenarioError> {
        if self.0.is_empty() {
            Ok(value)
        } else {
            Err(ScenarioError {
                source: source.to_owned(),
                faults: self.0,
            })
        }
    }
}
