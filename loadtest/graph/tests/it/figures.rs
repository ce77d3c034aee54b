//! The generated graph against the published figures of Higgs/Twitter.

use graph::{
    Graph, Shape,
    figures::{Figures, HIGGS, Histogram},
};

/// Audiences are dealt without looking at edges, so the full size is cheap.
#[test]
fn audiences_of_the_published_size_have_the_published_figures() {
    let accounts = HIGGS.accounts.unwrap();
    let graph = Graph::new(Shape::of(accounts, 1)).unwrap();
    let mut histogram = Histogram::default();
    (1..=accounts).for_each(|author| histogram.add(graph.follower_count(author)));
    let followers = histogram.degrees();
    let largest = followers.largest as f64 / HIGGS.most_followers.unwrap() as f64;
    assert!((0.95..=1.0).contains(&largest), "{followers:?}");
    let edges = histogram.total() as f64 / HIGGS.edges.unwrap() as f64;
    assert!(
        (0.9..1.1).contains(&edges),
        "{edges} of the published edges"
    );
    let tail = followers.tail.unwrap();
    assert!(
        (tail.exponent - HIGGS.followers_exponent.unwrap()).abs() < 0.05,
        "{tail:?}"
    );
}

#[test]
fn follows_have_the_published_figures() {
    let figures = Figures::of(&Graph::new(Shape::of(60_000, 1)).unwrap());
    let most = HIGGS.most_follows.unwrap();
    assert!(
        (most / 2..=most).contains(&figures.follows.largest),
        "{figures:?}"
    );
    let tail = figures.follows.tail.unwrap();
    assert!(
        (tail.exponent - HIGGS.follows_exponent.unwrap()).abs() < 0.15,
        "{tail:?}"
    );
    for side in [figures.followers, figures.follows] {
        assert!((side.gini - HIGGS.gini.unwrap()).abs() < 0.05, "{side:?}");
    }
    assert!((figures.follows.mean - figures.followers.mean).abs() < 1e-9);
}

#[test]
fn another_exponent_is_what_is_found() {
    let shape = Shape {
        exponent: 2.276,
        ..Shape::of(80_000, 2)
    };
    let graph = Graph::new(shape).unwrap();
    let mut histogram = Histogram::default();
    (1..=80_000).for_each(|author| histogram.add(graph.follower_count(author)));
    let tail = histogram.degrees().tail.unwrap();
    assert!((tail.exponent - 2.276).abs() < 0.05, "{tail:?}");
}
