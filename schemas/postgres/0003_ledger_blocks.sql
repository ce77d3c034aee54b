-- The ledger is found by block, and every outbox row has a time.

-- ── Delivery account ────────────────────────────────────────────────────────────────────────────

-- A row is found by the blocks it spans. An index of the ids themselves (GiST) was never small: its
-- pages keep the places of rows that were folded away, and took more than the rows (ADR 0014).
drop index tideline.delivery_ledger_by_id;
drop index tideline.delivery_ledger_by_block;
create index delivery_ledger_by_block on tideline.delivery_ledger (stage, block, last_block);

-- Whether an id has passed a stage, by its own entries.
create function tideline.has_entry(id bigint, of_stage text) returns boolean
    language sql stable
    return exists (
        select from tideline.delivery_ledger l
        where l.stage = of_stage and l.block <= id / 65536 and l.last_block >= id / 65536
          and l.ids @> id);

-- ── Outbox days ─────────────────────────────────────────────────────────────────────────────────

-- A row whose time is infinity would be in no day and in no look. Rows of days have times of their
-- day, so only the default partition has to refuse. NOT VALID: rows that are there stay.
alter table tideline.outbox_default
    add constraint outbox_created_at_is_finite check (isfinite(created_at)) not valid;
