//! Where operations come from: one stream for each source.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use fastrand::Rng;
use judge::Change;

use super::{
    Account, Op, Planned, PlannedEdge, PlannedPost, PlannedRead, Population, ReaderKind, Thunder,
};
use crate::arrival::Arrival;
use crate::audience::Audience;
use crate::scenario::{Churn, Posts, Reading, Scenario, Schedule};

/// One source of operations.
pub(super) type Stream = Box<dyn Iterator<Item = Planned> + Send>;

/// Followers of one author whose follows may end in a run.
const MOST_LEAVING: usize = 4_096;

/// Authors whose followers may leave: a bound on what the plan remembers.
const MOST_LEFT: usize = 256;

/// Draws that may fail before an operation is left out.
const DRAWS: usize = 20;

/// Page size of readers who thunder, when the scenario has no readers of its own.
const PAGE_SIZE: u32 = 20;

/// Every stream of a scenario, apart from readers who thunder.
pub(super) fn all(
    scenario: &Scenario,
    population: &Arc<Population>,
) -> anyhow::Result<Vec<Stream>> {
    let duration = scenario.duration;
    let seed =
        |stream: u64| Rng::with_seed(scenario.seed.wrapping_mul(0x9E37_79B9).wrapping_add(stream));
    let mut streams: Vec<Stream> = Vec::new();
    if let Some(plan) = &scenario.posts {
        let share = scenario.probe.share;
        streams.push(posts(plan, share, duration, population, seed(1))?);
    }
    let page_size = scenario.readers.as_ref().map_or(PAGE_SIZE, |r| r.page_size);
    for schedule in &scenario.celebrities {
        streams.push(celebrities(schedule, page_size, scenario, population)?);
    }
    if let Some(reading) = &scenario.readers {
        streams.push(readers(reading, None, duration, population, seed(2))?);
    }
    if let Some(hot) = &scenario.hot_reader {
        let reader = population.hot_reader();
        streams.push(readers(
            &hot.reading,
            reader,
            duration,
            population,
            seed(3),
        )?);
    }
    if scenario.churn.unfollow_rate > 0.0 {
        streams.push(unfollows(&scenario.churn, duration, population, seed(4))?);
    }
    if scenario.churn.follow_rate > 0.0 {
        streams.push(follows(&scenario.churn, duration, population, seed(5))?);
    }
    Ok(streams)
}

fn posts(
    plan: &Posts,
    watched: f64,
    duration: Duration,
    population: &Arc<Population>,
    mut rng: Rng,
) -> anyhow::Result<Stream> {
    for &(class, _) in &plan.mix {
        ensure!(
            population.authors(class) > 0,
            "posts.mix.{}: the graph has no such author; change graph.users, graph.largest or the mix",
            class.key()
        );
    }
    let times = plan.arrivals.times(duration, rng.fork())?;
    let (plan, population) = (plan.clone(), Arc::clone(population));
    Ok(Box::new(times.filter_map(move |at| {
        let author = match draw(&plan.mix, &mut rng) {
            Some(class) => population.author_of(class, &mut rng)?,
            None => population.author(&mut rng)?,
        };
        let delete = rng.f64() < plan.delete_share;
        let delete_after = plan.delete_within.mul_f64(rng.f64());
        let repeat = rng.f64() < plan.repeat_share;
        let watch = rng.f64() < watched && !delete;
        let post = PlannedPost {
            author,
            audience: Audience::of(population.graph().follower_count(author)),
            delete_after: delete.then_some(delete_after),
            repeat,
            watcher: watch
                .then(|| population.watcher(author, &mut rng))
                .flatten(),
            thunder: None,
        };
        Some(Planned {
            at,
            op: Op::Post(post),
        })
    })))
}

/// A class by its share; none without a mix.
fn draw(mix: &[(Audience, f64)], rng: &mut Rng) -> Option<Audience> {
    let mut rest = rng.f64();
    for &(class, share) in mix {
        if rest < share {
            return Some(class);
        }
        rest -= share;
    }
    // Shares add up to 1 but for rounding.
    mix.last().map(|&(class, _)| class)
}

fn celebrities(
    schedule: &Schedule,
    page_size: u32,
    scenario: &Scenario,
    population: &Arc<Population>,
) -> anyhow::Result<Stream> {
    let thunder = (schedule.readers_per_mille > 0).then_some(Thunder {
        per_mille: schedule.readers_per_mille,
        within: schedule.readers_within,
        page_size,
    });
    let mut rng = Rng::with_seed(scenario.seed ^ schedule.first);
    let mut posts = Vec::new();
    for time in 0..schedule.times {
        let begin = schedule.at + times(schedule.every, time);
        if begin >= scenario.duration {
            break;
        }
        for index in 0..schedule.authors {
            let author = population
                .celebrity(schedule.first + index)
                .context("a schedule names a celebrity that the graph does not have")?;
            let at = begin
                + schedule
                    .within
                    .mul_f64(index as f64 / schedule.authors as f64);
            let watcher = (scenario.probe.share > 0.0 && schedule.delete_after.is_none())
                .then(|| population.watcher(author, &mut rng))
                .flatten();
            let post = PlannedPost {
                author,
                audience: Audience::of(population.graph().follower_count(author)),
                delete_after: schedule.delete_after,
                repeat: false,
                watcher,
                thunder,
            };
            posts.push(Planned {
                at,
                op: Op::Post(post),
            });
        }
    }
    posts.sort_by_key(|planned| planned.at);
    Ok(Box::new(posts.into_iter()))
}

