//! Prepares a deployment: this run's own accounts and follows, and the journal that knows them.
//!
//! Every run has accounts of its own, named by the run, so that runs on one deployment do not meet.
//! With Postgres at hand the graph is loaded by COPY; without it, one by one through the API, which
//! is for small graphs.

use std::fs;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use database::Pool;
use events::{PostId, UserId};
use futures::{StreamExt, TryStreamExt, stream};
use graph::loader::{self, Input, Options, Progress};
use graph::{Graph, Shape};
use judge::{Change, JournalWriter};

use crate::accounts::Accounts;
use crate::client::{self, Client, Failure};
use crate::partition;
use crate::plan::{Account, Plan, Population, Summary};
use crate::scenario::{GraphPlan, Scenario};
use crate::screen::Screen;
use crate::target::Unfit;

/// The most follows that are made one by one.
const MOST_BY_API: u64 = 200_000;

/// Requests at once while the graph is made through the API.
const AT_ONCE: usize = 16;

/// How long a request of the preparation is repeated.
const PATIENCE: Duration = Duration::from_secs(30);

/// Follows that an account may have, when celebrities need more than the published figure.
const ROOM: u64 = 10_000;

/// What a run works with.
#[derive(Debug)]
pub struct Prepared {
    /// Who there is.
    pub population: Population,
    /// Their ids.
    pub accounts: Accounts,
    /// The journal, with accounts and follows noted.
    pub journal: JournalWriter,
}

/// The graph that a scenario asks for, when account `n` gets the id `id(n)`.
///
/// # Errors
/// When it cannot be had.
pub fn graph_of(plan: &GraphPlan, seed: u64, id: impl Fn(u64) -> UserId) -> anyhow::Result<Graph> {
    let mut shape = Shape::of(plan.users, seed);
    shape.exponent = plan.exponent.unwrap_or(shape.exponent);
    shape.smallest = plan.smallest.unwrap_or(shape.smallest);
    shape.largest = plan.largest.unwrap_or(shape.largest);
    if !plan.celebrities.is_empty() {
        shape.most_follows = shape.most_follows.max(ROOM);
    }
    shape.celebrities = if plan.same_partition {
        on_one_partition(plan, id)?
    } else {
        plan.celebrities.clone()
    };
    Graph::new(shape).context("graph")
}

/// Audiences of extra accounts such that those with followers share one partition: the others,
/// which hash elsewhere, get none.
fn on_one_partition(plan: &GraphPlan, id: impl Fn(u64) -> UserId) -> anyhow::Result<Vec<u64>> {
    let wanted = plan.celebrities.len();
    let mut found = vec![0; partition::PARTITIONS as usize];
    let mut partitions = Vec::new();
    let most = wanted * partition::PARTITIONS as usize * 20 + 100;
    let full = loop {
        ensure!(
            partitions.len() < most,
            "no partition gets {wanted} celebrities"
        );
        let account = plan.users + 1 + partitions.len() as u64;
        let partition = partition::of_author(id(account), partition::PARTITIONS);
        partitions.push(partition);
        if let Some(count) = found.get_mut(partition as usize) {
            *count += 1;
            if *count >= wanted {
                break partition;
            }
        }
    };
    let mut audiences = plan.celebrities.iter();
    let audience = |partition: u32| match partition == full {
        true => audiences.next().copied().unwrap_or(0),
        false => 0,
    };
    Ok(partitions.into_iter().map(audience).collect())
}

/// Counts the plan of a scenario without a deployment: ids do not change what is sent.
///
/// # Errors
/// When graph or plan cannot be had.
pub fn rehearse(scenario: &Scenario) -> anyhow::Result<Summary> {
    let accounts = Accounts::behind(0);
    let graph = graph_of(&scenario.graph, scenario.seed, |n| accounts.id(n))?;
    let population = Arc::new(Population::new(graph, scenario.hot_reader.is_some())?);
    Ok(Summary::of(Plan::new(scenario, &population)?, &population))
}

/// Makes accounts and follows, and begins the journal in `folder`.
///
/// # Errors
/// [`Unfit`]: the graph is too much for the API alone, or a store or API refuses.
pub async fn prepare(
    scenario: &Scenario,
    name: &str,
    client: &Client,
    database: Option<(&str, &Pool)>,
    folder: &Path,
    screen: &Screen,
) -> Result<Prepared, Unfit> {
    if database.is_none() {
        fits_the_api(scenario).map_err(Unfit::Usage)?;
    }
    let prepared = make(scenario, name, client, database, folder, screen);
    prepared.await.map_err(Unfit::Gone)
}

