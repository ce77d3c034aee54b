//! What the sweep would do with an event that is missing in a stage, and what it waits for.
//!
//! The rule for one id is the sweep's own (`sweep::core::fate`). What it waits for is read here as
//! it stands now; the sweep itself waits for the position of its own look.

use database::{Client, clock};
use events::{EventType, Hop, Stage, moment::rfc3339};
use kafka::{Admin, KafkaConfig};
use runtime::report::chain;
use sweep::{
    config::{Section, SweepMode},
    core::{Facts, Fate, Why, fate},
};

use crate::{config::Config, error::Error};

use super::postgres::{self, Found, Notes, Position};

/// One sentence about an event that is missing in `stage`.
///
/// # Errors
/// When Postgres does not answer; where Kafka does not, the sentence says so.
pub(super) async fn of(
    config: &Config,
    kafka: &KafkaConfig,
    client: &Client,
    stage: Stage,
    found: &Found,
    notes: &Notes,
) -> Result<String, Error> {
    let now = clock::now(client).await?;
    let facts = Facts {
        created_us: found.created_us.unwrap_or(now),
        post_exists: Some(found.post_exists),
        attempts: notes.attempts,
        last_us: notes.last_us,
        dead_letter_open: notes.has_open_letter(),
        discarded: notes.discarded.is_some(),
    };
    let act = match fate(&facts, now, now, config.sweep.horizon.micros()) {
        Fate::Leave(Why::NotDue { due_us }) => {
            return Ok(format!(
                "the sweep leaves it: its next attempt is due at {}",
                rfc3339(due_us)
            ));
        }
        Fate::Leave(why) => return Ok(format!("the sweep leaves it: {why}")),
        Fate::Discard(reason) => format!("discards it as {}", reason.as_str()),
        Fate::Redeliver { attempt, alarm } => {
            let alarm = if alarm { " and raises an alarm" } else { "" };
            format!("sends it again, attempt {attempt}{alarm}")
        }
    };
    Ok(match stage {
        Stage::Published => {
            let slot = &config.postgres.slot;
            let position = postgres::position(client, slot).await?;
            unpublished(&config.sweep, slot, position.as_ref(), &act)
        }
        Stage::Delivered => match waiting(kafka, found).await {
            Err(error) => format!(
                "what fan-out has read is not known, the sweep waits: {}",
                chain(&error)
            ),
            Ok(Some(lag)) => format!("the sweep waits until {lag}, and {act} then"),
            Ok(None) => format!("fan-out has passed everything in its topics: the sweep {act}"),
        },
    })
}

/// The position condition of `published`.
fn unpublished(sweep: &Section, slot: &str, position: Option<&Position>, act: &str) -> String {
    if sweep.mode == SweepMode::Dispatch {
        return format!("there is no relay to wait for (sweep.mode): the sweep {act}");
    }
    match position {
        None => format!("slot {slot} is absent, so no relay lives: the sweep {act}"),
        Some(position) if position.lost => {
            format!("slot {slot} is lost, so no relay lives: the sweep {act}")
        }
        Some(position) => {
            let confirmed = position.confirmed.as_deref().unwrap_or("nothing");
            let behind = position.behind;
            let place = format!("has confirmed {confirmed}, {behind} bytes behind the log's end");
            if position.active {
                format!(
                    "slot {slot} {place}; when it has passed the sweep's look, and {} later, the \
                     sweep {act}",
                    sweep.grace
                )
            } else {
                format!(
                    "slot {slot} {place}, and is inactive; the sweep waits {} for the relay to \
                     come back, and {act} then",
                    sweep.relay_patience
                )
            }
        }
    }
}

/// What a group has not passed yet, in the first hop that has such; `None` when all is passed.
async fn waiting(kafka: &KafkaConfig, found: &Found) -> Result<Option<String>, kafka::Error> {
    let known = found.type_name.as_deref().and_then(EventType::from_name);
    let hops: Vec<Hop> = match known {
        Some(event_type) => event_type.entry().hops.to_vec(),
        None => Stage::Delivered.hops(),
    };
    let admin = Admin::new(kafka)?;
    for hop in hops {
        let topic = kafka.namespace.topic(hop.topic);
        let group = kafka.namespace.group(hop.group);
        let marks = admin.watermarks(&topic).await?;
        let committed = admin.committed(&group, &topic).await?;
        let mut behind = Vec::new();
        for (partition, (low, end)) in marks {
            let at = committed.get(&partition).copied().flatten();
            match at {
                Some(at) if at > end => {
                    return Ok(Some(format!(
                        "group {group} commits again in partition {partition} of {topic}, where \
                         its offset {at} is beyond the end {end}"
                    )));
                }
                Some(at) if at == end => {}
                _ if low == end => {}
                _ => behind.push((partition, at.unwrap_or(low), end)),
            }
        }
        if let Some((partition, at, end)) = behind.first() {
            let others = match behind.len() - 1 {
                0 => String::new(),
                others => format!(", and {others} more partitions to their ends"),
            };
            return Ok(Some(format!(
                "group {group} has committed offset {end} in partition {partition} of {topic} \
                 (now {at}){others}"
            )));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_of_the_slot_has_its_sentence() {
        let sweep = Section::default();
        let position = |active, lost| Position {
            active,
            lost,
            confirmed: Some("0/AB".into()),
            behind: 7,
        };
        let said = |position: Option<&Position>| unpublished(&sweep, "s", position, "acts");
        assert!(said(None).starts_with("slot s is absent"));
        assert!(said(Some(&position(false, true))).starts_with("slot s is lost"));
        let inactive = said(Some(&position(false, false)));
        assert!(
            inactive.contains("inactive; the sweep waits 10m"),
            "{inactive}"
        );
        let live = said(Some(&position(true, false)));
        assert!(
            live.contains("0/AB, 7 bytes behind") && live.ends_with("the sweep acts"),
            "{live}"
        );
        let dispatch = Section {
            mode: SweepMode::Dispatch,
            ..Section::default()
        };
        assert!(unpublished(&dispatch, "s", None, "acts").contains("no relay to wait for"));
    }
}