fn times(span: Duration, count: u64) -> Duration {
    span.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Readers who come because of a post, spread evenly; who comes first follows from the graph.
pub(super) fn thunder(
    population: &Population,
    author: Account,
    thunder: Thunder,
    post_at: Duration,
) -> Stream {
    let audience = population.graph().follower_count(author);
    let count = audience.saturating_mul(thunder.per_mille) / 1_000;
    let readers: Vec<Account> = (population.graph().followers(author))
        .take(usize::try_from(count).unwrap_or(usize::MAX))
        .collect();
    Box::new((1_u64..).zip(readers).map(move |(number, reader)| {
        let read = PlannedRead {
            reader,
            kind: ReaderKind::Thundering,
            pages: 1,
            page_size: thunder.page_size,
        };
        Planned {
            at: post_at + thunder.within.mul_f64(number as f64 / count as f64),
            op: Op::Read(read),
        }
    }))
}

fn readers(
    reading: &Reading,
    reader: Option<Account>,
    duration: Duration,
    population: &Arc<Population>,
    mut rng: Rng,
) -> anyhow::Result<Stream> {
    let arrivals = reading.arrivals.times(duration, rng.fork())?;
    let (reading, population) = (reading.clone(), Arc::clone(population));
    Ok(Box::new(arrivals.map(move |at| {
        let read = PlannedRead {
            reader: reader.unwrap_or_else(|| population.anybody(&mut rng)),
            kind: if reader.is_some() {
                ReaderKind::Hot
            } else {
                ReaderKind::Ordinary
            },
            pages: rng.u32(1..=reading.pages),
            page_size: reading.page_size,
        };
        Planned {
            at,
            op: Op::Read(read),
        }
    })))
}

/// Follows that end: each edge at most once, so that its changes stay in order.
fn unfollows(
    churn: &Churn,
    duration: Duration,
    population: &Arc<Population>,
    mut rng: Rng,
) -> anyhow::Result<Stream> {
    let arrivals = Arrival::Poisson {
        rate: churn.unfollow_rate,
    };
    let arrivals = arrivals.times(duration, rng.fork())?;
    let (churn, population) = (churn.clone(), Arc::clone(population));
    let mut left: HashMap<Account, Vec<Account>> = HashMap::new();
    Ok(Box::new(arrivals.filter_map(move |at| {
        let edge = (0..DRAWS).find_map(|_| {
            let celebrity = rng.f64() < churn.celebrity_share;
            let followee = if celebrity {
                rng.choice(population.celebrities()).copied()
            } else {
                population.author(&mut rng)
            }?;
            if left.len() >= MOST_LEFT && !left.contains_key(&followee) {
                return None;
            }
            let followers = left
                .entry(followee)
                .or_insert_with(|| population.may_leave(followee, MOST_LEAVING));
            let index = (!followers.is_empty()).then(|| rng.usize(..followers.len()))?;
            Some((followers.swap_remove(index), followee))
        });
        let (follower, followee) = edge?;
        Some(Planned {
            at,
            op: Op::Edge(PlannedEdge {
                change: Change::Unfollow,
                follower,
                followee,
                back_after: churn.back_after,
            }),
        })
    })))
}

/// Follows that begin, of authors with small audiences: their followers are cheap to look through.
fn follows(
    churn: &Churn,
    duration: Duration,
    population: &Arc<Population>,
    mut rng: Rng,
) -> anyhow::Result<Stream> {
    let arrivals = Arrival::Poisson {
        rate: churn.follow_rate,
    };
    let arrivals = arrivals.times(duration, rng.fork())?;
    let population = Arc::clone(population);
    let mut begun = std::collections::HashSet::new();
    Ok(Box::new(arrivals.filter_map(move |at| {
        let edge = (0..DRAWS).find_map(|_| {
            let (follower, followee) = (
                population.anybody(&mut rng),
                population.author_of(Audience::Under100, &mut rng)?,
            );
            let new = follower != followee
                && !population
                    .graph()
                    .followers(followee)
                    .any(|f| f == follower)
                && begun.insert((follower, followee));
            new.then_some((follower, followee))
        });
        let (follower, followee) = edge?;
        Some(Planned {
            at,
            op: Op::Edge(PlannedEdge {
                change: Change::Follow,
                follower,
                followee,
                back_after: None,
            }),
        })
    })))
}
