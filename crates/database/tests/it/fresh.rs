//! A migrated database for one test.

use database::{Client, Error, Pool, migrations, users};
use events::UserId;
use testkit::answered;

/// The publication's name in every test database.
pub(crate) const PUBLICATION: &str = "tideline_outbox";

/// A database of one test, and names that belong to it.
pub(crate) struct Fresh {
    pub(crate) url: String,
    pub(crate) pool: Pool,
    pub(crate) slot: String,
    name: String,
}

impl Fresh {
    /// A migrated database without the slot: a slot that nobody reads would pin the server's WAL.
    pub(crate) async fn migrated() -> Self {
        let fresh = Self::empty().await;
        let _report = answered(|| fresh.try_migrate()).await;
        fresh.drop_slot().await;
        fresh
    }

    /// Names only; the database is not there yet.
    pub(crate) async fn empty() -> Self {
        let name = testkit::unique("database");
        let url = testkit::Servers::get().await.postgres_url(&name);
        let pool = Pool::new(&url, 20, "database-it").unwrap();
        Self {
            url,
            pool,
            slot: testkit::unique("slot"),
            name,
        }
    }

    pub(crate) async fn migrate(&self) -> migrations::Report {
        self.try_migrate().await.unwrap()
    }

    async fn try_migrate(&self) -> Result<migrations::Report, Error> {
        let options = migrations::Options {
            url: &self.url,
            slot: &self.slot,
            publication: PUBLICATION,
        };
        migrations::migrate(&options).await
    }

    pub(crate) async fn client(&self) -> Client {
        answered(|| self.pool.get()).await
    }

    /// Makes this many users.
    pub(crate) async fn users(&self, count: usize) -> Vec<UserId> {
        let client = self.client().await;
        let mut ids = Vec::new();
        for _ in 0..count {
            let users::CreateUser::Created(user) = users::create(&client, &testkit::unique("user"))
                .await
                .unwrap()
            else {
                panic!("the handle is unique");
            };
            ids.push(user.id);
        }
        ids
    }

    /// The one number that a query answers.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        self.client()
            .await
            .query_one(sql, &[])
            .await
            .unwrap()
            .get(0)
    }

    pub(crate) async fn run(&self, sql: &str) {
        self.client().await.batch_execute(sql).await.unwrap();
    }

    pub(crate) async fn drop_slot(&self) {
        let sql = "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = $1";
        self.client()
            .await
            .execute(sql, &[&self.slot])
            .await
            .unwrap();
    }

    /// Drops the database; a test that fails leaves it to be looked at.
    pub(crate) async fn end(self) {
        let maintenance = testkit::Servers::get().await.postgres_url("postgres");
        let pool = Pool::new(&maintenance, 1, "database-it").unwrap();
        let client = answered(|| pool.get()).await;
        // It waits for a checkpoint, and so for the disk.
        client
            .batch_execute("set statement_timeout = 0")
            .await
            .unwrap();
        let drop = format!("drop database \"{}\" with (force)", self.name);
        client.batch_execute(&drop).await.unwrap();
    }
}
