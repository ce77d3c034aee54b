//! The binary as a process: exit codes, SIGTERM, SIGKILL, memory.

use std::{
    collections::BTreeSet,
    process::{Child, Command, Stdio},
    time::Duration,
};

use testkit::{eventually, eventually_within, free_address};

use crate::rig::Rig;

struct Process {
    child: Child,
    admin: String,
}

impl Process {
    fn start(rig: &Rig, options: &[(&str, &str)]) -> Self {
        let admin = free_address();
        let child = Command::new(env!("CARGO_BIN_EXE_tideline-relay"))
            .envs(rig.deployment.env())
            .env("TIDELINE_RELAY__ADMIN", &admin)
            .envs(options.iter().copied())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, admin }
    }

    async fn acked(&self) -> f64 {
        let text = testkit::http_get(&self.admin, "/metrics")
            .await
            .map_or_else(String::new, |(_, text)| text);
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix("tideline_relay_records_total{result=\"acked\"} "));
        value.map_or(0.0, |value| value.parse().unwrap())
    }

    fn most_memory_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    async fn exit_code(&mut self) -> Option<i32> {
        let ended = eventually("the process ends", || {
            std::future::ready(self.child.try_wait().unwrap())
        });
        ended.await.code()
    }

    fn terminate(&self) {
        let status = Command::new("kill")
            .arg(self.child.id().to_string())
            .status()
            .unwrap();
        assert!(status.success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Already over in most tests.
        let _killed = self.child.kill();
        let _status = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_codes_tell_why() {
    let rig = Rig::new().await;
    let mut wrong = Process::start(&rig, &[("TIDELINE_POSTGRES__SLOT", "Not a slot")]);
    assert_eq!(wrong.exit_code().await, Some(64));
    let mut lonely = Process::start(
        &rig,
        &[
            (
                "TIDELINE_POSTGRES__URL",
                "postgresql://postgres@127.0.0.1:1/none",
            ),
            ("TIDELINE_STARTUP__BUDGET", "1s"),
        ],
    );
    assert_eq!(lonely.exit_code().await, Some(69));
    let mut asked = Process::start(&rig, &[]);
    eventually("ready", async || {
        testkit::http_get(&asked.admin, "/readyz")
            .await
            .filter(|(status, _)| *status == 200)
    })
    .await;
    asked.terminate();
    assert_eq!(asked.exit_code().await, Some(0));
}

/// C10, C39, D-3, D-13: a large transaction in a small process that is killed in the middle of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_kill_in_the_middle_of_a_large_transaction_loses_nothing() {
    let rig = Rig::new().await;
    let rows = 100_000;
    let sql = format!(
        "insert into tideline.outbox (aggregatetype, aggregateid, partition_key, type, payload)
         select 'post', n::text, (n % 100)::text, 'tideline.post.created.v1', json_build_object('n', n)
         from generate_series(1, {rows}) n"
    );
    rig.sql.batch_execute(&sql).await.unwrap();
    // Slow enough that it is far from the end, even if this test stands still before the kill.
    let slow = [("TIDELINE_RELAY__MAX_ROWS_IN_FLIGHT", "10")];
    let mut first = Process::start(&rig, &slow);
    eventually_within(
        Duration::from_secs(60),
        "some are acknowledged",
        async || (first.acked().await > 1_000.0).then_some(()),
    )
    .await;
    let acked = first.acked().await;
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    assert!(acked < f64::from(rows), "killed too late for this test");
    let confirmed: bool = rig
        .one(&format!(
            "select confirmed_flush_lsn < pg_current_wal_lsn() - 1000000 from pg_replication_slots where slot_name = '{}'",
            rig.deployment.slot()
        ))
        .await;
    assert!(confirmed, "D-3: half a transaction confirms nothing");

    let mut second = Process::start(&rig, &[]);
    eventually_within(
        Duration::from_secs(120),
        "all are acknowledged",
        async || (second.acked().await >= f64::from(rows)).then_some(()),
    )
    .await;
    rig.confirmed_all().await;
    let most = second.most_memory_kib();
    println!("peak memory {most} KiB");
    assert!(most < 64 * 1024, "{most} KiB");
    second.terminate();
    assert_eq!(second.exit_code().await, Some(0));
    let records = rig.all_records(&rig.topic("posts.v1")).await;
    let found: BTreeSet<i64> = records.iter().map(|record| record.id()).collect();
    assert_eq!(found.len(), usize::try_from(rows).unwrap());
}

/// D-3: acknowledged and not yet confirmed is the widest gap there is; what falls into it repeats.
#[cfg(feature = "crash-points")]
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_between_acknowledgement_and_confirmation_loses_nothing() {
    for point in ["relay::acked=panic", "relay::produced=3*off->panic"] {
        let mut rig = Rig::new().await;
        let ids = rig.insert(&["1", "2", "3", "1", "2"]).await;
        let mut first = Process::start(&rig, &[("FAILPOINTS", point)]);
        assert_ne!(first.exit_code().await, Some(0), "{point}");
        let relay = rig.start().await;
        rig.confirmed_all().await;
        let found: BTreeSet<i64> = rig
            .all_records(&rig.topic("posts.v1"))
            .await
            .iter()
            .map(|record| record.id())
            .collect();
        assert_eq!(found, ids.into_iter().collect(), "{point}");
        relay.stop().await;
    }
}
