//! The judge: compares what was promised with what the stores hold and what readers see.
//!
//! Owns the journal of a run, the audience rule of the promise, the comparison of *every* must and
//! must-not, and the names of what is wrong. Does not own load, faults or waiting: it looks once,
//! at rest, and trusts nothing that a service says about itself.
//!
//! ```text
//! load ──▶ journal ──┐
//! Postgres: posts ───┼──▶ verdict: lost, foreign, resurrected, duplicated, out of order
//! store: every row ──┤             each counted, the first of each named
//! API: full walks ───┘
//! ```
//!
//! Promise: whatever the order of operations allows two answers for is never called a fault, and
//! everything else is. Memory: about 8 bytes a row of the store and 16 bytes an edge.

pub mod audience;
mod compare;
pub mod journal;
pub mod journal_file;
pub mod postgres;
pub mod store;
pub mod verdict;
pub mod visible;
pub mod walk;

pub use audience::{Change, Claim};
pub use compare::{compare_order, compare_posts, compare_rows};
pub use journal::{EdgeRef, Journal, PostRef, Seq};
pub use journal_file::{JournalWriter, Op};
pub use store::Rows;
pub use verdict::{Example, Fault, Tally, Verdict};
pub use visible::compare_walk;
pub use walk::{Walk, Walker};

/// Looks at everything that is at rest: the posts in Postgres and every row of the store.
///
/// Posts of the journal whose outcome is unknown are looked up in Postgres first: a commit is a
/// promise, whether or not anybody was told about it. Walks through the API are added to the
/// verdict with [`compare_walk`].
///
/// # Errors
/// When Postgres or the store does not answer.
pub async fn judge_at_rest<S: timeline_store::TimelineStore>(
    journal: &mut Journal,
    pool: &database::Pool,
    store: &S,
) -> anyhow::Result<Verdict> {
    let posts = postgres::posts(pool, journal.first_above()).await?;
    journal.settle(&posts);
    postgres::add_base(journal, pool).await?;
    let rows = store::read(store).await?;
    let mut verdict = Verdict::default();
    compare_posts(journal, &posts, &mut verdict);
    compare_order(journal, &mut verdict);
    compare_rows(journal, &rows, &mut verdict);
    Ok(verdict)
}
