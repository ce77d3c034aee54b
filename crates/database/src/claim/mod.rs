//! A claim: one sweeper's right to send the missing ids of one block again (D-10).
//!
//! ```text
//! begin ── lock of the block ── rows: fresh snapshot, what is still missing ── (send) ── commit
//!               └ held by another sweeper: none
//! ```
//!
//! Promise: while a claim lives, no other sweeper has one on its block, in any stage. What it
//! commits is seen by the next one's [`Claim::rows`]. A claim whose connection is lost, or that is
//! idle for a minute, ends, and the block is free again.

mod missing;

use deadpool_postgres::Transaction;
use events::{EventId, Micros, Stage};
use tokio_postgres::IsolationLevel;

use crate::{
    Client, Error,
    dead_letters::{self, DeadLetter},
    delivery_ledger, discarded, redelivery,
    statement::{self, column},
};

/// The key space of block locks: "swee". Keys of two numbers never meet keys of one.
const SPACE: i32 = 0x7377_6565;

/// The right to one block, until it is committed or dropped.
pub struct Claim<'a> {
    transaction: Transaction<'a>,
    block: i64,
}

/// A row that is still missing, and what decides about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRow {
    /// Its id.
    pub event: EventId,
    /// Column `aggregatetype`.
    pub aggregate: String,
    /// Column `aggregateid`: `ce_subject`.
    pub subject: String,
    /// `ce_type`.
    pub type_name: String,
    /// `created_at` as Postgres prints it, in UTC.
    pub created_at_text: String,
    /// The same moment.
    pub created_us: Micros,
    /// The record key.
    pub partition_key: String,
    /// The payload as it was written.
    pub payload: String,
    /// W3C trace context of the request.
    pub traceparent: Option<String>,
    /// Whether its post is there, also a deleted one; none: it is not about a post.
    pub post_exists: Option<bool>,
    /// How often the sweep has sent it again in this stage.
    pub attempts: u32,
    /// When it was last.
    pub last_us: Option<Micros>,
    /// It is finished by an open dead letter, of this stage or one before it.
    pub dead_letter_open: bool,
    /// It is finished by a discard, of this stage or one before it: why.
    pub discarded: Option<String>,
}

/// What was sent under a claim, and acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent<'a> {
    /// By a dispatcher, where nothing else sends: the ledger says it all.
    First(&'a [EventId]),
    /// By the sweep, although something else had or should have: each attempt is noted, so that the
    /// next one waits longer.
    Again(&'a [EventId]),
}

/// Claims a block. None: another sweeper has it.
///
/// # Errors
/// See [`Error::class`].
///
/// # Cancel safety
/// Safe: the claim ends with the transaction.
pub async fn begin(client: &mut Client, block: i64) -> Result<Option<Claim<'_>>, Error> {
    const LOCK: &str = "select pg_try_advisory_xact_lock($1, $2),
            set_config('idle_in_transaction_session_timeout', '60s', true)";
    // Read committed: each statement sees what was committed before it, so what another sweeper
    // did under the lock is seen by the next statement after it.
    let transaction = statement::bounded(
        "begin a claim",
        statement::LIMIT,
        client
            .build_transaction()
            .isolation_level(IsolationLevel::ReadCommitted)
            .start(),
    )
    .await?;
    // Blocks that are 2^31 apart share a key; that only makes one of them wait.
    let key = i32::from_ne_bytes((block as u32).to_ne_bytes());
    let row = statement::one(&transaction, "lock a block", LOCK, &[&SPACE, &key]).await?;
    let locked: bool = column(&row, 0)?;
    Ok(locked.then_some(Claim { transaction, block }))
}

impl Claim<'_> {
    /// The block.
    pub fn block(&self) -> i64 {
        self.block
    }

    /// Those of the ids that exist and that the stage still lacks now, in id order.
    ///
    /// # Errors
    /// See [`Error::class`]. The claim is of no more use then.
    pub async fn rows(&self, stage: Stage, ids: &[EventId]) -> Result<Vec<ClaimRow>, Error> {
        missing::rows(&self.transaction, stage, ids).await
    }

    /// Enters a dead letter, which counts when the claim is committed.
    ///
    /// # Errors
    /// See [`Error::class`]. The claim is of no more use then.
    pub async fn dead_letter(&self, letter: &DeadLetter) -> Result<(), Error> {
        dead_letters::enter(&self.transaction, letter).await
    }

    /// Notes what was sent, and what was given up, and ends the claim. Ids that were sent for stage
    /// `published` are entered as published, since the broker has them.
    ///
    /// # Errors
    /// [`Error::OtherEpoch`] when `epoch` is not the newest one, and then nothing is noted; else
    /// see [`Error::class`]. The claim has ended; what was sent may be sent once more.
    pub async fn commit(
        self,
        stage: Stage,
        sent: Sent<'_>,
        discarded: &[(EventId, &str)],
        epoch: i64,
    ) -> Result<(), Error> {
        let ids = match sent {
            Sent::First(ids) => ids,
            Sent::Again(ids) => {
                let numbers: Vec<i64> = ids.iter().map(|id| id.0).collect();
                redelivery::note(&self.transaction, stage, &numbers).await?;
                ids
            }
        };
        discarded::note(&self.transaction, stage, discarded).await?;
        match stage {
            Stage::Published => {
                delivery_ledger::enter(&self.transaction, stage, ids, epoch).await?;
            }
            // Fan-out says what is delivered.
            Stage::Delivered => {}
        }
        statement::commit(self.transaction).await
    }
}

impl std::fmt::Debug for Claim<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Claim")
            .field("block", &self.block)
            .finish_non_exhaustive()
    }
}
