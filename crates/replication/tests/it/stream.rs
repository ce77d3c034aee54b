//! The stream of a real server.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pgoutput::{CopyData, Keepalive, Lsn, Message, StandbyStatus};
use replication::{Reader, ReplicationError, Step, StreamEvent};
use tokio::time::timeout;

use crate::cluster::{Cluster, Feed, PATIENCE, eventually, shared, unique};

pub(crate) fn status(position: Lsn, reply_requested: bool) -> StandbyStatus {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_micros();
    StandbyStatus {
        written: position,
        flushed: position,
        applied: position,
        sent_at: i64::try_from(now).unwrap(),
        reply_requested,
    }
}

/// The next payload.
async fn payload(reader: &mut Reader) -> CopyData {
    let event = timeout(PATIENCE, reader.next()).await.unwrap().unwrap();
    let Some(StreamEvent::CopyData(payload)) = event else {
        panic!("{event:?}")
    };
    CopyData::decode(payload).unwrap()
}

/// Everything up to the next commit: the rows' ids and the commit's end.
async fn transaction(reader: &mut Reader) -> (Vec<i64>, Lsn) {
    let mut ids = Vec::new();
    loop {
        let CopyData::XLog(data) = payload(reader).await else {
            continue;
        };
        match Message::decode(data.data).unwrap() {
            Message::Insert(insert) => ids.push(insert.new.cells[0].as_i64().unwrap()),
            Message::Commit(commit) => return (ids, commit.end_lsn),
            _ => {}
        }
    }
}

async fn keepalive(reader: &mut Reader) -> Keepalive {
    loop {
        if let CopyData::Keepalive(keepalive) = payload(reader).await {
            return keepalive;
        }
    }
}

fn confirmed(slot: &str, position: Lsn) -> String {
    format!(
        "SELECT confirmed_flush_lsn = '{position}' AND NOT active FROM pg_replication_slots \
         WHERE slot_name = '{slot}'"
    )
}

#[tokio::test]
async fn rows_arrive_and_what_is_confirmed_does_not_come_back() {
    let client = shared().client().await;
    let feed = Feed::create(&client).await;
    feed.insert(&client, 1).await;
    feed.insert(&client, 2).await;

    let connection = shared().connect().await;
    let (mut reader, mut writer) = connection
        .start(&feed.slot, &feed.publication)
        .await
        .unwrap();
    let (ids, first) = transaction(&mut reader).await;
    assert_eq!(ids, [1]);
    let (ids, _) = transaction(&mut reader).await;
    assert_eq!(ids, [2]);
    writer.status(&status(first, false)).await.unwrap();
    writer.finish().await.unwrap();
    reader.drain(PATIENCE).await.unwrap();
    eventually(&client, &confirmed(&feed.slot, first)).await;

    let connection = shared().connect().await;
    let (mut reader, _writer) = connection
        .start(&feed.slot, &feed.publication)
        .await
        .unwrap();
    assert_eq!(transaction(&mut reader).await.0, [2]);
}

/// A quiet outbox in a busy database must not hold log back.
#[tokio::test]
async fn keepalives_advance_an_idle_slot() {
    let client = shared().client().await;
    let feed = Feed::create(&client).await;
    let connection = shared().connect().await;
    let (mut reader, mut writer) = connection
        .start(&feed.slot, &feed.publication)
        .await
        .unwrap();

    let other = unique("other");
    let sql = format!("CREATE TABLE {other} (id int); INSERT INTO {other} VALUES (1)");
    client.batch_execute(&sql).await.unwrap();
    let row = client
        .query_one("SELECT pg_current_wal_lsn()::text", &[])
        .await
        .unwrap();
    let target: Lsn = row.get::<_, &str>(0).parse().unwrap();
    let reached = loop {
        writer.status(&status(Lsn::ZERO, true)).await.unwrap();
        let end = keepalive(&mut reader).await.end;
        if end >= target {
            break end;
        }
    };
    writer.status(&status(reached, false)).await.unwrap();
    let question = format!(
        "SELECT confirmed_flush_lsn >= '{target}' FROM pg_replication_slots \
         WHERE slot_name = '{}'",
        feed.slot
    );
    eventually(&client, &question).await;
}

/// Reading under a select with other work must not lose bytes (C26).
#[tokio::test]
async fn cancelled_reads_lose_nothing() {
    let client = shared().client().await;
    let feed = Feed::create(&client).await;
    let sql = format!(
        "INSERT INTO {} SELECT n, repeat('x', n % 5000) FROM generate_series(1, 3000) n",
        feed.table
    );
    client.batch_execute(&sql).await.unwrap();
    let connection = shared().connect().await;
    let (mut reader, _writer) = connection
        .start(&feed.slot, &feed.publication)
        .await
        .unwrap();
    let mut ids = Vec::new();
    let mut cancelled = 0_u32;
    loop {
        let next = timeout(
            Duration::from_micros(u64::from(cancelled % 7) * 10),
            reader.next(),
        );
        let Ok(event) = next.await else {
            cancelled += 1;
            continue;
        };
        let Some(StreamEvent::CopyData(payload)) = event.unwrap() else {
            panic!("no data")
        };
        let CopyData::XLog(data) = CopyData::decode(payload).unwrap() else {
            continue;
        };
        match Message::decode(data.data).unwrap() {
            Message::Insert(insert) => ids.push(insert.new.cells[0].as_i64().unwrap()),
            Message::Commit(_) => break,
            _ => {}
        }
    }
    assert!(ids.iter().copied().eq(1..=3000));
}

