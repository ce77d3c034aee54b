//! The posts topic: how many records it has, and how fast records get into it at best.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use events::{
    EventId, Namespace,
    route::{OutboxRow, Routed, Router, Via},
    topic::TopicKind,
};
use kafka::{Admin, EnqueueError, Header, KafkaConfig, Producer, Record};

use crate::{
    numbers::real,
    outbox::{AUTHORS, FIRST_POST},
};

/// Between two looks at the topic.
const STEP: Duration = Duration::from_millis(10);
/// Without a new record for so long, none is coming any more.
const PATIENCE: Duration = Duration::from_secs(60);

/// Counts the records of the posts topic.
#[derive(Clone, Debug)]
pub(crate) struct Topic {
    config: KafkaConfig,
    admin: Admin,
    name: String,
}

impl Topic {
    pub(crate) fn new(config: KafkaConfig) -> anyhow::Result<Self> {
        Ok(Self {
            admin: Admin::new(&config)?,
            name: config.namespace.topic(TopicKind::Posts),
            config,
        })
    }

    /// How many records it has.
    pub(crate) async fn count(&self) -> anyhow::Result<i64> {
        Ok(self.admin.end_offsets(&self.name).await?.values().sum())
    }

    /// Records per second, from the first that are seen beyond `before` until there are `rows`
    /// more. `check` fails when nobody is left who would send them.
    pub(crate) async fn arrival(
        &self,
        before: i64,
        rows: i64,
        mut check: impl FnMut() -> anyhow::Result<()>,
    ) -> anyhow::Result<f64> {
        let mut first: Option<(Instant, i64)> = None;
        let (mut last, mut moved) = (before, Instant::now());
        loop {
            let count = self.count().await?;
            let now = Instant::now();
            if count > last {
                (last, moved) = (count, now);
            }
            match first {
                None if count > before => first = Some((now, count)),
                Some((since, at)) if count >= before + rows => {
                    ensure!(count > at, "all records came at once: take more rows");
                    return Ok(real(count - at) / now.duration_since(since).as_secs_f64());
                }
                _ => {}
            }
            if moved.elapsed() > PATIENCE {
                bail!(
                    "{} of {rows} records have come, and no more for a minute",
                    last - before
                );
            }
            // When all are there it may have ended rightly.
            if count < before + rows {
                check()?;
            }
            tokio::time::sleep(STEP).await;
        }
    }

    /// Records per second of a producer that does nothing else, with the relay's settings and
    /// records.
    pub(crate) async fn raw_rate(&self, rows: i64) -> anyhow::Result<f64> {
        let (producer, mut reports) = Producer::new(&self.config, "tideline-bench")?;
        let templates = templates(&self.config.namespace)?;
        // The first record waits for connection and metadata.
        let first = templates.get(&0).context("there is an author 0")?.clone();
        let _position = producer.send(first, PATIENCE).await?;
        let began = Instant::now();
        let (mut sent, mut acknowledged) = (0, 0);
        while acknowledged < rows {
            while sent < rows {
                let record = templates
                    .get(&(sent % AUTHORS))
                    .context("one for each author")?;
                match producer.enqueue(record.clone(), sent.unsigned_abs()) {
                    Ok(()) => sent += 1,
                    Err(EnqueueError::QueueFull(_)) => break,
                    Err(error) => return Err(error.into()),
                }
            }
            let report = tokio::time::timeout(PATIENCE, reports.recv()).await?;
            report.context("the producer ended")?.result?;
            acknowledged += 1;
            while let Some(report) = reports.try_recv() {
                report.result?;
                acknowledged += 1;
            }
        }
        Ok(real(rows) / began.elapsed().as_secs_f64())
    }
}

/// One record of each author, as the relay makes them.
fn templates(namespace: &Namespace) -> anyhow::Result<HashMap<i64, Record>> {
    let router = Router::new(namespace, "tideline/bench/1", |_| 1_000_000);
    let mut templates = HashMap::new();
    for author in 0..AUTHORS {
        let post = (FIRST_POST + author).to_string();
        let payload = format!(
            "{{\"post_id\":\"{post}\",\"author_id\":\"{author}\",\"post_us\":1764446335123456}}"
        );
        let (key, payload) = (Bytes::from(author.to_string()), Bytes::from(payload));
        let trace = Bytes::from_static(b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        let row = OutboxRow {
            event: EventId(author + 1),
            aggregate: "post",
            subject: &post,
            type_name: "tideline.post.created.v1",
            created_at: "2026-11-29 18:58:55.123456+00",
            key: Some(&key),
            payload: Some(&payload),
            traceparent: Some(&trace),
        };
        let via = Via::Relay {
            commit_lsn: 0x1_6B37_4D58,
            index: 0,
        };
        let Routed::Record(record) = router.route(&row, via) else {
            bail!("a template became a dead letter");
        };
        let headers = record.headers.into_iter().map(|(name, value)| Header {
            name: name.into(),
            value: Some(value),
        });
        let record = Record {
            topic: record.topic.to_string(),
            key: Some(record.key),
            payload: Some(record.payload),
            headers: headers.collect(),
        };
        templates.insert(author, record);
    }
    Ok(templates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_author_has_a_record_for_the_posts_topic() {
        let namespace = Namespace::new("t").unwrap();
        let templates = templates(&namespace).unwrap();
        assert_eq!(templates.len(), usize::try_from(AUTHORS).unwrap());
        assert!(
            templates
                .values()
                .all(|record| record.topic == namespace.topic(TopicKind::Posts))
        );
    }
}
