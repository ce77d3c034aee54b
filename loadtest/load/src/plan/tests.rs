//! What a plan holds: its operations, their order, that it follows from the seed.

use std::collections::BTreeSet;

use graph::{Graph, Shape};

use super::*;
use crate::scenario::Overrides;

fn population(users: u64, celebrities: &[u64]) -> Arc<Population> {
    let shape = Shape {
        celebrities: celebrities.to_vec(),
        ..Shape::of(users, 5)
    };
    Arc::new(Population::new(Graph::new(shape).unwrap(), true).unwrap())
}

fn scenario(text: &str) -> Scenario {
    Scenario::parse("test", text, &Overrides::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn plan(scenario: &Scenario, population: &Arc<Population>) -> Vec<Planned> {
    Plan::new(scenario, population).unwrap().collect()
}

const MIXED: &str = r#"
duration = "20s"
[graph]
users = 3_000
celebrities = [1_000, 2_000]
[posts]
arrivals = { process = "constant", rate = 100.0 }
mix = { under_100 = 0.75, under_1k = 0.25 }
delete_share = 0.1
repeat_share = 0.05
[[celebrities]]
first = 1
at = "5s"
times = 2
every = "4s"
readers_share = 0.1
readers_within = "2s"
[readers]
arrivals = { process = "constant", rate = 10.0 }
[churn]
unfollow_rate = 20.0
follow_rate = 5.0
back_after = "1s"
celebrity_share = 0.5
[probe]
share = 0.2
"#;

#[test]
fn a_plan_is_ascending_and_decided_by_the_seed() {
    let (mut scenario, population) = (scenario(MIXED), population(3_000, &[1_000, 2_000]));
    let first = plan(&scenario, &population);
    assert!(first.is_sorted_by_key(|planned| planned.at));
    assert_eq!(first, plan(&scenario, &population));
    scenario.seed = 2;
    assert_ne!(first, plan(&scenario, &population));
}

#[test]
fn rates_shares_and_classes_are_as_asked() {
    let (scenario, population) = (scenario(MIXED), population(3_000, &[1_000, 2_000]));
    let summary = Summary::of(Plan::new(&scenario, &population).unwrap(), &population);
    assert_eq!(summary.posts.iter().sum::<u64>(), 2_000 + 2);
    let large = summary.posts[Audience::Under1k.index()];
    assert!((420..580).contains(&large), "a quarter of 2000: {large}");
    assert_eq!(summary.posts[Audience::Under10k.index()], 2);
    assert_eq!(summary.rows[Audience::Under10k.index()], 2 * 2_000);
    assert!((150..250).contains(&summary.deletes), "{}", summary.deletes);
    assert!((60..140).contains(&summary.repeats), "{}", summary.repeats);
    assert_eq!(summary.readers, [200, 2 * 200, 0]);
    let shown = summary.to_string();
    assert!(shown.contains("< 10 k followers"), "{shown}");
}

#[test]
fn readers_thunder_in_time_after_their_post_and_are_followers() {
    let (scenario, population) = (scenario(MIXED), population(3_000, &[1_000, 2_000]));
    let celebrity = population.celebrity(1).unwrap();
    let followers: BTreeSet<Account> = population.graph().followers(celebrity).collect();
    let mut since = Vec::new();
    for planned in plan(&scenario, &population) {
        match planned.op {
            Op::Read(read) if read.kind == ReaderKind::Thundering => {
                assert!(followers.contains(&read.reader));
                since.push(planned.at);
            }
            _ => {}
        }
    }
    let first = Duration::from_secs(5);
    let early = since.iter().take(200);
    assert!(
        early
            .clone()
            .all(|at| *at > first && *at <= first + Duration::from_secs(2))
    );
}

#[test]
fn each_edge_changes_at_most_once_and_is_what_it_says() {
    let (scenario, population) = (scenario(MIXED), population(3_000, &[1_000, 2_000]));
    let mut seen = BTreeSet::new();
    let mut watched = BTreeSet::new();
    let mut changed = BTreeSet::new();
    for planned in plan(&scenario, &population) {
        match planned.op {
            Op::Edge(edge) => {
                assert!(seen.insert((edge.follower, edge.followee)), "{edge:?}");
                let mut followers = population.graph().followers(edge.followee);
                let there = followers.any(|follower| follower == edge.follower);
                assert_eq!(there, edge.change == Change::Unfollow, "{edge:?}");
                let _new = changed.insert((edge.follower, edge.followee));
            }
            Op::Post(post) => watched.extend(post.watcher.map(|w| (w, post.author))),
            Op::Read(_) => {}
        }
    }
    assert!(changed.len() > 300, "{}", changed.len());
    assert!(watched.len() > 100, "{}", watched.len());
    assert!(watched.is_disjoint(&changed), "a watcher stays a follower");
}

#[test]
fn one_more_stream_leaves_the_others_as_they_were() {
    let population = population(3_000, &[1_000, 2_000]);
    let (with, mut without) = (scenario(MIXED), scenario(MIXED));
    without.readers = None;
    let posts = |scenario: &Scenario| {
        let mut posts = plan(scenario, &population);
        posts.retain(|planned| matches!(planned.op, Op::Post(_)));
        posts
    };
    assert_eq!(posts(&with), posts(&without));
}

#[test]
fn a_class_that_the_graph_lacks_is_named() {
    let text = MIXED.replace("under_1k = 0.25", "over_100k = 0.25");
    let error = Plan::new(&scenario(&text), &population(3_000, &[1_000, 2_000])).unwrap_err();
    assert!(error.to_string().contains("posts.mix.over_100k"), "{error}");
}
