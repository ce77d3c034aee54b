//! `graph describe`: what a generated graph looks like, beside published figures.

use std::io::{self, Write};

use comfy_table::{Table, presets::UTF8_FULL_CONDENSED};
use graph::figures::{Figures, HIGGS, Published, TWITTER_2009, Tail};

use super::{Failure, ShapeArguments};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    shape: ShapeArguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let figures = Figures::of(&arguments.shape.graph()?);
    writeln!(io::stdout(), "{}", table(&figures)).map_err(Failure::output)
}

fn table(figures: &Figures) -> Table {
    let (followers, follows) = (&figures.followers, &figures.follows);
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(["", "generated", HIGGS.name, TWITTER_2009.name]);
    let mut row = |name: &str, generated: String, published: fn(&Published) -> Option<String>| {
        let published = |of| published(of).unwrap_or_else(|| "-".to_owned());
        let cells = [
            name.to_owned(),
            generated,
            published(&HIGGS),
            published(&TWITTER_2009),
        ];
        table.add_row(cells);
    };
    row("accounts", figures.accounts.to_string(), |p| {
        text(p.accounts)
    });
    row("follows", figures.edges.to_string(), |p| text(p.edges));
    row("mean of followers", format!("{:.1}", followers.mean), |p| {
        Some(format!("{:.1}", p.edges? as f64 / p.accounts? as f64))
    });
    row("median of followers", followers.median.to_string(), |_| {
        None
    });
    row("most followers", followers.largest.to_string(), |p| {
        text(p.most_followers)
    });
    row("exponent of followers", tail(followers.tail), |p| {
        text(p.followers_exponent)
    });
    row("Gini of followers", format!("{:.2}", followers.gini), |p| {
        text(p.gini)
    });
    row("median of follows", follows.median.to_string(), |_| None);
    row("most follows", follows.largest.to_string(), |p| {
        text(p.most_follows)
    });
    row("exponent of follows", tail(follows.tail), |p| {
        text(p.follows_exponent)
    });
    row("Gini of follows", format!("{:.2}", follows.gini), |p| {
        text(p.gini)
    });
    row(
        "Gini of both together",
        format!("{:.2}", figures.gini_of_both),
        |p| text(p.gini),
    );
    table
}

fn text<T: ToString>(figure: Option<T>) -> Option<String> {
    figure.map(|figure| figure.to_string())
}

fn tail(tail: Option<Tail>) -> String {
    tail.map_or_else(
        || "too few accounts".to_owned(),
        |tail| format!("{:.2} from {} on", tail.exponent, tail.from),
    )
}

#[cfg(test)]
mod tests {
    use graph::{Graph, Shape};

    use super::*;

    #[test]
    fn each_figure_stands_beside_the_published_one() {
        let graph = Graph::new(Shape::of(2_000, 1)).unwrap();
        let text = table(&Figures::of(&graph)).to_string();
        for words in [
            "2000", "456626", "14855842", "51386", "1259", "2.276", "0.72",
        ] {
            assert!(text.contains(words), "{words} in\n{text}");
        }
    }
}
