//! One round for a person: look at every stage, send again what was lost, tell what was done.
//!
//! Owns the arguments. The rounds are the daemon's own: they wait for the same
//! positions, for at most the patience that was given.

use std::time::Duration;

use database::account::{self, Account};
use events::{Stage, id_ranges::IdRange};
use runtime::Shutdown;

use crate::{
    Parts,
    core::{Fate, Standing},
    error::SweepError,
    event_loop::StageLoop,
    requests::Asked,
    sink::redeliver::Verdict,
    source::missing::Scope,
    summary::{Planned, StageSummary, Summary, empty},
    when::When,
};

/// Waits at most so long for positions, by default.
const PATIENCE: Duration = Duration::from_secs(300);
/// Ids that a dry run lists; the counts are of all.
const LISTED: usize = 1_000;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The stages to look at.
    pub stages: Vec<Stage>,
    /// Only these ids.
    pub range: Option<IdRange>,
    /// Only events made then or later.
    pub since: Option<When>,
    /// Only events made before.
    pub until: Option<When>,
    /// Tell, and send nothing.
    pub dry_run: bool,
    /// How long to wait for positions.
    pub patience: Duration,
}

impl Command {
    /// From the texts of the options.
    ///
    /// # Errors
    /// [`SweepError::Argument`] names the option and what to give instead.
    pub fn new(
        stage: Option<&str>,
        range: Option<&str>,
        since: Option<&str>,
        until: Option<&str>,
    ) -> Result<Self, SweepError> {
        let stages = match stage {
            None => Stage::ALL.to_vec(),
            Some(name) => vec![Stage::from_name(name).ok_or_else(|| {
                let names = Stage::ALL.map(Stage::as_str).join(" or ");
                argument("--stage", name, format!("use {names}"))
            })?],
        };
        let when = |option, text: Option<&str>| {
            text.map(|text| text.parse().map_err(|fix| argument(option, text, fix)))
                .transpose()
        };
        Ok(Self {
            stages,
            range: range.map(ids).transpose()?,
            since: when("--since", since)?,
            until: when("--until", until)?,
            dry_run: false,
            patience: PATIENCE,
        })
    }
}

/// `5..9`, both included.
fn ids(text: &str) -> Result<IdRange, SweepError> {
    let fault = |fix: &str| argument("--range", text, fix.to_owned());
    let (low, last) = text
        .split_once("..")
        .ok_or_else(|| fault("use the first and the last outbox id, such as 1000..2000"))?;
    let number = |text: &str| text.trim().parse::<i64>().ok();
    let (Some(low), Some(last)) = (number(low), number(last)) else {
        return Err(fault(
            "use the first and the last outbox id, such as 1000..2000",
        ));
    };
    match last.checked_add(1) {
        Some(high) if low < high => Ok(IdRange { low, high }),
        _ => Err(fault("put the lower id first")),
    }
}

fn argument(option: &'static str, value: &str, fix: String) -> SweepError {
    SweepError::Argument {
        option,
        value: value.to_owned(),
        fix,
    }
}

/// Runs the command; the stages side by side.
pub(crate) async fn run(
    parts: &Parts,
    command: &Command,
    shutdown: &Shutdown,
) -> Result<Summary, SweepError> {
    let scope = scope(parts, command).await?;
    let mut rounds = Vec::new();
    for &stage in &command.stages {
        let stage_loop = parts.stage_loop(stage, scope)?;
        rounds.push(round(parts, stage_loop, command, shutdown));
    }
    let stages = futures::future::try_join_all(rounds).await?;
    Ok(Summary {
        dry_run: command.dry_run,
        stages,
    })
}

async fn scope(parts: &Parts, command: &Command) -> Result<Scope, SweepError> {
    let made = if command.since.is_some() || command.until.is_some() {
        let client = parts.places.pool.get().await?;
        let now = database::clock::now(&client).await?;
        let at = |when: Option<When>, other| when.map_or(other, |when| when.at(now));
        // Postgres's own ends of time are beyond what µs since 1970 can say; these are not.
        let ends = (events::Micros(0), now.plus(events::Micros::HOUR * 24 * 365));
        Some((at(command.since, ends.0), at(command.until, ends.1)))
    } else {
        None
    };
    Ok(Scope {
        within: command.range,
        made,
        dry: command.dry_run,
        ..parts.scope()
    })
}