#[tokio::test]
async fn a_slot_in_use_is_busy_until_its_holder_goes() {
    let client = shared().client().await;
    let feed = Feed::create(&client).await;
    let holder = shared()
        .connect()
        .await
        .start(&feed.slot, &feed.publication)
        .await
        .unwrap();
    let error = shared()
        .connect()
        .await
        .start(&feed.slot, &feed.publication)
        .await
        .unwrap_err();
    assert!(error.is_slot_busy(), "{error:?}");
    assert!(!error.is_slot_missing() && !error.is_slot_invalidated());

    drop(holder);
    let question = format!(
        "SELECT NOT active FROM pg_replication_slots WHERE slot_name = '{}'",
        feed.slot
    );
    eventually(&client, &question).await;
    shared()
        .connect()
        .await
        .start(&feed.slot, &feed.publication)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_slot_that_does_not_exist_is_missing() {
    let error = shared()
        .connect()
        .await
        .start("no_such_slot", "p")
        .await
        .unwrap_err();
    assert!(error.is_slot_missing(), "{error:?}");
    assert!(!error.is_publication_missing() && !error.is_slot_busy());
    let error = shared()
        .connect()
        .await
        .start("No-Such-Slot", "p")
        .await
        .unwrap_err();
    assert!(
        matches!(error, ReplicationError::Name { what: "slot", .. }),
        "{error:?}"
    );
}

/// The start does not notice it; the first row after that point does.
#[tokio::test]
async fn a_publication_that_does_not_exist_shows_in_the_stream() {
    let client = shared().client().await;
    let feed = Feed::create(&client).await;
    let connection = shared().connect().await;
    let (mut reader, _writer) = connection.start(&feed.slot, "never_created").await.unwrap();
    feed.insert(&client, 1).await;
    let outcome = timeout(PATIENCE, async {
        loop {
            match reader.next().await {
                // Up to PostgreSQL 17.
                Err(error) => break error.is_publication_missing(),
                // From PostgreSQL 18 on.
                Ok(Some(StreamEvent::Notice(notice))) => break notice.severity == "WARNING",
                Ok(Some(_)) => {}
                Ok(None) => panic!("stream ended"),
            }
        }
    });
    assert!(outcome.await.unwrap());
}

#[tokio::test]
async fn a_terminated_connection_says_so() {
    let client = shared().client().await;
    let feed = Feed::create(&client).await;
    let connection = shared().connect().await;
    let (mut reader, _writer) = connection
        .start(&feed.slot, &feed.publication)
        .await
        .unwrap();
    let sql = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots \
               WHERE slot_name = $1";
    client.execute(sql, &[&feed.slot]).await.unwrap();
    let error = last_error(&mut reader).await;
    assert_eq!(error.sqlstate(), Some("57P01"));
    assert!(error.is_server_going());
}

/// A client that sends no status is cut off without a reason.
#[tokio::test]
async fn a_silent_client_is_cut_off() {
    let client = shared().client().await;
    let feed = Feed::create(&client).await;
    let mut config = shared().config();
    config.wal_sender_timeout = Some(Duration::from_millis(500));
    let connection = replication::Connection::connect(&config).await.unwrap();
    let (mut reader, _writer) = connection
        .start(&feed.slot, &feed.publication)
        .await
        .unwrap();
    let error = last_error(&mut reader).await;
    assert!(
        matches!(error, ReplicationError::Closed { step: Step::Stream }),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_server_that_stops_ends_the_stream_in_good_order() {
    let cluster = Cluster::start();
    let client = cluster.client().await;
    let feed = Feed::create(&client).await;
    feed.insert(&client, 1).await;
    let connection = cluster.connect().await;
    let (mut reader, mut writer) = connection
        .start(&feed.slot, &feed.publication)
        .await
        .unwrap();
    transaction(&mut reader).await;
    cluster.stop_fast();
    // The server waits until everything it has written is confirmed, and then closes at once. A
    // status that is on its way at that moment makes the system reset the connection, which may
    // overtake what the server said last. Nothing else than that counts as an end.
    let ended = timeout(PATIENCE, async {
        loop {
            match reader.next().await {
                Ok(Some(StreamEvent::CopyData(payload))) => {
                    if let CopyData::Keepalive(keepalive) = CopyData::decode(payload).unwrap() {
                        match writer.status(&status(keepalive.end, false)).await {
                            Ok(()) => {}
                            Err(error) if is_reset(&error) => {}
                            Err(error) => panic!("{error:?}"),
                        }
                    }
                }
                Ok(Some(StreamEvent::Ended)) => {
                    match reader.next().await {
                        Ok(None) => assert_eq!(reader.next().await.unwrap(), None),
                        Err(error) if is_reset(&error) => {}
                        other => panic!("{other:?}"),
                    }
                    break;
                }
                Err(error) if is_reset(&error) => break,
                other => panic!("{other:?}"),
            }
        }
        while !cluster.is_stopped() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    ended.await.unwrap();
}

/// The peer closed while something of ours was unread.
fn is_reset(error: &ReplicationError) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset};
    matches!(error, ReplicationError::Io { source, .. }
        if matches!(source.kind(), BrokenPipe | ConnectionReset))
}

async fn last_error(reader: &mut Reader) -> ReplicationError {
    timeout(PATIENCE, async {
        loop {
            match reader.next().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("ended in good order"),
                Err(error) => return error,
            }
        }
    })
    .await
    .unwrap()
}
