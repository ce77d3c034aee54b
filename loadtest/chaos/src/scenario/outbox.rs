//! The outbox table changes, or holds rows that no service of ours would write.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Context;
use events::{EventId, PostId};

use super::{Cast, LIMIT, Proof, Scenario, Stands, Sweep};
use crate::{Run, account, census, metrics};

const WITHIN: Duration = Duration::from_secs(40);
/// More than a topic takes, bytes.
const TOO_LARGE: usize = 1_200_000;
/// As much as a topic takes, nearly, bytes.
const LARGE: usize = 900_000;
const POST_CREATED: &str = "tideline.post.created.v1";

/// The faults of this family.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "outbox-column-added",
        about: "columns are added to the outbox while the relay streams",
        covers: &[14],
        cast: Cast::ONE_OF_EACH,
        fault: |run| Box::pin(column_added(run)),
        sweep: Sweep::Silent,
        limit: LIMIT,
        quick: true,
        stands: Stands::Green,
    },
    Scenario {
        name: "outbox-rows-malformed",
        about: "rows that are no events are inserted from outside, one of each kind",
        covers: &[15],
        cast: Cast::ONE_OF_EACH,
        fault: |run| Box::pin(malformed(run)),
        sweep: Sweep::Silent,
        limit: LIMIT,
        quick: true,
        stands: Stands::Green,
    },
    Scenario {
        name: "outbox-row-too-large",
        about: "rows of 0.9 MB and 1.2 MB are inserted past the limit of the API",
        covers: &[20],
        cast: Cast::ONE_OF_EACH,
        fault: |run| Box::pin(too_large(run)),
        sweep: Sweep::Silent,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
];

/// A row as somebody else would insert it.
struct Row<'a> {
    aggregate: &'a str,
    key: &'a str,
    type_name: &'a str,
    payload: &'a str,
    created_at: &'a str,
    /// What has to become of it.
    reason: &'static str,
}

const POST: Row<'static> = Row {
    aggregate: "post",
    key: "1",
    type_name: POST_CREATED,
    payload: "{}",
    created_at: "now",
    reason: "",
};

/// The relay reads the new description of the table and goes on, on the same connection.
async fn column_added(run: &mut Run) -> anyhow::Result<Proof> {
    const RECONNECTS: &str = "tideline_relay_reconnects_total";
    let reconnects = |run: &mut Run| -> anyhow::Result<f64> {
        metrics::sum(&run.scrape("relay")?, RECONNECTS).context("no such metric")
    };
    let before = reconnects(run)?;
    let mut first = None;
    for statement in [
        "alter table tideline.outbox add column chaos_note text",
        "alter table tideline.outbox add column chaos_number integer not null default 7",
        "alter table tideline.outbox drop column chaos_note",
    ] {
        let sql = run.flow().sql().get().await?;
        sql.batch_execute(statement).await?;
        let newest = account::newest(run.flow()).await?;
        let _first = first.get_or_insert(newest);
        let posts = run.rng().usize(15..30);
        run.more_posts(posts).await?;
    }
    run.fault_over().await?;
    let first = first.context("a column was added")?;
    let published = run
        .until(WITHIN, "what came later is published", async |run| {
            let census = census::read(run.flow()).await?;
            let later = census.relay.keys().filter(|event| **event > first).count();
            Ok((later >= 30).then_some(later))
        })
        .await?;
    let same = (reconnects(run)? - before).abs() < 0.5;
    Ok(same.then(|| {
        format!("{published} events of the changed table were published on the same connection")
    }))
}

/// Each becomes a dead letter with its reason, and nothing else waits for it.
async fn malformed(run: &mut Run) -> anyhow::Result<Proof> {
    let rows = [
        Row {
            reason: "payload_malformed",
            ..POST
        },
        Row {
            payload: "null",
            reason: "payload_malformed",
            ..POST
        },
        Row {
            payload: r#"{"post_id":"1","author_id":"2","post_us":3}"#,
            reason: "key_mismatch",
            ..POST
        },
        Row {
            key: "",
            reason: "no_key",
            ..POST
        },
        Row {
            type_name: "tideline.post.created.v9",
            reason: "unknown_type",
            ..POST
        },
        Row {
            aggregate: "follow",
            reason: "wrong_aggregate",
            ..POST
        },
        Row {
            aggregate: "",
            type_name: "",
            reason: "unknown_type",
            ..POST
        },
    ];
    let mut expected = BTreeMap::new();
    for row in &rows {
        let event = insert(run, row).await?;
        let _none = expected.insert(event, row.reason);
        run.more_posts(3).await?;
    }
    letters(run, &expected).await?;
    let reasons: Vec<&str> = expected.values().copied().collect();
    Ok(Some(format!(
        "{} rows became dead letters: {}",
        rows.len(),
        reasons.join(", ")
    )))
}

