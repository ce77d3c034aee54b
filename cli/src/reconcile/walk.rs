//! The one pass over everything, and what it carries along.

use database::{Client, delivery_ledger};
use events::{EventId, Micros, PostId, Stage, UserId, moment::rfc3339};
use serde::Serialize;
use timeline_store::CqlTimelines;

use crate::{config::Config, error::Error, servers};

use super::{
    Arguments,
    difference::{Differences, Kind},
    ledger, letters, outbox, posts,
    range::Range,
    report::Report,
    strangers, timelines,
};

/// Rows of Postgres read at once.
pub(super) const PAGE: i64 = 1_000;

/// Ids that the ledger is made to forget in one transaction.
const FORGET: usize = 10_000;

/// How much of the timelines is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// So many posts and so many accounts.
    Sample(usize),
    /// All of them.
    Full,
}

/// How much was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Looked {
    /// Posts of the range.
    pub(super) posts: u64,
    /// Outbox rows of the range.
    pub(super) events: u64,
    /// Posts whose timelines were looked at.
    pub(super) delivered_posts: u64,
    /// Followers of these posts.
    pub(super) followers: u64,
    /// Accounts whose timelines were read; all of them with `--full`.
    pub(super) accounts: u64,
    /// Rows of timelines that were asked to be explained.
    pub(super) rows: u64,
}

/// A delivered event whose timelines can be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delivered {
    /// The event: of the creation, or of the deletion for a deleted post.
    pub(super) event: EventId,
    /// Its post.
    pub(super) post: PostId,
    /// Who wrote it.
    pub(super) author: UserId,
    /// When.
    pub(super) post_us: Micros,
    /// Whether it is deleted.
    pub(super) deleted: bool,
}

/// The pass.
pub(super) struct Walk {
    pub(super) client: Client,
    pub(super) store: CqlTimelines,
    pub(super) range: Range,
    pub(super) retention_us: i64,
    pub(super) extent: Extent,
    pub(super) repair: bool,
    pub(super) found: Differences,
    pub(super) looked: Looked,
    /// A sample of the delivered events, each with the same chance.
    sample: Vec<Delivered>,
    /// Delivered events that had their chance.
    offered: usize,
    keyspace: String,
}

impl Walk {
    /// Connects and reads the range.
    pub(super) async fn begin(
        config: &Config,
        arguments: &Arguments,
        client: Client,
    ) -> Result<Self, Error> {
        let range = Range::of(&client, arguments.since, arguments.until).await?;
        let sample = usize::try_from(arguments.sample).unwrap_or(usize::MAX);
        Ok(Self {
            store: servers::store(config).await?,
            client,
            range,
            retention_us: config.timelines.retention.micros(),
            extent: if arguments.full {
                Extent::Full
            } else {
                Extent::Sample(sample)
            },
            repair: arguments.repair,
            found: Differences::default(),
            looked: Looked::default(),
            sample: Vec::new(),
            offered: 0,
            keyspace: config.cql.keyspace.clone(),
        })
    }

    /// Compares everything with everything.
    pub(super) async fn compare(mut self) -> Result<Report, Error> {
        posts::walk(&mut self).await?;
        let ids = outbox::walk(&mut self).await?;
        for delivered in std::mem::take(&mut self.sample) {
            timelines::look(&mut self, delivered).await?;
        }
        if let Some(ids) = ids {
            ledger::walk(&mut self, ids).await?;
        }
        letters::walk(&mut self).await?;
        strangers::walk(&mut self).await?;
        let again = format!(
            "tideline reconcile --since {} --until {} --full",
            rfc3339(self.range.since_us),
            rfc3339(self.range.until_us)
        );
        let full = self.extent == Extent::Full;
        Ok(Report::new(
            self.range,
            full,
            self.looked,
            &self.found,
            &self.keyspace,
            &again,
        ))
    }

    /// Takes a delivered event: looks at its timelines now, or gives it its chance in the sample.
    pub(super) async fn offer(&mut self, delivered: Delivered) -> Result<(), Error> {
        let Extent::Sample(size) = self.extent else {
            return timelines::look(self, delivered).await;
        };
        self.offered += 1;
        if self.sample.len() < size {
            self.sample.push(delivered);
        } else if let Some(place) = self.sample.get_mut(fastrand::usize(..self.offered)) {
            *place = delivered;
        }
        Ok(())
    }

    /// Makes the ledger forget ids, if repairs are asked for.
    pub(super) async fn forget(
        &mut self,
        kind: Kind,
        stages: &[Stage],
        ids: &[EventId],
    ) -> Result<(), Error> {
        if !self.repair {
            return Ok(());
        }
        for ids in ids.chunks(FORGET) {
            for stage in stages {
                let _were_in_it = delivery_ledger::forget(&mut self.client, *stage, ids).await?;
            }
            self.found.repaired(kind, ids.len() as u64);
        }
        Ok(())
    }
}
