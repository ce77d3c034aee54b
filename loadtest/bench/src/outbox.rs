//! Fills an outbox as posts would, with the gaps that rollbacks leave.
//!
//! One insert through the root for many rows: filling is not what is measured. Days follow each
//! other as they do in life, the newest row is of now.

use std::collections::BTreeSet;

use events::{EventId, Micros};
use fastrand::Rng;
use tokio_postgres::Client;

/// One id in so many was drawn by a transaction that rolled back.
pub(crate) const GAP_EVERY: i64 = 1_000;
/// The rows are of so many microseconds before now.
const SPAN_US: i64 = 6 * 24 * Micros::HOUR + 12 * Micros::HOUR;
/// Rows of one statement.
const CHUNK: i64 = 100_000;

/// Post ids look like those that `tideline.next_id()` draws.
pub(crate) const FIRST_POST: i64 = 252_000_000_000_000_000;
pub(crate) const AUTHORS: i64 = 1_000;

/// Rows of posts `low..high`, of the post and author that belong to each id. What travels of one
/// row, payload and trace context, is about 150 bytes.
pub(crate) const INSERT: &str = r#"insert into tideline.outbox
        (id, aggregatetype, aggregateid, partition_key, type, payload, traceparent, created_at)
    overriding system value
    select id, 'post', post, author, 'tideline.post.created.v1',
        format('{"post_id":"%s","author_id":"%s","post_us":%s}', post, author, us)::json,
        '00-' || md5(post) || '-' || substr(md5(author), 1, 16) || '-01',
        tideline.at_micros(us)
    from generate_series($1::bigint, $2::bigint - 1) as id,
        lateral (select (id + 252000000000000000)::text as post, (id % 1000)::text as author,
            $4::bigint + id * $5::bigint as us) as made
    where id <> all($3::bigint[])"#;

/// An outbox that is being filled.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// Ids in `1..high` are drawn.
    pub(crate) high: i64,
    gaps: BTreeSet<i64>,
    rng: Rng,
    first_us: i64,
    step_us: i64,
}

impl Outbox {
    /// Nothing yet; so many ids will be drawn until `now`.
    pub(crate) fn new(ids: i64, now: Micros) -> Self {
        Self {
            high: 1,
            gaps: BTreeSet::new(),
            rng: Rng::with_seed(1),
            first_us: now.0 - SPAN_US,
            step_us: SPAN_US / (ids + 1),
        }
    }

    /// Draws ids up to `high`; each makes a row unless it is a gap.
    pub(crate) async fn fill(&mut self, sql: &Client, high: i64) -> anyhow::Result<()> {
        // The fill may be lost in a crash, and then the bench is lost too.
        sql.batch_execute("set synchronous_commit = off").await?;
        while self.high < high {
            let end = high.min(self.high + CHUNK);
            let gaps = self.draw_gaps(end);
            sql.execute(
                INSERT,
                &[&self.high, &end, &gaps, &self.first_us, &self.step_us],
            )
            .await?;
            self.gaps.extend(gaps);
            self.high = end;
        }
        Ok(())
    }

    /// Those of the ids up to `end` that will have no row.
    fn draw_gaps(&mut self, end: i64) -> Vec<i64> {
        (self.high..end)
            .filter(|_| self.rng.i64(0..GAP_EVERY) == 0)
            .collect()
    }

    /// The ids that have rows, of `low..high`.
    pub(crate) fn ids(&self, low: i64, high: i64) -> Vec<EventId> {
        (low..high)
            .filter(|id| !self.gaps.contains(id))
            .map(EventId)
            .collect()
    }

    /// How many rows there are.
    pub(crate) fn rows(&self) -> i64 {
        self.high - 1 - self.gap_count()
    }

    pub(crate) fn gap_count(&self) -> i64 {
        i64::try_from(self.gaps.len()).unwrap_or(i64::MAX)
    }

    /// So many ids with rows, by chance, in order.
    pub(crate) fn some(&mut self, count: usize) -> Vec<EventId> {
        let mut chosen = BTreeSet::new();
        while chosen.len() < count {
            let id = self.rng.i64(1..self.high);
            if !self.gaps.contains(&id) {
                chosen.insert(EventId(id));
            }
        }
        chosen.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_nobodys_ids() {
        let mut outbox = Outbox::new(100, Micros(SPAN_US));
        outbox.high = 101;
        outbox.gaps = BTreeSet::from([3, 50]);
        assert_eq!((outbox.rows(), outbox.gap_count()), (98, 2));
        assert_eq!(outbox.ids(1, 5), [1, 2, 4].map(EventId));
        let chosen = outbox.some(98);
        assert_eq!(chosen.len(), 98);
        assert!(!chosen.contains(&EventId(3)));
        assert!(chosen.is_sorted());
    }

    #[test]
    fn one_id_in_so_many_is_a_gap() {
        let mut outbox = Outbox::new(1_000_000, Micros(SPAN_US));
        let gaps = outbox.draw_gaps(1_000_001).len();
        assert!((900..1_100).contains(&gaps), "{gaps}");
    }

    #[test]
    fn the_text_of_the_statement_agrees_with_the_constants() {
        assert!(INSERT.contains(&FIRST_POST.to_string()));
        assert!(INSERT.contains(&format!("% {AUTHORS}")));
    }
}
