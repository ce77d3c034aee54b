//! The account of a stage (D-9): what became of every row that it accounts for.

use events::{IdRange, Stage};

use crate::{
    Client, Error, stages,
    statement::{self, column},
};

/// Ids that one statement judges, so that no statement takes long.
const WINDOW: i64 = 2_000_000;

/// What became of the outbox rows of one stage. Each row counts once, under the first that holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Rows in the outbox of the types that the stage accounts for.
    pub accepted: u64,
    /// In the ledger of the stage.
    pub delivered: u64,
    /// Not in the ledger, and an open dead letter.
    pub dead_lettered: u64,
    /// Neither, and discarded with a reason.
    pub discarded: u64,
    /// None of these.
    pub unaccounted: u64,
}

impl Account {
    /// Whether D-9 holds: nothing is unaccounted for.
    pub fn is_balanced(&self) -> bool {
        self.unaccounted == 0
    }

    fn add(&mut self, other: Self) {
        self.accepted += other.accepted;
        self.delivered += other.delivered;
        self.dead_lettered += other.dead_lettered;
        self.discarded += other.discarded;
        self.unaccounted += other.unaccounted;
    }
}

/// The account of a stage, by exact count over the rows there are: each is judged in one snapshot,
/// and rows that come meanwhile are counted or not. Dead letters and discards of an earlier stage
/// finish this one too.
///
/// # Errors
/// See [`Error::class`].
pub async fn of_stage(client: &Client, stage: Stage) -> Result<Account, Error> {
    const NEXT: &str = "select min(id) from tideline.outbox where id >= $1";
    let mut account = Account::default();
    let mut low = i64::MIN;
    loop {
        let row = statement::one(client, "look for the next rows", NEXT, &[&low]).await?;
        let Some(next) = column(&row, 0)? else {
            return Ok(account);
        };
        let window = IdRange {
            low: next,
            high: next.saturating_add(WINDOW),
        };
        account.add(of_window(client, stage, window).await?);
        low = window.high;
    }
}

async fn of_window(client: &Client, stage: Stage, window: IdRange) -> Result<Account, Error> {
    // Sub-selects rather than joins: each set is made once. Grouped rather than filtered: each row
    // is judged once.
    const SQL: &str = "with passed as materialized (
            select coalesce(range_agg(r), '{}') as ids
            from tideline.delivery_ledger l, unnest(l.ids) as r
            where l.stage = any($1) and l.block <= $7 and l.last_block >= $6
              and l.ids && int8multirange(int8range($4, $5))
        ), letters as materialized (
            select coalesce(range_agg(int8range(event_id, event_id, '[]')), '{}') as ids
            from tideline.dead_letters
            where stage = any($2) and state = 'open' and event_id >= $4 and event_id < $5
        ), discards as materialized (
            select coalesce(range_agg(int8range(event_id, event_id, '[]')), '{}') as ids
            from tideline.discarded where stage = any($2) and event_id >= $4 and event_id < $5
        )
        select case when (select ids from passed) @> o.id then 1
                    when (select ids from letters) @> o.id then 2
                    when (select ids from discards) @> o.id then 3 else 0 end as fate, count(*)
        from tideline.outbox o where o.type = any($3) and o.id >= $4 and o.id < $5
        group by fate";
    let (first, last) = window.block_span();
    let params: statement::Params<'_> = &[
        &stages::implying(stage),
        &stages::finishing(stage),
        &stages::types(stage),
        &window.low,
        &window.high,
        &first,
        &last,
    ];
    let rows = statement::all(client, "read the account of a stage", SQL, params).await?;
    let mut account = Account::default();
    for row in &rows {
        let count = column::<i64>(row, 1)?.unsigned_abs();
        account.accepted += count;
        match column::<i32>(row, 0)? {
            1 => account.delivered = count,
            2 => account.dead_lettered = count,
            3 => account.discarded = count,
            _ => account.unaccounted = count,
        }
    }
    Ok(account)
}
