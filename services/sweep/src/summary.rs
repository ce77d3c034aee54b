//! What one round did, for a person and as JSON.

use std::fmt::Write as _;

use database::account::Account;
use events::Stage;
use serde::Serialize;

use crate::{core::Standing, event_loop::words};

/// What one round did.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Nothing was sent.
    pub dry_run: bool,
    /// One for each stage.
    pub stages: Vec<StageSummary>,
}

/// What one round did in one stage.
#[derive(Clone, Debug, Serialize)]
pub struct StageSummary {
    /// The stage.
    pub stage: &'static str,
    /// What was missing at a look is dealt with. After a dry run: nothing is missing.
    pub done: bool,
    /// Where the round stands.
    pub standing: &'static str,
    /// The same for a person.
    pub words: &'static str,
    /// Why the last step failed, if it did.
    pub failing: Option<String>,
    /// Missing events, each look's counted anew.
    pub missing: u64,
    /// Sent again and acknowledged; in a dry run: that would be.
    pub redelivered: u64,
    /// Given up with a reason; in a dry run: that would be.
    pub discarded: u64,
    /// Left alone.
    pub left: u64,
    /// More is missing than one look of a dry run holds.
    pub truncated: bool,
    /// The exact account at the end (D-9); absent when Postgres could not count it in time.
    pub account: Option<AccountSummary>,
    /// What a dry run would do, for the first 1000 ids.
    pub plan: Vec<Planned>,
}

/// The account of a stage.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct AccountSummary {
    /// Rows of the types that the stage accounts for.
    pub accepted: u64,
    /// In the ledger.
    pub delivered: u64,
    /// Open dead letters.
    pub dead_lettered: u64,
    /// Given up with a reason.
    pub discarded: u64,
    /// None of these.
    pub unaccounted: u64,
}

/// What would be done with one event.
#[derive(Clone, Debug, Serialize)]
pub struct Planned {
    /// Its outbox id.
    pub event: i64,
    /// `ce_type`.
    pub event_type: String,
    /// `created_at` as Postgres prints it.
    pub created_at: String,
    /// `send`, `discard` or `leave`.
    pub action: &'static str,
    /// Why, or which attempt.
    pub why: String,
}

impl Summary {
    /// For a person, or as one line of JSON.
    pub fn text(&self, json: bool) -> String {
        if json {
            // Numbers, texts and lists: nothing in it can fail to be JSON.
            let line = serde_json::to_string(self).unwrap_or_default();
            return format!("{line}\n");
        }
        let mut text = String::new();
        for stage in &self.stages {
            // Writing into a String cannot fail.
            let _written = stage.write(&mut text, self.dry_run);
        }
        text
    }
}

impl StageSummary {
    fn write(&self, text: &mut String, dry_run: bool) -> std::fmt::Result {
        let Self {
            stage,
            missing,
            redelivered,
            discarded,
            left,
            ..
        } = self;
        if dry_run {
            writeln!(
                text,
                "{stage}: {missing} missing now; {redelivered} would be sent again, {discarded} discarded, {left} left alone"
            )?;
            if self.truncated {
                writeln!(text, "  more is missing than one look holds")?;
            }
            for each in &self.plan {
                let Planned {
                    event,
                    event_type,
                    created_at,
                    action,
                    why,
                } = each;
                writeln!(text, "  {event} {event_type} {created_at}: {action}, {why}")?;
            }
            if self.redelivered > 0 {
                writeln!(
                    text,
                    "  a run sends what is still missing once relay or groups have passed this look"
                )?;
            }
        } else {
            writeln!(
                text,
                "{stage}: {missing} missing, {redelivered} sent again, {discarded} discarded, {left} left alone"
            )?;
        }
        if !self.done && !dry_run {
            writeln!(text, "  not dealt with, {}: {}", self.standing, self.words)?;
        }
        if let Some(failing) = &self.failing {
            writeln!(text, "  failing: {failing}")?;
        }
        if let Some(account) = &self.account {
            writeln!(
                text,
                "  account: {} committed = {} in the ledger + {} dead-lettered + {} discarded + {} unaccounted for",
                account.accepted,
                account.delivered,
                account.dead_lettered,
                account.discarded,
                account.unaccounted
            )?;
        }
        Ok(())
    }
}

impl From<Account> for AccountSummary {
    fn from(account: Account) -> Self {
        Self {
            accepted: account.accepted,
            delivered: account.delivered,
            dead_lettered: account.dead_lettered,
            discarded: account.discarded,
            unaccounted: account.unaccounted,
        }
    }
}

/// Nothing done yet.
pub(crate) fn empty(stage: Stage, standing: Standing) -> StageSummary {
    StageSummary {
        stage: stage.as_str(),
        done: false,
        standing: standing.as_str(),
        words: words(standing),
        failing: None,
        missing: 0,
        redelivered: 0,
        discarded: 0,
        left: 0,
        truncated: false,
        account: None,
        plan: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_reads_as_words_and_as_json() {
        let mut stage = empty(Stage::Published, Standing::Blocked);
        stage.missing = 3;
        stage.account = Some(AccountSummary {
            accepted: 7,
            delivered: 4,
            dead_lettered: 0,
            discarded: 0,
            unaccounted: 3,
        });
        let summary = Summary {
            dry_run: false,
            stages: vec![stage],
        };
        let words = summary.text(false);
        assert!(words.contains("published: 3 missing"), "{words}");
        assert!(words.contains("not dealt with, blocked"), "{words}");
        assert!(words.contains("7 committed = 4 in the ledger"), "{words}");
        let json: serde_json::Value =
            serde_json::from_str(&summary.text(true)).expect("one JSON value");
        assert_eq!(json["stages"][0]["account"]["unaccounted"], 3);
    }
}
