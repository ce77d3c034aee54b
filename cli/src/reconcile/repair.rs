//! What repairs each kind of difference. Only commands that exist are named; where none does, the
//! statement to run is.

use events::{EventId, EventType, Stage};

use super::difference::{Kind, Tally};

/// The steps that repair what was found of a kind, in their order.
///
/// `again` is this command's own line without `--repair`.
pub(super) fn steps(kind: Kind, tally: &Tally, keyspace: &str, again: &str) -> Vec<String> {
    let posts = || {
        let posts = tally.examples.iter().filter_map(|place| place.post);
        posts.map(|post| post.to_string()).collect::<Vec<_>>()
    };
    match kind {
        Kind::PostWithoutEvent => vec![announce(EventType::PostCreatedV1, &posts(), tally)],
        Kind::DeleteWithoutEvent => vec![announce(EventType::PostDeletedV1, &posts(), tally)],
        Kind::NotPublished => vec![sweep(Some(Stage::Published), tally.span)],
        Kind::NotDelivered => vec![sweep(Some(Stage::Delivered), tally.span)],
        Kind::EventWithoutPost => vec![
            format!("{again} --repair    # forgets those that the ledger calls delivered"),
            format!("{}    # discards them as no_post", sweep(None, tally.span)),
        ],
        Kind::RowsMissing | Kind::RowsOfDeleted => vec![
            format!("{again} --repair    # the ledger forgets these events"),
            sweep(None, tally.span),
        ],
        Kind::RowsUnexplained => vec![
            format!("{again} --repair    # deletes these rows"),
            format!(
                "or each by hand, in cqlsh: DELETE FROM {keyspace}.timelines WHERE owner_id = … \
                 AND post_id = …"
            ),
        ],
        Kind::LedgerWithoutRow => vec![
            format!("{again} --repair    # the ledger forgets these ids"),
            "tideline epoch bump --by N    # first, if Postgres was restored from a backup".into(),
        ],
        Kind::DeadLetterOpen => {
            let mut steps: Vec<String> = posts()
                .iter()
                .take(1)
                .map(|post| format!("tideline explain {post}    # why, and where the record is"))
                .collect();
            steps.push(
                "mend the cause, produce the record from the dead-letter topic to its topic \
                 again, and set the letter's state to redriven in tideline.dead_letters"
                    .into(),
            );
            steps
        }
    }
}

/// The sweep over the ids that were found, both ends included. Without a stage where the ledger has
/// forgotten: an id may have been published by what delivered says alone.
fn sweep(stage: Option<Stage>, span: Option<(EventId, EventId)>) -> String {
    let stage = stage.map_or_else(String::new, |stage| format!(" --stage {}", stage.as_str()));
    let range = span.map_or_else(String::new, |(low, high)| format!(" --range {low}..{high}"));
    format!("tideline-sweep --once{stage}{range}")
}

/// The statement that writes the missing outbox rows. The relay publishes them as it does others.
fn announce(event_type: EventType, posts: &[String], tally: &Tally) -> String {
    let name = event_type.as_str();
    let (moment, extra, also) = match event_type {
        EventType::PostDeletedV1 => (
            "deleted_at",
            ", 'del_us', tideline.micros(deleted_at) + 86400000000",
            " and deleted_at is not null",
        ),
        _ => ("created_at", "", ""),
    };
    let more = if tally.count > posts.len() as u64 {
        ", and again for the others"
    } else {
        ""
    };
    format!(
        "no command writes an outbox row afterwards; in psql{more}: \
         insert into tideline.outbox (aggregatetype, aggregateid, partition_key, type, payload, created_at) \
         select 'post', id::text, author_id::text, '{name}', \
         json_build_object('post_id', id::text, 'author_id', author_id::text, \
         'post_us', tideline.micros(created_at){extra}), {moment} \
         from tideline.posts where id in ({}){also};",
        posts.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use events::PostId;

    use super::{super::difference::Place, *};

    #[test]
    fn repairs_name_ids_and_commands() {
        let tally = Tally {
            count: 2,
            span: Some((EventId(5), EventId(9))),
            examples: vec![Place {
                post: Some(PostId(7)),
                ..Place::default()
            }],
            repaired: 0,
        };
        let of = |kind| steps(kind, &tally, "k", "tideline reconcile --since 2h").join("\n");
        assert_eq!(
            of(Kind::NotPublished),
            "tideline-sweep --once --stage published --range 5..9"
        );
        let missing = of(Kind::RowsMissing);
        assert!(missing.starts_with("tideline reconcile --since 2h --repair"));
        assert!(missing.ends_with("tideline-sweep --once --range 5..9"));
        assert!(of(Kind::PostWithoutEvent).contains("where id in (7);"));
        assert!(of(Kind::PostWithoutEvent).contains("and again for the others"));
        assert!(of(Kind::DeleteWithoutEvent).contains("'del_us'"));
        assert!(of(Kind::DeadLetterOpen).starts_with("tideline explain 7"));
    }
}
