//! Lines on standard output. A reader that has gone away (`./x up | head`) is
//! no reason to stop half-way, so faults of writing are passed over.

use std::io::{self, Write};

/// Prints one line, or several.
pub(crate) fn line(text: impl AsRef<str>) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{}", text.as_ref()).and_then(|()| out.flush());
}