fn fits_the_api(scenario: &Scenario) -> anyhow::Result<()> {
    let plan = &scenario.graph;
    if plan.same_partition {
        bail!("graph.same_partition needs ids that follow one another: give --postgres");
    }
    let follows = follows_of(&graph_of(plan, scenario.seed, |_| UserId(0))?);
    ensure!(
        follows <= MOST_BY_API,
        "{follows} follows are too many to be made through the API (at most {MOST_BY_API}): give --postgres, or --set graph.users lower"
    );
    Ok(())
}

fn follows_of(graph: &Graph) -> u64 {
    let accounts = 1..=graph.accounts();
    accounts.map(|account| graph.follower_count(account)).sum()
}

async fn make(
    scenario: &Scenario,
    name: &str,
    client: &Client,
    database: Option<(&str, &Pool)>,
    folder: &Path,
    screen: &Screen,
) -> anyhow::Result<Prepared> {
    let (graph, accounts) = match database {
        Some((url, pool)) => by_copy(scenario, name, url, pool, screen).await?,
        None => by_api(scenario, name, client, screen).await?,
    };
    let population = Population::new(graph, scenario.hot_reader.is_some())?;
    let accounts = match population.hot_reader() {
        Some(hot) => {
            let handle = format!("{name}_hot");
            let id = insist(|| client.create_user(&handle)).await?;
            accounts.with_hot_reader(hot, id)
        }
        None => accounts,
    };
    let journal = begin_journal(folder)?;
    if let Some((_, pool)) = database {
        journal.beside_others(last_post(pool).await?)?;
    }
    for range in accounts.ranges(population.graph().accounts()) {
        journal.users(range)?;
    }
    match accounts.offset() {
        Some(offset) => {
            let add = u64::try_from(offset).context("ids are positive")?;
            journal.graph(population.graph().shape(), add)?;
        }
        None => note_follows(&journal, &population, &accounts)?,
    }
    if let Some(hot) = &scenario.hot_reader {
        screen.say(&format!("the hot reader follows {} authors …", hot.follows));
        follow_many(hot.follows, &population, &accounts, &journal, client).await?;
    }
    Ok(Prepared {
        population,
        accounts,
        journal,
    })
}

async fn by_copy(
    scenario: &Scenario,
    name: &str,
    url: &str,
    pool: &Pool,
    screen: &Screen,
) -> anyhow::Result<(Graph, Accounts)> {
    let row = pool
        .get()
        .await?
        .query_one("select coalesce(max(id), 0) from tideline.users", &[])
        .await
        .context("looking for the last account")?;
    let offset: i64 = row.try_get(0)?;
    let accounts = Accounts::behind(offset);
    let graph = graph_of(&scenario.graph, scenario.seed, |n| accounts.id(n))?;
    let options = Options {
        accounts: loader::Accounts::Ids {
            add: u64::try_from(offset).context("ids are positive")?,
            prefix: format!("{name}_"),
        },
        ..Options::default()
    };
    let input = Input::Graph(Box::new(graph.clone()));
    let outcome = loader::load(input, url, &options, |progress| match progress {
        Progress::Reading { edges, .. } => screen.say(&format!("graph: {edges} follows made up")),
        Progress::Following { edges, of } => {
            screen.say(&format!("graph: {edges} of {of} follows loaded"));
        }
        Progress::Accounts | Progress::Sorting => {}
    });
    let outcome = outcome.await.context("loading the graph")?;
    screen.say(&format!(
        "graph: {} accounts and {} follows loaded",
        outcome.accounts_made, outcome.follows_made
    ));
    Ok((graph, accounts))
}

