//! The page, read as XML.

use std::{collections::BTreeSet, fs};

use report::{Outcome, Run};
use roxmltree::{Document, Node, ParsingOptions};

use crate::run::{HOSTILE, folder, full};

fn page(run: &Run, name: &str) -> String {
    fs::read_to_string(report::write(run, &folder(name)).unwrap().page).unwrap()
}

fn parse(page: &str) -> Document<'_> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(page, options).unwrap_or_else(|error| panic!("{error}: {page}"))
}

fn elements<'a>(document: &'a Document<'a>, tag: &'a str) -> impl Iterator<Item = Node<'a, 'a>> {
    document
        .descendants()
        .filter(move |node| node.has_tag_name(tag))
}

fn text(node: Node<'_, '_>) -> String {
    let texts = node.descendants().filter_map(|node| node.text());
    // Elements repeat the text of their first child.
    let mut all: Vec<&str> = Vec::new();
    for text in texts {
        if all.last() != Some(&text) {
            all.push(text);
        }
    }
    all.concat()
}

/// The plots with their titles, for large screens.
fn plots<'a>(document: &'a Document<'a>) -> Vec<(&'a str, Node<'a, 'a>)> {
    elements(document, "svg")
        .filter(|svg| svg.attribute("class") == Some("plot wide"))
        .map(|svg| (svg.attribute("aria-label").unwrap(), svg))
        .collect()
}

#[test]
fn the_page_is_well_formed_and_loads_nothing() {
    for (name, run) in [
        ("page-full", full("plain")),
        ("page-hostile", full(HOSTILE)),
        ("page-empty", Run::default()),
    ] {
        let page = page(&run, name);
        let document = parse(&page);
        for wrong in [
            "http://", "https://", "<script", "@import", "url(", "<link", "<img",
        ] {
            assert!(!page.contains(wrong), "{name}: {wrong}");
        }
        let files: BTreeSet<&str> = elements(&document, "a")
            .filter_map(|link| link.attribute("href"))
            .collect();
        assert!(files.contains("run.json"));
        let links = ["src", "href", "xlink:href", "style", "onload"];
        for node in document.descendants() {
            for attribute in node.attributes() {
                let is_link = links.contains(&attribute.name()) && !node.has_tag_name("a");
                assert!(!is_link, "{name}: {node:?}");
            }
        }
        assert!(
            files.iter().all(|file| !file.contains(['/', ':'])),
            "{files:?}"
        );
    }
}

#[test]
fn hostile_text_is_shown_and_not_obeyed() {
    let page = page(&full(HOSTILE), "hostile-shown");
    let document = parse(&page);
    let shown = HOSTILE.replace('\u{1b}', "\u{fffd}");
    let heading = elements(&document, "h1").next().map(text);
    assert_eq!(heading.as_deref(), Some(shown.as_str()));
    assert_eq!(elements(&document, "script").count(), 0);
    // The name, the plan, the command, each note and each legend are there as text.
    let seen = document
        .descendants()
        .filter(|node| node.is_text() && node.text().is_some_and(|text| text.contains(&shown)))
        .count();
    assert!(seen > 20, "{seen}");
}

#[test]
fn every_plot_has_axes_lines_flags_and_values_under_the_pointer() {
    let page = page(&full("plain"), "plots");
    let document = parse(&page);
    let plots = plots(&document);
    let titles: Vec<&str> = plots.iter().map(|(title, _)| *title).collect();
    assert_eq!(
        titles,
        [
            "Requests",
            "Time to answer: plain",
            "Rows delivered",
            "Time to the last follower, by audience",
            "Time to the last follower over time, p99",
            "Lag in plain",
            "Time to a page: plain",
            "Time until a reader sees a post, p99",
            "Scheduler lag of the generator",
        ]
    );
    for (title, svg) in plots {
        let has = |tag: &str, class: &str| {
            svg.descendants().any(|node| {
                let classes = node.attribute("class").unwrap_or_default();
                node.has_tag_name(tag) && classes.starts_with(class)
            })
        };
        assert!(
            has("text", "tick up") && has("text", "tick across"),
            "{title}"
        );
        assert!(has("path", "line "), "{title}");
        if title != "Time to the last follower, by audience" {
            assert!(has("rect", "shade storm"), "{title}");
            assert!(
                has("path", "flag mark") && has("text", "label mark"),
                "{title}"
            );
            assert!(has("rect", "column"), "{title}");
        }
        let titles = svg.descendants().filter(|node| node.has_tag_name("title"));
        assert!(titles.count() > 3, "{title}");
    }
    let narrow = elements(&document, "svg")
        .filter(|svg| svg.attribute("class") == Some("plot narrow"))
        .count();
    assert_eq!(narrow, titles.len());
}

