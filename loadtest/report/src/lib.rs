//! What a run measured, as a page with plots, as JSON and as HDR logs.
//!
//! Owns the plain data of a load or fault run, the recorders that collect it in bounded memory,
//! and everything that is written about it. Does not own measuring, judging or thresholds: what
//! is good is the caller's word, and only the order of the words (broken before invalid before
//! missed) is ours.
//!
//! ```text
//! Recorder, Counter, Series ──▶ Run ──▶ index.html   for people, works without a network
//!                                 ├──▶ run.json      for programs, read again by `read`
//!                                 ├──▶ *.hdr         for every tool that knows HdrHistogram
//!                                 └──▶ text          for the terminal
//! ```
//!
//! The plots are written by our own small SVG writer. `plotters` writes colours and fonts into
//! every shape; a page that follows the reader's light or dark setting, prints, and shows a value
//! under the pointer without a script needs classes and `<title>`s instead, and that is less code
//! than a backend for it.
//!
//! Promise: every text that comes from outside is escaped, nothing is loaded from elsewhere, and a
//! percentile on the page is the one of the histogram in the log beside it.

mod log;
mod machine;
mod markup;
mod moment;
mod page;
mod plot;
mod quantity;
mod recorder;
mod run;
mod series;
mod text;
mod verdict;
mod write;

pub use machine::Machine;
pub use recorder::{Interval, Recorder};
pub use run::{
    Arrivals, Class, FORMAT, Fact, Judged, Latency, Mark, Phase, PhaseKind, Run, Target, Threshold,
};
pub use series::{Counter, Point, Series};
pub use text::text;
pub use verdict::Outcome;
pub use write::{Written, read, write};
