//! The measurements in their order: finding in a growing outbox, what the account takes, how fast
//! rows travel.

use std::fs;

use anyhow::Context;
use database::{clock, epoch};

use crate::{
    Part, Scale, comparison,
    deployment::Servers,
    find,
    flow::Backlog,
    idle, ledger,
    machine::Machine,
    outbox::{GAP_EVERY, Outbox},
    process::FOLDER,
    report::{Finding, Report, Travelling},
};

/// Missing rows at every size of the outbox.
const MISSING: usize = 1_000;
/// Missing rows at the largest size, to show what the time grows with.
const LESS_AND_MORE: [usize; 2] = [100, 10_000];

/// Rows of the backlog at least: fewer are gone before they can be counted.
const FEWEST: i64 = 20_000;

/// Measures everything, or one part; prints what it is at, and writes the result to a file.
pub(crate) async fn measure(servers: &Servers, scale: Scale) -> anyhow::Result<Report> {
    let wants = |part| scale.only.is_none_or(|only| only == part);
    let machine = Machine::look(servers.maintenance()).await?;
    let mut report = Report {
        rows: scale.rows,
        runs: scale.runs,
        gap_every: GAP_EVERY,
        machine,
        finding: None,
        travelling: None,
    };
    if wants(Part::Find) {
        let finding = Box::pin(finding(servers, scale)).await.context("finding")?;
        report.finding = Some(finding);
        // The large outbox is in the way of nothing once it is gone.
        servers.remove_all().await?;
    }
    if wants(Part::Flow) {
        let travelling = Box::pin(travelling(servers, scale))
            .await
            .context("travelling")?;
        report.travelling = Some(travelling);
    }
    let path = format!("{FOLDER}/sweep.json");
    fs::create_dir_all(FOLDER).with_context(|| format!("making {FOLDER}"))?;
    fs::write(&path, report.json()?).with_context(|| format!("writing {path}"))?;
    say(&format!("written: {path}"));
    Ok(report)
}

/// One outbox that grows, with a look at each size.
async fn finding(servers: &Servers, Scale { rows, runs, .. }: Scale) -> anyhow::Result<Finding> {
    let deployment = servers.deploy("find").await?;
    let (sql, pool) = (deployment.sql().await?, deployment.pool()?);
    let mut client = pool.get().await?;
    let epoch = epoch::current(&client).await?.epoch;
    let mut outbox = Outbox::new(rows, clock::now(&client).await?);
    let mut found = Vec::new();
    let mut ledger = ledger::Size::default();
    for size in [rows / 10, rows / 5, rows] {
        say(&format!("outbox of {size} ids: filling …"));
        let low = outbox.high;
        outbox.fill(&sql, size + 1).await?;
        sql.batch_execute("vacuum (analyze) tideline.outbox")
            .await?;
        say("  ledger: entering and folding …");
        ledger::fill(&mut client, &outbox, low, epoch).await?;
        find::settle_gaps(&pool).await?;
        // Before ids are taken out and put in again, which is no part of a ledger's life.
        ledger = ledger::size(&client, &outbox).await?;
        say(&format!("  looks for {MISSING} missing rows …"));
        found.push(find::missing(&pool, &mut outbox, MISSING, runs, epoch).await?);
    }
    let mut by_missing = Vec::new();
    for missing in LESS_AND_MORE {
        say(&format!("  looks for {missing} missing rows …"));
        by_missing.push(find::missing(&pool, &mut outbox, missing, runs, epoch).await?);
    }
    say("  rounds with nothing missing …");
    let idle = idle::idle(&pool, runs).await?;
    say("  comparison: statements that read every row …");
    let whole_outbox = comparison::whole_outbox(&sql, runs).await?;
    Ok(Finding {
        found,
        by_missing,
        idle,
        ledger,
        whole_outbox,
    })
}

async fn travelling(
    servers: &Servers,
    Scale { rows, runs, .. }: Scale,
) -> anyhow::Result<Travelling> {
    let deployment = servers.deploy("flow").await?;
    let backlog_rows = (rows / 10).max(FEWEST);
    say(&format!("backlog of {backlog_rows} rows: filling …"));
    let backlog = Backlog::make(&deployment, backlog_rows).await?;
    let rates = backlog.rates(runs, say).await?;
    say("comparison: an entry against a mark on each row …");
    let (sql, pool) = (deployment.sql().await?, deployment.pool()?);
    let epoch = epoch::current(&pool.get().await?).await?.epoch;
    let accounting = comparison::accounting(&pool, &sql, backlog_rows, runs, epoch).await?;
    Ok(Travelling { accounting, rates })
}

fn say(line: &str) {
    println!("{line}");
}
