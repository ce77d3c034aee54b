//! What is captured. Each scenario shows one thing a server does; schema and
//! search path are `golden`.

/// One golden stream.
pub(crate) struct Scenario {
    /// Name of its files.
    pub(crate) name: &'static str,
    /// Before the slot exists.
    pub(crate) prepare: &'static [&'static str],
    /// What follows `CREATE PUBLICATION golden`.
    pub(crate) publication: &'static str,
    /// What the slot sees; each text is sent on its own.
    pub(crate) run: &'static [&'static str],
}

const POSTS: &[&str] = &["CREATE TABLE posts (id bigint PRIMARY KEY, body text)"];
const ALL: &str = "FOR ALL TABLES";

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "plain_insert",
        prepare: POSTS,
        publication: ALL,
        run: &["INSERT INTO posts VALUES (1, 'first')"],
    },
    Scenario {
        name: "many_types",
        prepare: &[
            "CREATE TABLE everything (id bigint PRIMARY KEY, small smallint, flag boolean, \
             doc jsonb, note text, raw bytea, key uuid, at timestamptz, price numeric, ratio float8, \
             tags text[], span interval)",
        ],
        publication: ALL,
        run: &[
            "INSERT INTO everything VALUES (-9223372036854775808, -1, true, \
             '{\"text\": \"wave \u{1F30A} 日本\"}', '', '\\x00ff10', \
             '01234567-89ab-cdef-0123-456789abcdef', '2026-11-29 18:58:55.123456+01', \
             12345678901234567890.0123456789, 0.1, '{a,\"b c\",NULL}', '1 day 02:03:04.5')",
            "INSERT INTO everything (id) VALUES (2)",
            "INSERT INTO everything (id, at, raw) VALUES (3, 'infinity', ''), \
             (4, '0044-03-15 12:00:00+00 BC', NULL)",
        ],
    },
    Scenario {
        name: "update_key_and_full",
        prepare: &[
            "CREATE TABLE posts (id bigint PRIMARY KEY, body text)",
            "CREATE TABLE whole (id bigint, body text)",
            "ALTER TABLE whole REPLICA IDENTITY FULL",
            "CREATE TABLE indexed (id bigint NOT NULL, code text NOT NULL UNIQUE)",
            "ALTER TABLE indexed REPLICA IDENTITY USING INDEX indexed_code_key",
        ],
        publication: ALL,
        run: &[
            "INSERT INTO posts VALUES (1, 'a'); INSERT INTO whole VALUES (1, NULL); \
             INSERT INTO indexed VALUES (1, 'x')",
            "UPDATE posts SET body = 'same key'",
            "UPDATE posts SET id = 2",
            "UPDATE whole SET body = 'was null'",
            "UPDATE indexed SET code = 'y'",
        ],
    },
    Scenario {
        name: "delete",
        prepare: &[
            "CREATE TABLE posts (id bigint PRIMARY KEY, body text)",
            "CREATE TABLE whole (id bigint, body text)",
            "ALTER TABLE whole REPLICA IDENTITY FULL",
        ],
        publication: ALL,
        run: &[
            "INSERT INTO posts VALUES (1, 'a'); INSERT INTO whole VALUES (1, 'b')",
            "DELETE FROM posts",
            "DELETE FROM whole",
        ],
    },
    Scenario {
        name: "truncate",
        prepare: &[
            "CREATE TABLE posts (id bigint PRIMARY KEY, body text)",
            "CREATE TABLE replies (id bigserial PRIMARY KEY, post bigint REFERENCES posts)",
        ],
        publication: ALL,
        run: &[
            "TRUNCATE replies",
            "TRUNCATE posts RESTART IDENTITY CASCADE",
        ],
    },
    Scenario {
        name: "multi_row_transaction",
        prepare: &[
            "CREATE TABLE posts (id bigint PRIMARY KEY, body text)",
            "CREATE TABLE outbox (id bigint PRIMARY KEY, key bigint, payload text)",
        ],
        publication: "FOR TABLE outbox WITH (publish = 'insert')",
        run: &["BEGIN; INSERT INTO posts VALUES (1, 'not published'); \
             INSERT INTO outbox SELECT n, 7, 'event ' || n FROM generate_series(1, 3) n; \
             UPDATE outbox SET payload = 'not published' WHERE id = 2; COMMIT"],
    },
    Scenario {
        name: "copy",
        prepare: POSTS,
        publication: ALL,
        run: &["COPY posts FROM PROGRAM 'printf \"1\\tone\\n2\\ttwo\\n3\\t\\\\\\\\N\\n\"'"],
    },
    Scenario {
        name: "relation_again",
        prepare: POSTS,
        publication: ALL,
        run: &[
            "INSERT INTO posts VALUES (1, 'before')",
            "VACUUM posts",
            "INSERT INTO posts VALUES (2, 'the same description again')",
            "ALTER TABLE posts ADD COLUMN lang varchar(8) DEFAULT 'en'",
            "INSERT INTO posts VALUES (3, 'one column more', 'de')",
            "ALTER TABLE posts DROP COLUMN body",
            "INSERT INTO posts VALUES (4, 'fr')",
        ],
    },
    Scenario {
        name: "partition_root",
        prepare: PARTITIONED,
        publication: "FOR TABLE outbox WITH (publish = 'insert', publish_via_partition_root = true)",
        run: PARTITION_ROWS,
    },
    Scenario {
        name: "partition_leaf",
        prepare: PARTITIONED,
        publication: "FOR TABLE outbox WITH (publish = 'insert')",
        run: PARTITION_ROWS,
    },
    Scenario {
        name: "logical_message",
        prepare: POSTS,
        publication: ALL,
        run: &[
            "SELECT pg_logical_emit_message(false, 'tideline', 'outside of transactions')",
            "BEGIN; INSERT INTO posts VALUES (1, 'row'); \
             SELECT pg_logical_emit_message(true, 'tideline', '\\x00ff'::bytea); COMMIT",
            "SELECT pg_logical_emit_message(true, 'heartbeat', '')",
        ],
    },
    Scenario {
        name: "origin",
        prepare: &[
            "CREATE TABLE posts (id bigint PRIMARY KEY, body text)",
            "SELECT pg_replication_origin_drop(roname) FROM pg_replication_origin",
            "SELECT pg_replication_origin_create('elsewhere')",
        ],
        publication: ALL,
        run: &[
            "SELECT pg_replication_origin_session_setup('elsewhere')",
            "BEGIN; SELECT pg_replication_origin_xact_setup('16/B374D848', '2026-11-29 12:00:00+00'); \
             INSERT INTO posts VALUES (1, 'from elsewhere'); COMMIT",
            "SELECT pg_replication_origin_session_reset()",
            "INSERT INTO posts VALUES (2, 'from here')",
        ],
    },
    Scenario {
        name: "type_message",
        prepare: &[
            "CREATE TYPE mood AS ENUM ('calm', 'wild')",
            "CREATE DOMAIN short AS varchar(8)",
            "CREATE TABLE posts (id bigint PRIMARY KEY, mood mood, tag short)",
        ],
        publication: ALL,
        run: &["INSERT INTO posts VALUES (1, 'wild', 'sea')"],
    },
    Scenario {
        name: "savepoint_rollback",
        prepare: POSTS,
        publication: ALL,
        run: &[
            "BEGIN; INSERT INTO posts VALUES (1, 'kept'); SAVEPOINT s; \
             INSERT INTO posts VALUES (2, 'rolled back'); ROLLBACK TO s; \
             INSERT INTO posts VALUES (3, 'kept too'); COMMIT",
            "BEGIN; INSERT INTO posts VALUES (4, 'all rolled back'); ROLLBACK",
            "INSERT INTO posts VALUES (5, 'after')",
        ],
    },
    Scenario {
        name: "unchanged_toast",
        prepare: &[
            "CREATE TABLE posts (id bigint PRIMARY KEY, seen int, body text)",
            "ALTER TABLE posts ALTER COLUMN body SET STORAGE EXTERNAL",
            "INSERT INTO posts VALUES (1, 0, repeat('long ', 800))",
        ],
        publication: ALL,
        run: &["UPDATE posts SET seen = 1"],
    },
];

/// A leaf that was attached with another column order.
const PARTITIONED: &[&str] = &[
    "CREATE TABLE outbox (day date NOT NULL, id bigint NOT NULL, payload text) \
     PARTITION BY RANGE (day)",
    "CREATE TABLE outbox_1 PARTITION OF outbox FOR VALUES FROM ('2026-11-01') TO ('2026-11-02')",
    "CREATE TABLE outbox_2 (payload text, id bigint NOT NULL, day date NOT NULL)",
    "ALTER TABLE outbox ATTACH PARTITION outbox_2 FOR VALUES FROM ('2026-11-02') TO ('2026-11-03')",
];

const PARTITION_ROWS: &[&str] = &[
    "INSERT INTO outbox VALUES ('2026-11-01', 1, 'first leaf')",
    "BEGIN; INSERT INTO outbox VALUES ('2026-11-02', 2, 'other column order'); \
     INSERT INTO outbox VALUES ('2026-11-01', 3, 'first leaf again'); COMMIT",
    "CREATE TABLE outbox_3 PARTITION OF outbox FOR VALUES FROM ('2026-11-03') TO ('2026-11-04')",
    "INSERT INTO outbox VALUES ('2026-11-03', 4, 'new leaf')",
];
