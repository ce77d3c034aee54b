-- The account: what the sweep needs to find what was committed and is in no stage, to deliver it
-- again once, and to say at any time what is missing and why.

-- ── Ledger in blocks ────────────────────────────────────────────────────────────────────────────

-- A block is 65 536 ids. Writers split their batches at block borders, the sweep folds the rows of
-- a block into one, and adjoining complete blocks into one row that spans them.
alter table tideline.delivery_ledger
    add column block      bigint generated always as (lower(ids) / 65536) stored,
    add column last_block bigint generated always as ((upper(ids) - 1) / 65536) stored;

create index delivery_ledger_by_block on tideline.delivery_ledger (stage, block);

-- The newest epoch, for the statement that enters ids. Whoever starts an epoch holds the lock
-- alone, so an entry is either there to be doubted or finds the new epoch and is refused. VOLATILE
-- matters: the second statement takes a snapshot after the lock was had.
create function tideline.ledger_epoch() returns bigint
    language plpgsql volatile
    as $$
begin
    -- 1953064037 is "tide" as a number; 1 is the lock of the ledger's rewrites.
    perform pg_advisory_xact_lock_shared(1953064037, 1);
    return (select max(epoch) from tideline.epoch);
end
$$;

-- ── Outbox days ─────────────────────────────────────────────────────────────────────────────────

-- As in version 1, and: nobody waits long. ATTACH wants the default partition for itself, and who
-- comes after it waits with it. Whether the day is there is asked of the catalog's rows, since
-- to_regclass() may answer from before the lock was had.
create or replace function tideline.ensure_outbox_day(outbox_day date) returns text
    language plpgsql volatile
    set lock_timeout = '200ms'
    as $$
declare
    leaf  text        := 'outbox_' || to_char(outbox_day, 'YYYYMMDD');
    since timestamptz := outbox_day::timestamp at time zone 'UTC';
    until timestamptz := (outbox_day + 1)::timestamp at time zone 'UTC';
begin
    -- Two callers at once make the day once.
    perform pg_advisory_xact_lock(hashtextextended('tideline.ensure_outbox_day', 0));
    if exists (select from pg_class where relname = leaf and relnamespace = 'tideline'::regnamespace) then
        return 'present';
    end if;
    if exists (select from tideline.outbox_default where created_at >= since and created_at < until) then
        return 'blocked';
    end if;
    execute format('create table tideline.%I (like tideline.outbox including defaults including constraints)', leaf);
    execute format('alter table tideline.outbox attach partition tideline.%I for values from (%L) to (%L)',
                   leaf, since, until);
    return 'created';
end
$$;

-- ── Gaps ────────────────────────────────────────────────────────────────────────────────────────

-- Ids that no row has been seen for: rolled back, or of a transaction that is still open. A note
-- for metrics and for not reading the same nothing every round. A row that exists always beats a
-- note: claims and drops never read this table, and noted ranges are read again every hour.
create table tideline.outbox_void (
    entry     bigint generated always as identity primary key,
    ids       int8multirange not null,
    xmax_seen xid8 not null,                -- above every xid that was given out when the gap was first seen
    seen_at   timestamptz not null default clock_timestamp()
);

-- ── Re-delivery ─────────────────────────────────────────────────────────────────────────────────

-- What the sweep has sent again. Written in the transaction that holds the claim, after the broker
-- has acknowledged. last_at above a look's time means: another sweeper was faster.
create table tideline.redelivery (
    stage    text   not null,
    event_id bigint not null,
    attempts integer not null,
    last_at  timestamptz not null default clock_timestamp(),
    primary key (stage, event_id)
);

-- Events that will never pass the stage, with the reason: too_old, no_post.
create table tideline.discarded (
    stage        text   not null,
    event_id     bigint not null,
    reason       text   not null,
    discarded_at timestamptz not null default clock_timestamp(),
    primary key (stage, event_id)
);

-- "Look now": by the relay after a slot was lost, by fan-out after offsets were lost, by people.
create table tideline.sweep_request (
    request      bigint generated always as identity primary key,
    reason       text   not null,
    low          bigint,                    -- first id in doubt; null: all
    high         bigint,                    -- last id in doubt; null: all
    requested_at timestamptz not null default clock_timestamp(),
    honoured_at  timestamptz                -- when a look had been taken after it
);

create index sweep_request_open on tideline.sweep_request (request) where honoured_at is null;
