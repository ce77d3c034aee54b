//! The ledger as a look reads it: what was entered since the look before.
//!
//! Only carries: the rows are those of `database::delivery_ledger::Mirror`. Promise: all of them
//! are read again once an hour and whenever somebody asks for a look.

use std::time::{Duration, Instant};

use database::{Client, delivery_ledger::Mirror};

use crate::{core::reader::WHOLE_EVERY_US, error::SweepError};

/// The rows of the ledger, and since when changes alone are read.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    mirror: Mirror,
    whole_at: Option<Instant>,
}

impl Entries {
    /// What has passed each stage now, all of it of one snapshot.
    pub(crate) async fn read(&mut self, client: &Client) -> Result<&Mirror, SweepError> {
        let is_due = self
            .whole_at
            .is_none_or(|at| at.elapsed() >= Duration::from_micros(WHOLE_EVERY_US));
        if is_due {
            *self = Self::default();
        }
        self.mirror.refresh(client).await?;
        self.whole_at.get_or_insert_with(Instant::now);
        Ok(&self.mirror)
    }
}
