//! What a comparison found, for people and as JSON.

use std::fmt;

use events::moment::rfc3339;
use serde::Serialize;

use super::{
    difference::{Differences, Kind, Place},
    range::Range,
    repair,
    walk::Looked,
};

/// The outcome.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    range: Range,
    /// Whether all timelines were looked at.
    full: bool,
    looked: Looked,
    /// A kind each, in the order of the way a post takes.
    pub(super) differences: Vec<Found>,
}

/// What was found of one kind.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    kind: Kind,
    meaning: &'static str,
    count: u64,
    /// The first few.
    examples: Vec<Place>,
    /// How many were repaired by this run.
    repaired: u64,
    /// What repairs them, step by step.
    repair: Vec<String>,
}

impl Report {
    /// `again` is the command that finds all of it again.
    pub(super) fn new(
        range: Range,
        full: bool,
        looked: Looked,
        differences: &Differences,
        keyspace: &str,
        again: &str,
    ) -> Self {
        let found = differences.iter().map(|(kind, tally)| Found {
            kind,
            meaning: kind.meaning(),
            count: tally.count,
            examples: tally.examples.clone(),
            repaired: tally.repaired,
            repair: repair::steps(kind, tally, keyspace, again),
        });
        Self {
            range,
            full,
            looked,
            differences: found.collect(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clipped = if self.range.clipped {
            ", the begin of the oldest outbox day"
        } else {
            ""
        };
        writeln!(f, "since     {}{clipped}", rfc3339(self.range.since_us))?;
        writeln!(f, "until     {}", rfc3339(self.range.until_us))?;
        let looked = &self.looked;
        writeln!(
            f,
            "compared  {} posts, {} outbox rows, and the ledger",
            looked.posts, looked.events
        )?;
        let extent = if self.full { "all" } else { "a sample" };
        writeln!(
            f,
            "timelines {extent}: {} delivered posts with {} followers; {} rows of {} accounts",
            looked.delivered_posts, looked.followers, looked.rows, looked.accounts
        )?;
        for found in &self.differences {
            found.fmt(f)?;
        }
        if self.differences.is_empty() {
            writeln!(f, "nothing differs")?;
        }
        Ok(())
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{}  {} {}", self.kind.word(), self.count, self.meaning)?;
        for place in &self.examples {
            if *place != Place::default() {
                writeln!(f, "    {place}")?;
            }
        }
        if self.count > self.examples.len() as u64 {
            writeln!(f, "    …")?;
        }
        if self.repaired > 0 {
            writeln!(f, "  repaired by this run: {}", self.repaired)?;
        }
        writeln!(f, "  repair:")?;
        for step in &self.repair {
            writeln!(f, "    {step}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some(event) = self.event {
            parts.push(match self.last_event {
                Some(last) => format!("events {event} to {last}"),
                None => format!("event {event}"),
            });
        }
        if let Some(post) = self.post {
            parts.push(format!("post {post}"));
        }
        if let Some(owner) = self.owner {
            parts.push(format!("timeline of {owner}"));
        }
        if let Some(note) = &self.note {
            parts.push(note.clone());
        }
        f.write_str(&parts.join(", "))
    }
}