/// What fits is delivered, what does not becomes a dead letter at once.
async fn too_large(run: &mut Run) -> anyhow::Result<Proof> {
    let post = any_post(run).await?;
    let payload = |bytes: usize| {
        let padding = "x".repeat(bytes);
        format!(
            r#"{{"post_id":"{}","author_id":"{}","post_us":{},"padding":"{padding}"}}"#,
            post.id.0, post.author, post.created_us
        )
    };
    let key = post.author.to_string();
    let large = Row {
        key: &key,
        payload: &payload(LARGE),
        ..POST
    };
    let fits = insert(run, &large).await?;
    let too_large = Row {
        payload: &payload(TOO_LARGE),
        ..large
    };
    let event = insert(run, &too_large).await?;
    letters(run, &BTreeMap::from([(event, "oversize")])).await?;
    run.until(WITHIN, "the row that fits is delivered", async |run| {
        const DELIVERED: &str = "select exists (select from tideline.delivery_ledger
            where stage = 'delivered' and ids @> $1::bigint)";
        let sql = run.flow().sql().get().await?;
        let delivered: bool = sql.query_one(DELIVERED, &[&fits.0]).await?.get(0);
        Ok(delivered.then_some(()))
    })
    .await?;
    Ok(Some(format!(
        "a row of {LARGE} bytes was delivered, one of {TOO_LARGE} bytes became a dead letter"
    )))
}

/// Tries rows whose time is infinity, which Postgres has to refuse.
///
/// # Errors
/// When it takes one, or does not answer.
pub(super) async fn no_row_without_time(run: &Run) -> anyhow::Result<()> {
    for created_at in ["infinity", "-infinity"] {
        let row = Row { created_at, ..POST };
        let Err(error) = insert(run, &row).await else {
            anyhow::bail!("a row whose time is {created_at} was taken");
        };
        let told = format!("{error:#}");
        anyhow::ensure!(told.contains("outbox_created_at_is_finite"), "{told}");
    }
    Ok(())
}

/// Inserts a row whose time a record's `ce_time` cannot carry; answers its id.
///
/// # Errors
/// When Postgres refuses.
pub(super) async fn insert_beyond_records(run: &Run) -> anyhow::Result<EventId> {
    // Of no post: the sweep gives a row up whose post is not there, whatever its time.
    let row = Row {
        aggregate: "follow",
        type_name: "tideline.follow.created.v1",
        created_at: "10000-01-01",
        ..POST
    };
    insert(run, &row).await
}

/// Inserts a row; answers its id.
async fn insert(run: &Run, row: &Row<'_>) -> anyhow::Result<EventId> {
    const SQL: &str = "insert into tideline.outbox
            (aggregatetype, aggregateid, partition_key, type, payload, created_at)
        values ($1, '1', $2, $3, $4::text::json, $5::text::timestamptz) returning id";
    let sql = run.flow().sql().get().await?;
    let cells: [&(dyn tokio_postgres::types::ToSql + Sync); 5] = [
        &row.aggregate,
        &row.key,
        &row.type_name,
        &row.payload,
        &row.created_at,
    ];
    let made = sql.query_one(SQL, &cells).await.context("insert a row")?;
    Ok(EventId(made.get(0)))
}

/// Waits until these events are dead letters with these reasons, and expects no other.
async fn letters(run: &mut Run, expected: &BTreeMap<EventId, &str>) -> anyhow::Result<()> {
    const SQL: &str =
        "select event_id, reason from tideline.dead_letters where event_id is not null";
    run.fault_over().await?;
    run.expect_letters(i64::try_from(expected.len())?);
    let found = run
        .until(WITHIN, "every such row is a dead letter", async |run| {
            let sql = run.flow().sql().get().await?;
            let rows = sql.query(SQL, &[]).await?;
            let found: BTreeMap<EventId, String> = rows
                .iter()
                .map(|row| (EventId(row.get(0)), row.get(1)))
                .collect();
            Ok((found.len() >= expected.len()).then_some(found))
        })
        .await?;
    for (event, reason) in expected {
        let told = found.get(event).map(String::as_str);
        anyhow::ensure!(
            told == Some(*reason),
            "the letter of event {event} should say {reason} and says {told:?}"
        );
    }
    Ok(())
}

/// A post of the load.
struct Known {
    id: PostId,
    author: i64,
    created_us: i64,
}

async fn any_post(run: &Run) -> anyhow::Result<Known> {
    const SQL: &str = "select id, author_id, tideline.micros(created_at) from tideline.posts
        where deleted_at is null order by id limit 1";
    let sql = run.flow().sql().get().await?;
    let row = sql.query_one(SQL, &[]).await?;
    Ok(Known {
        id: PostId(row.get(0)),
        author: row.get(1),
        created_us: row.get(2),
    })
}