async fn round(
    parts: &Parts,
    mut stage_loop: StageLoop,
    command: &Command,
    shutdown: &Shutdown,
) -> Result<StageSummary, SweepError> {
    let mut summary = if command.dry_run {
        dry(&mut stage_loop).await?
    } else {
        let done = stage_loop.run_once(command.patience, shutdown).await;
        let (tally, standing) = stage_loop.state();
        StageSummary {
            done,
            failing: tally
                .failing
                .as_ref()
                .map(|(step, text)| format!("{step}: {text}")),
            missing: tally.missing,
            redelivered: tally.redelivered,
            discarded: tally.discarded,
            left: tally.left,
            ..empty(stage_loop.stage, standing)
        }
    };
    match count(parts, stage_loop.stage).await {
        Ok(account) => summary.account = Some(account.into()),
        Err(error) => {
            tracing::warn!(error = %runtime::report::chain(&error), "account cannot be counted");
        }
    }
    Ok(summary)
}

async fn count(parts: &Parts, stage: Stage) -> Result<Account, SweepError> {
    let client = parts.places.pool.get().await?;
    Ok(account::of_stage(&client, stage).await?)
}

async fn dry(stage_loop: &mut StageLoop) -> Result<StageSummary, SweepError> {
    let look = stage_loop.looks.take(Asked::default()).await?;
    let (verdicts, busy) = stage_loop.redeliver.judge(&look).await?;
    let mut summary = StageSummary {
        done: verdicts.is_empty() && busy == 0,
        missing: verdicts.len() as u64 + busy,
        left: busy,
        truncated: look.truncated,
        ..empty(stage_loop.stage, Standing::Idle)
    };
    for verdict in &verdicts {
        let planned = plan(verdict);
        match verdict.fate {
            Fate::Redeliver { .. } => summary.redelivered += 1,
            Fate::Discard(_) => summary.discarded += 1,
            Fate::Leave(_) => summary.left += 1,
        }
        if summary.plan.len() < LISTED {
            summary.plan.push(planned);
        }
    }
    Ok(summary)
}

fn plan(verdict: &Verdict) -> Planned {
    let (action, why) = match verdict.fate {
        Fate::Redeliver { attempt, .. } => ("send", format!("attempt {attempt}")),
        Fate::Discard(reason) => ("discard", reason.as_str().to_owned()),
        Fate::Leave(why) => ("leave", why.to_string()),
    };
    Planned {
        event: verdict.row.event.0,
        event_type: verdict.row.type_name.clone(),
        created_at: verdict.row.created_at_text.clone(),
        action,
        why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let command = Command::new(Some("delivered"), Some("5..9"), Some("2h"), None);
        let command = command.expect("valid");
        assert_eq!(command.stages, [Stage::Delivered]);
        assert_eq!(command.range, Some(IdRange { low: 5, high: 10 }));
        assert!(command.since.is_some() && command.until.is_none());
        let all = Command::new(None, None, None, None).expect("valid");
        assert_eq!(all.stages, Stage::ALL);
    }

    #[test]
    fn bad_values_name_the_option_and_the_fix() {
        let cases = [
            (
                Command::new(Some("sent"), None, None, None),
                "--stage \"sent\": use published or delivered",
            ),
            (
                Command::new(None, Some("9..5"), None, None),
                "--range \"9..5\": put the lower id first",
            ),
            (
                Command::new(None, Some("5-9"), None, None),
                "--range \"5-9\": use the first and the last outbox id, such as 1000..2000",
            ),
            (
                Command::new(None, None, Some("soon"), None),
                "--since \"soon\": use a time such as 2026-11-29T18:00:00Z, or a span before now such as 2h",
            ),
        ];
        for (outcome, text) in cases {
            assert_eq!(outcome.expect_err(text).to_string(), text);
        }
    }
}
