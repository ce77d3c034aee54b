//! Captures the golden streams of the decoder from a real server.
//!
//! ```text
//! cargo run -p replication --example capture_goldens -- \
//!     postgresql://postgres@127.0.0.1:5432/postgres crates/pgoutput/tests/data/pg15
//! ```
//!
//! Needs an empty database that may be written to, `wal_level = logical` and a
//! superuser. Each scenario writes `<name>.bin`: the payloads of its CopyData
//! frames, each behind its length as four big-endian bytes. Afterwards the
//! tests of `pgoutput` with `TIDELINE_UPDATE_GOLDENS=1` rewrite the `*.txt`
//! renderings, whose difference is what a reviewer reads.

mod scenarios;

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use pgoutput::{CopyData, Lsn, StandbyStatus};
use replication::{Connection, Reader, ReplicationConfig, StreamEvent, StreamOptions, Writer};
use scenarios::{SCENARIOS, Scenario};
use tokio_postgres::NoTls;

type Failure = Box<dyn std::error::Error>;

const NAME: &str = "golden";

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let (Some(url), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("usage: capture_goldens <url> <folder>".into());
    };
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    for scenario in SCENARIOS {
        let payloads = capture(&url, scenario).await?;
        write(&folder.join(scenario.name).with_extension("bin"), &payloads)?;
        println!("{}: {} payloads", scenario.name, payloads.len());
    }
    let payloads = capture_keepalives(&url).await?;
    write(&folder.join("keepalive.bin"), &payloads)?;
    println!("keepalive: {} payloads", payloads.len());
    Ok(())
}

/// Runs one scenario and collects everything the plugin said about it.
async fn capture(url: &str, scenario: &Scenario) -> Result<Vec<Bytes>, Failure> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let background = tokio::spawn(connection);
    client
        .batch_execute("DROP SCHEMA IF EXISTS golden CASCADE; CREATE SCHEMA golden")
        .await?;
    client.batch_execute("SET search_path = golden").await?;
    for statement in scenario.prepare {
        client.batch_execute(statement).await?;
    }
    client
        .batch_execute("DROP PUBLICATION IF EXISTS golden")
        .await?;
    client
        .batch_execute(&format!(
            "CREATE PUBLICATION golden {}",
            scenario.publication
        ))
        .await?;
    client
        .execute(
            "SELECT pg_create_logical_replication_slot('golden', 'pgoutput')",
            &[],
        )
        .await?;

    for statement in scenario.run {
        client.batch_execute(statement).await?;
    }
    let row = client
        .query_one("SELECT pg_current_wal_lsn()::text", &[])
        .await?;
    let until: Lsn = row.get::<_, &str>(0).parse()?;

    let (reader, writer) = stream(&ReplicationConfig::from_url(url)?).await?;
    let payloads = collect(reader, writer, until).await?;
    client
        .execute("SELECT pg_drop_replication_slot('golden')", &[])
        .await?;
    drop(client);
    background.await??;
    Ok(payloads)
}

async fn stream(config: &ReplicationConfig) -> Result<(Reader, Writer), Failure> {
    let options = StreamOptions {
        slot: NAME.to_owned(),
        publication: NAME.to_owned(),
        messages: true,
    };
    Ok(Connection::connect(config)
        .await?
        .start_with(&options)
        .await?)
}

/// Everything but keepalives, which come whenever they like, up to a position.
async fn collect(
    mut reader: Reader,
    mut writer: Writer,
    until: Lsn,
) -> Result<Vec<Bytes>, Failure> {
    writer.status(&status(Lsn::ZERO, true)).await?;
    let mut payloads = Vec::new();
    loop {
        let event = tokio::time::timeout(Duration::from_secs(10), reader.next()).await??;
        let Some(StreamEvent::CopyData(payload)) = event else {
            return Err(format!("stream answered {event:?}").into());
        };
        match CopyData::decode(payload.clone())? {
            CopyData::Keepalive(keepalive) if keepalive.end >= until => break,
            CopyData::Keepalive(_) => writer.status(&status(Lsn::ZERO, true)).await?,
            CopyData::XLog(_) | CopyData::Unknown { .. } => payloads.push(payload),
        }
    }
    writer.finish().await?;
    reader.drain(Duration::from_secs(10)).await?;
    Ok(payloads)
}

/// One keepalive that wants no reply and one that does: a server asks when the
/// confirmed position lags or half of its timeout passes in silence.
async fn capture_keepalives(url: &str) -> Result<Vec<Bytes>, Failure> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let background = tokio::spawn(connection);
    client
        .execute(
            "SELECT pg_create_logical_replication_slot('golden', 'pgoutput')",
            &[],
        )
        .await?;
    let mut config = ReplicationConfig::from_url(url)?;
    config.wal_sender_timeout = Some(Duration::from_secs(2));
    let (mut reader, mut writer) = stream(&config).await?;
    writer.status(&status(Lsn::ZERO, true)).await?;
    let (mut quiet, mut asking) = (None, None);
    while quiet.is_none() || asking.is_none() {
        let event = tokio::time::timeout(Duration::from_secs(10), reader.next()).await??;
        let Some(StreamEvent::CopyData(payload)) = event else {
            return Err(format!("stream answered {event:?}").into());
        };
        match CopyData::decode(payload.clone())? {
            CopyData::Keepalive(each) if each.reply_requested => asking = Some(payload),
            CopyData::Keepalive(_) => quiet = Some(payload),
            CopyData::XLog(_) | CopyData::Unknown { .. } => {}
        }
    }
    writer.finish().await?;
    reader.drain(Duration::from_secs(10)).await?;
    client
        .execute("SELECT pg_drop_replication_slot('golden')", &[])
        .await?;
    drop(client);
    background.await??;
    Ok(quiet.into_iter().chain(asking).collect())
}

fn status(position: Lsn, reply_requested: bool) -> StandbyStatus {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_micros();
    StandbyStatus {
        written: position,
        flushed: position,
        applied: position,
        sent_at: i64::try_from(now).unwrap_or(i64::MAX),
        reply_requested,
    }
}

fn write(path: &Path, payloads: &[Bytes]) -> Result<(), Failure> {
    let mut file = Vec::new();
    for payload in payloads {
        file.extend(u32::try_from(payload.len())?.to_be_bytes());
        file.extend_from_slice(payload);
    }
    Ok(std::fs::write(path, file)?)
}
