//! The page: one file that needs no script, no network and no font, follows the reader's light or
//! dark setting, and prints.

mod figures;
mod head;
mod notes;
mod percentiles;

use crate::{Run, markup::Markup};

/// Colours for light, dark and paper, and the sizes of everything.
const STYLE: &str = include_str!("style.css");

/// Nothing may be loaded: the browser enforces what we promise.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// The page of a run; `logs` are the names of the HDR logs beside it.
pub(crate) fn html(run: &Run, logs: &[String]) -> String {
    let mut page = Markup::default();
    page.own("<!DOCTYPE html>\n");
    let title = format!(
        "{} · seed {} · {}",
        run.name(),
        run.seed,
        run.outcome().words()
    );
    page.within("html", &[("lang", &"en")], |page| {
        page.within("head", &[], |page| {
            page.empty("meta", &[("charset", &"utf-8")]);
            page.empty(
                "meta",
                &[
                    ("name", &"viewport"),
                    ("content", &"width=device-width, initial-scale=1"),
                ],
            );
            page.empty(
                "meta",
                &[
                    ("http-equiv", &"Content-Security-Policy"),
                    ("content", &POLICY),
                ],
            );
            page.empty(
                "meta",
                &[("name", &"color-scheme"), ("content", &"light dark")],
            );
            page.leaf("title", &[], &title);
            page.within("style", &[], |page| page.own(STYLE));
        });
        page.within("body", &[], |page| {
            page.within("main", &[], |page| {
                head::write(page, run);
                figures::write(page, run);
                notes::write(page, run, logs);
            });
        });
    });
    page.into_string()
}

/// A table with a head; the first column is text, the others are numbers to the right. One that is
/// too wide for a phone can be moved there.
fn table(page: &mut Markup, head: &[&str], body: impl FnOnce(&mut Markup)) {
    classed_table(page, "numbers", head, body);
}

/// A table of a class that the style sheet knows.
fn classed_table(page: &mut Markup, class: &str, head: &[&str], body: impl FnOnce(&mut Markup)) {
    page.within("div", &[("class", &"scroll")], |page| {
        page.within("table", &[("class", &class)], |page| {
            page.within("thead", &[], |page| {
                page.within("tr", &[], |page| {
                    for column in head {
                        page.leaf("th", &[("scope", &"col")], column);
                    }
                });
            });
            page.within("tbody", &[], body);
        });
    });
}

/// A section with its heading.
fn section(page: &mut Markup, heading: &str, inner: impl FnOnce(&mut Markup)) {
    page.within("section", &[], |page| {
        page.leaf("h2", &[], heading);
        inner(page);
    });
}
