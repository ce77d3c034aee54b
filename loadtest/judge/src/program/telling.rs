//! The verdict in words, as JSON, and as the one line for machines.

use std::{
    io::{self, Write},
    time::Duration,
};

use judge::{Example, Fault, Tally};
use serde_json::{Value, json};

use super::{Journal, Verdict};

/// A verdict and what belongs to it.
pub(super) struct Told<'a> {
    pub(super) verdict: &'a Verdict,
    pub(super) journal: &'a Journal,
    pub(super) notes: &'a [String],
    pub(super) passes: bool,
    /// How long the look at Postgres and at every row took; walks are apart.
    pub(super) took: Duration,
}

impl Told<'_> {
    /// Rows of the store that were read and compared in a minute at this speed.
    fn rows_per_minute(&self) -> f64 {
        self.verdict.rows_read as f64 * 60.0 / self.took.as_secs_f64().max(1e-6)
    }

    /// Posts that nobody was told about and that Postgres does not have.
    fn indeterminate(&self) -> usize {
        let posts = self.journal.posts().iter();
        posts.filter(|post| post.id.is_none()).count()
    }
}

/// Words, and at the end the line for machines.
pub(super) fn words(told: &Told<'_>, to: &mut impl Write) -> io::Result<()> {
    let verdict = told.verdict;
    write!(to, "{verdict}")?;
    for note in told.notes {
        writeln!(to, "note: {note}")?;
    }
    writeln!(
        to,
        "{} posts, {} of unknown outcome that were not made; {} of {} rows that must be there are \
         there, {} rows looked at in {:.1} s; {} readers walked through {} posts",
        verdict.posts,
        told.indeterminate(),
        verdict.rows_found,
        verdict.rows_expected,
        verdict.rows_read,
        told.took.as_secs_f64(),
        verdict.walks,
        verdict.walked_posts,
    )?;
    let outcome = match (verdict.holds(), told.passes) {
        (true, _) => "the promise held",
        (false, true) => "the promise is broken, as far as is put up with",
        (false, false) => "the promise is BROKEN",
    };
    writeln!(to, "{outcome}")?;
    let count = |fault| verdict.tally(fault).count;
    writeln!(
        to,
        "JUDGE posts={} rows={} lost={} duplicated={} foreign={} resurrected={} disorder={} \
         rows_per_minute={:.0}",
        verdict.posts,
        verdict.rows_stored,
        count(Fault::Lost),
        count(Fault::Duplicated),
        count(Fault::Foreign),
        count(Fault::Resurrected),
        count(Fault::Disorder),
        told.rows_per_minute(),
    )?;
    to.flush()
}

/// One object on one line.
pub(super) fn json(told: &Told<'_>, to: &mut impl Write) -> io::Result<()> {
    let verdict = told.verdict;
    let value = json!({
        "holds": verdict.holds(),
        "passes": told.passes,
        "posts": verdict.posts,
        "indeterminate": told.indeterminate(),
        "rows_expected": verdict.rows_expected,
        "rows_found": verdict.rows_found,
        "rows": verdict.rows_stored,
        "rows_read": verdict.rows_read,
        "walks": verdict.walks,
        "walked_posts": verdict.walked_posts,
        "lost": tally(&verdict.lost),
        "duplicated": tally(&verdict.duplicated),
        "foreign": tally(&verdict.foreign),
        "resurrected": tally(&verdict.resurrected),
        "disorder": tally(&verdict.disorder),
        "seconds": told.took.as_secs_f64(),
        "rows_per_minute": told.rows_per_minute(),
        "notes": told.notes,
    });
    writeln!(to, "{value}")?;
    to.flush()
}

fn tally(tally: &Tally) -> Value {
    let examples: Vec<Value> = tally.examples.iter().map(example).collect();
    json!({"count": tally.count, "first": examples})
}

/// Ids are texts, as in the APIs: they are larger than what JSON readers keep exactly.
fn example(example: &Example) -> Value {
    json!({
        "owner": example.owner.map(|owner| owner.to_string()),
        "post": example.post.map(|post| post.to_string()),
        "author": example.author.map(|author| author.to_string()),
        "reason": example.reason,
    })
}