async fn by_api(
    scenario: &Scenario,
    name: &str,
    client: &Client,
    screen: &Screen,
) -> anyhow::Result<(Graph, Accounts)> {
    let graph = graph_of(&scenario.graph, scenario.seed, |_| UserId(0))?;
    let follows = follows_of(&graph);
    screen.say(&format!(
        "graph: {} accounts and {follows} follows through the API …",
        graph.accounts()
    ));
    let made = stream::iter(1..=graph.accounts())
        .map(|account| {
            let handle = format!("{name}_{account}");
            async move { insist(|| client.create_user(&handle)).await }
        })
        .buffered(AT_ONCE);
    let ids: Vec<UserId> = made.try_collect().await.context("making the accounts")?;
    let accounts = Accounts::listed(ids);
    let edges = graph
        .edges()
        .map(|(follower, followee)| (accounts.id(follower), accounts.id(followee)));
    let done = stream::iter(edges).map(|(follower, followee)| async move {
        insist(|| client.change(Change::Follow, follower, followee)).await
    });
    let done = done.buffer_unordered(AT_ONCE).try_collect::<()>();
    done.await.context("making the follows")?;
    Ok((graph, accounts))
}

/// The newest post of anybody: what is there already is not this run's.
async fn last_post(pool: &Pool) -> anyhow::Result<PostId> {
    let client = pool.get().await?;
    let row = client
        .query_one("select coalesce(max(id), 0) from tideline.posts", &[])
        .await
        .context("looking for the last post")?;
    Ok(PostId(row.try_get(0)?))
}

/// An earlier journal of the same folder is kept beside it: it may hold what a crash left.
fn begin_journal(folder: &Path) -> anyhow::Result<JournalWriter> {
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let path = folder.join(crate::JOURNAL);
    if path.exists() {
        let before = folder.join(format!("previous-{}", crate::JOURNAL));
        fs::rename(&path, &before).with_context(|| format!("moving {}", path.display()))?;
    }
    JournalWriter::create(&path).with_context(|| format!("making {}", path.display()))
}

fn note_follows(
    journal: &JournalWriter,
    population: &Population,
    accounts: &Accounts,
) -> anyhow::Result<()> {
    for author in 1..=population.graph().accounts() {
        let followers = population.graph().followers(author);
        let followers: Vec<UserId> = followers.map(|follower| accounts.id(follower)).collect();
        if !followers.is_empty() {
            journal.follows(accounts.id(author), &followers)?;
        }
    }
    Ok(())
}

async fn follow_many(
    count: u64,
    population: &Population,
    accounts: &Accounts,
    journal: &JournalWriter,
    client: &Client,
) -> anyhow::Result<()> {
    let Some(hot) = population.hot_reader() else {
        return Ok(());
    };
    let authors: Vec<Account> = population.hot_follows(count).collect();
    let done = stream::iter(authors).map(|author| async move {
        let (follower, followee) = (accounts.id(hot), accounts.id(author));
        let entry = journal.edge_sent(Change::Follow, follower, followee)?;
        insist(|| client.change(Change::Follow, follower, followee)).await?;
        journal.edge_acked(entry)?;
        anyhow::Ok(())
    });
    let done = done.buffer_unordered(AT_ONCE).try_collect::<()>();
    done.await.context("the hot reader follows")
}

/// Sends while the outcome is unknown.
async fn insist<T, F>(attempt: impl Fn() -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    client::insist(PATIENCE, || (), attempt).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn celebrities_share_a_partition() {
        let plan = GraphPlan {
            users: 1_000,
            exponent: None,
            smallest: None,
            largest: None,
            celebrities: vec![300; 10],
            same_partition: true,
        };
        for offset in [0, 77, 123_456] {
            let accounts = Accounts::behind(offset);
            let graph = graph_of(&plan, 3, |n| accounts.id(n)).unwrap();
            let population = Population::new(graph, false).unwrap();
            let partitions: Vec<u32> = (0..10)
                .map(|index| population.celebrity(index).unwrap())
                .map(|account| partition::of_author(accounts.id(account), partition::PARTITIONS))
                .collect();
            assert!(
                partitions.iter().all(|p| *p == partitions[0]),
                "{partitions:?}"
            );
            assert_eq!(population.celebrities().len(), 10);
            let audience = population
                .graph()
                .follower_count(population.celebrities()[9]);
            assert_eq!(audience, 300);
        }
    }

    #[test]
    fn a_graph_that_cannot_be_had_is_told() {
        let plan = GraphPlan {
            users: 10,
            exponent: None,
            smallest: Some(50),
            largest: None,
            celebrities: Vec::new(),
            same_partition: false,
        };
        let error = graph_of(&plan, 1, |_| UserId(0)).unwrap_err();
        assert!(format!("{error:#}").contains("50"), "{error:#}");
    }
}