#[test]
fn ticks_stand_at_round_numbers() {
    let page = page(&full("plain"), "ticks");
    let document = parse(&page);
    let ticks = |title: &str, class: &str| -> Vec<String> {
        let plots = plots(&document);
        let (_, svg) = plots.iter().find(|(name, _)| *name == title).unwrap();
        svg.descendants()
            .filter(|node| node.attribute("class") == Some(class))
            .map(text)
            .collect()
    };
    assert_eq!(ticks("Requests", "tick up"), ["0", "50", "100", "150"]);
    assert_eq!(
        ticks("Requests", "tick across"),
        [
            "0:00", "0:10", "0:20", "0:30", "0:40", "0:50", "1:00", "1:10", "1:20", "1:30", "1:40"
        ]
    );
    assert_eq!(
        ticks("Time to answer: plain", "tick up"),
        ["10\u{202f}ms", "100\u{202f}ms", "1\u{202f}s"]
    );
}

#[test]
fn percentiles_on_the_page_are_those_of_the_histograms() {
    let run = full("plain");
    let page = page(&run, "percentiles");
    let document = parse(&page);
    let table = elements(&document, "table")
        .find(|table| text(*table).starts_with("to the last follower"))
        .unwrap();
    let cells: Vec<String> = table
        .descendants()
        .filter(|node| node.has_tag_name("td"))
        .map(text)
        .collect();
    // 1 to 1 000 ms, each once: p50 is 500 ms, within the three digits that are kept.
    assert_eq!(
        cells,
        [
            "1\u{202f}000",
            "500\u{202f}ms",
            "900\u{202f}ms",
            "990\u{202f}ms",
            "999\u{202f}ms",
            "1.00\u{202f}s"
        ]
    );
    let p50 = run.classes[0].last.quantile(0.5).unwrap();
    assert!((499..=501).contains(&p50.as_millis()), "{p50:?}");
}

#[test]
fn percentiles_with_too_few_values_are_marked() {
    let page = page(&full("plain"), "few");
    let document = parse(&page);
    let few: Vec<&str> = elements(&document, "td")
        .filter(|cell| cell.attribute("class") == Some("few"))
        .filter_map(|cell| cell.attribute("title"))
        .collect();
    assert!(
        few.contains(&"fewer than 100 values: p99 is the largest"),
        "{few:?}"
    );
}

#[test]
fn a_run_without_values_says_so() {
    let run = Run::default();
    assert_eq!(run.outcome(), Outcome::Invalid);
    let page = page(&run, "empty");
    let document = parse(&page);
    assert!(plots(&document).is_empty());
    let none = elements(&document, "p")
        .filter(|p| text(*p) == "no data")
        .count();
    assert_eq!(none, elements(&document, "figure").count());
    assert!(none >= 7, "{none}");
}

#[test]
fn odd_values_make_a_page_all_the_same() {
    let mut run = full("plain");
    run.duration_s = f64::NAN;
    run.phases[0].to_s = f64::INFINITY;
    run.marks[0].at_s = -5.0;
    run.thresholds[0].measured = Some(f64::INFINITY);
    run.lag[0].points[0].value = Some(f64::MAX);
    run.lag[0].points.reverse();
    let page = page(&run, "odd");
    let document = parse(&page);
    for svg in elements(&document, "svg") {
        for node in svg.descendants() {
            for attribute in node.attributes().filter(|it| it.name() != "class") {
                let value = attribute.value();
                assert!(
                    !value.contains("NaN") && !value.contains("inf"),
                    "{node:?} {value}"
                );
            }
        }
    }
}

#[test]
fn the_verdict_comes_before_everything_else() {
    let mut run = full("plain");
    if let Some(judged) = &mut run.judged {
        judged.lost = 3;
    }
    let page = page(&run, "broken");
    let document = parse(&page);
    let main = elements(&document, "main").next().unwrap();
    let second = main.children().nth(1).unwrap();
    assert_eq!(second.attribute("class"), Some("verdict broken"));
    assert!(text(second).contains("3 lost"), "{}", text(second));
    let counts = elements(&document, "ul").next().unwrap();
    let counts: Vec<String> = counts.children().map(text).collect();
    assert_eq!(
        counts,
        [
            "3 lost",
            "0 duplicated",
            "0 foreign",
            "0 resurrected",
            "0 out of order"
        ]
    );
    let terminal = report::text(&run);
    assert!(
        terminal.contains("BROKEN: The promise is broken: 3 lost among"),
        "{terminal}"
    );
}
