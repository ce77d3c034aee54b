//! Writes HTML and SVG that are well-formed XML as well. The only way for a text to get in is
//! through here, and here it is escaped.

use std::fmt::{self, Display, Write as _};

/// Attributes of an element, in order.
pub(crate) type Attributes<'a> = &'a [(&'a str, &'a dyn Display)];

/// A piece of a page.
#[derive(Debug, Default)]
pub(crate) struct Markup {
    text: String,
}

impl Markup {
    /// An element with what `inner` writes into it.
    pub(crate) fn within(
        &mut self,
        tag: &str,
        attributes: Attributes<'_>,
        inner: impl FnOnce(&mut Self),
    ) {
        self.start(tag, attributes);
        self.text.push('>');
        inner(self);
        self.text.push_str("</");
        self.text.push_str(tag);
        self.text.push('>');
    }

    /// An element with a text.
    pub(crate) fn leaf(&mut self, tag: &str, attributes: Attributes<'_>, text: &str) {
        self.within(tag, attributes, |markup| markup.text(text));
    }

    /// An element that has nothing in it: a shape of SVG, or a void element of HTML.
    pub(crate) fn empty(&mut self, tag: &str, attributes: Attributes<'_>) {
        self.start(tag, attributes);
        self.text.push_str("/>");
    }

    /// A text.
    pub(crate) fn text(&mut self, text: &str) {
        escape(&mut self.text, text);
    }

    /// Our own text that is markup already, such as the style sheet.
    pub(crate) fn own(&mut self, markup: &'static str) {
        self.text.push_str(markup);
    }

    /// The whole text.
    pub(crate) fn into_string(self) -> String {
        self.text
    }

    fn start(&mut self, tag: &str, attributes: Attributes<'_>) {
        self.text.push('<');
        self.text.push_str(tag);
        for (name, value) in attributes {
            self.text.push(' ');
            self.text.push_str(name);
            self.text.push_str("=\"");
            escape(&mut self.text, &value.to_string());
            self.text.push('"');
        }
    }
}

/// A length in a plot: two digits after the point are enough, zeros at the end are none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Px(pub(crate) f64);

impl Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Adding zero turns -0 into 0.
        let rounded = (self.0 * 100.0).round() / 100.0 + 0.0;
        write!(f, "{rounded}")
    }
}

/// Escapes for text and for attributes alike. Control characters, which XML does not have, become
/// the replacement character.
fn escape(out: &mut String, text: &str) {
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(letter),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ if letter.is_control() => out.push('\u{fffd}'),
            _ => out.push(letter),
        }
    }
}

/// A path through points; `None` ends a piece.
pub(crate) fn path(points: impl IntoIterator<Item = Option<(f64, f64)>>) -> String {
    let mut text = String::new();
    let mut letter = 'M';
    for point in points {
        let Some((x, y)) = point else {
            letter = 'M';
            continue;
        };
        // Writing to a string does not fail.
        let _ok = write!(text, "{letter}{} {}", Px(x), Px(y));
        letter = 'L';
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_attributes_are_escaped() {
        let mut markup = Markup::default();
        markup.leaf(
            "p",
            &[("title", &"\"><script>"), ("x", &1)],
            "a < b & 'c'\u{1b}[0m\n",
        );
        assert_eq!(
            markup.into_string(),
            "<p title=\"&quot;&gt;&lt;script&gt;\" x=\"1\">a &lt; b &amp; &#39;c&#39;\u{fffd}[0m\n</p>"
        );
    }

    #[test]
    fn a_gap_breaks_a_path() {
        let points = [
            Some((0.0, 1.0)),
            Some((1.0, 2.126)),
            None,
            Some((3.0, -0.001)),
            None,
            None,
        ];
        assert_eq!(path(points), "M0 1L1 2.13M3 0");
        assert_eq!(path([]), "");
    }
}
