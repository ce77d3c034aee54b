//! `tidy`: rules of this repository that neither the compiler nor clippy knows.
//!
//! Each check is a function from sources to findings, so that its tests can
//! show it a bad input; only [`source`] reads files.

mod edges;
mod heads;
mod invariants;
mod layers;
mod manifest;
mod names;
mod purity;
mod size;
mod source;

use crate::failure::Failure;
use crate::repository;
use crate::screen;
use source::Source;

/// One thing a check has to say about one place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Path below the root, with a line where there is one.
    place: String,
    text: String,
    /// A warning is shown and does not fail the task.
    warning: bool,
}

impl Finding {
    fn fault(place: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            text: text.into(),
            warning: false,
        }
    }

    fn warning(place: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            text: text.into(),
            warning: true,
        }
    }
}

type Check = (&'static str, fn(&[Source]) -> Vec<Finding>);

const CHECKS: [Check; 7] = [
    ("file size", size::check),
    ("purity", purity::check),
    ("crate edges", edges::check),
    ("layers", layers::check),
    ("module heads", heads::check),
    ("module names", names::check),
    ("invariants", invariants::check),
];

/// Runs all checks over the repository and prints what they find.
pub(crate) fn tidy() -> Result<(), Failure> {
    let sources = source::read_all(&repository::root())
        .map_err(|e| Failure::new(format!("cannot read the sources: {e}")))?;
    let mut faults = 0;
    for (name, check) in CHECKS {
        for finding in check(&sources) {
            let kind = if finding.warning { "warning" } else { "fault" };
            screen::line(format!(
                "{kind}: {}: {} [{name}]",
                finding.place, finding.text
            ));
            faults += usize::from(!finding.warning);
        }
    }
    if faults > 0 {
        return Err(Failure::new(format!("tidy found {faults} faults")));
    }
    screen::line(format!("tidy: {} files, no fault", sources.len()));
    Ok(())
}
