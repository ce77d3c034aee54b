//! What stands above a plot over time: where phases begin, and moments to look at. Labels that
//! would lie on one another go to a lane of their own.

use std::collections::HashMap;

use crate::markup::{Markup, Px};

/// The height of one lane of labels.
const LANE: f64 = 16.0;
/// How many lanes there are; a label without room is left out, its line and its title stay.
const LANES: usize = 6;
/// The width of a letter, about.
const LETTER: f64 = 6.1;
/// Letters of a label before it is cut.
const LETTERS: usize = 26;

/// A phase or a mark on the time axis.
#[derive(Clone, Debug)]
pub(crate) struct Flag {
    pub(crate) kind: FlagKind,
    /// A few words.
    pub(crate) label: String,
    /// All of it, under the pointer.
    pub(crate) title: String,
    pub(crate) from_s: f64,
    /// The end of a phase; a mark ends where it begins.
    pub(crate) to_s: f64,
}

/// What a flag is, and the class that colours it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlagKind {
    WarmUp,
    Steady,
    Storm,
    Fault,
    Drain,
    Mark,
}

impl FlagKind {
    fn class(self) -> &'static str {
        match self {
            Self::WarmUp => "warm-up",
            Self::Steady => "steady",
            Self::Storm => "storm",
            Self::Fault => "fault",
            Self::Drain => "drain",
            Self::Mark => "mark",
        }
    }
}

/// Flags with the places of their labels.
#[derive(Debug)]
pub(super) struct Placed<'a> {
    flags: Vec<(&'a Flag, Option<Label>)>,
    lanes: usize,
}

#[derive(Clone, Debug)]
struct Label {
    text: String,
    lane: usize,
    /// Whether it stands left of its line, for want of room on the right.
    before: bool,
}

impl<'a> Placed<'a> {
    /// Finds a lane for each label. `x` tells where a moment lies, `right` where the plot ends.
    pub(super) fn new(flags: &'a [Flag], left: f64, right: f64, x: impl Fn(f64) -> f64) -> Self {
        let mut order: Vec<&Flag> = flags.iter().collect();
        order.sort_by(|a, b| a.from_s.total_cmp(&b.from_s));
        let mut taken: Vec<Vec<(f64, f64)>> = Vec::new();
        let mut last_of: HashMap<String, f64> = HashMap::new();
        let placed = order.into_iter().map(|flag| {
            let text = cut(&flag.label);
            let at = x(flag.from_s);
            let width = text.chars().count() as f64 * LETTER + 10.0;
            let before = at + width > right && at - width >= left;
            let span = if before {
                (at - width, at)
            } else {
                (at, at + width)
            };
            // Of moments of one name in a row the first is enough.
            let again = last_of.get(&text).is_some_and(|end| span.0 < *end);
            let lane = (0..LANES).filter(|_| !again).find(|lane| {
                taken.get(*lane).is_none_or(|spans| {
                    spans
                        .iter()
                        .all(|(from, to)| span.1 <= *from || *to <= span.0)
                })
            });
            let label = lane.filter(|_| !text.is_empty()).map(|lane| {
                if taken.len() <= lane {
                    taken.resize(lane + 1, Vec::new());
                }
                taken[lane].push(span);
                let _before = last_of.insert(text.clone(), span.1);
                Label { text, lane, before }
            });
            (flag, label)
        });
        let flags = placed.collect();
        Self {
            flags,
            lanes: taken.len(),
        }
    }

    /// The height that the labels need.
    pub(super) fn height(&self) -> f64 {
        self.lanes as f64 * LANE + 6.0
    }

    /// Draws the shades of phases, to lie under the values.
    pub(super) fn shades(&self, markup: &mut Markup, area: &super::Area, x: impl Fn(f64) -> f64) {
        for (flag, _) in &self.flags {
            let (from, to) = (x(flag.from_s), x(flag.to_s));
            if flag.kind == FlagKind::Mark || to <= from {
                continue;
            }
            markup.empty(
                "rect",
                &[
                    ("class", &format!("shade {}", flag.kind.class())),
                    ("x", &Px(from)),
                    ("y", &Px(area.top)),
                    ("width", &Px(to - from)),
                    ("height", &Px(area.height)),
                ],
            );
        }
    }

    /// Draws the lines.
    pub(super) fn lines(&self, markup: &mut Markup, area: &super::Area, x: impl Fn(f64) -> f64) {
        for (flag, label) in &self.flags {
            let lane = label.as_ref().map_or(self.lanes, |label| label.lane);
            let (at, bottom) = (Px(x(flag.from_s)), Px(area.bottom()));
            let class = format!("flag {}", flag.kind.class());
            let line = format!("M{at} {}V{bottom}", Px(top_of(lane)));
            markup.within("path", &[("class", &class), ("d", &line)], |markup| {
                markup.leaf("title", &[], &flag.title);
            });
        }
    }

    /// Draws the labels, to lie over all lines.
    pub(super) fn labels(&self, markup: &mut Markup, x: impl Fn(f64) -> f64) {
        for (flag, label) in &self.flags {
            let Some(label) = label else { continue };
            let (shift, anchor) = match label.before {
                true => (-4.0, "end"),
                false => (4.0, "start"),
            };
            markup.within(
                "text",
                &[
                    ("class", &format!("label {}", flag.kind.class())),
                    ("x", &Px(x(flag.from_s) + shift)),
                    ("y", &Px(top_of(label.lane) + 9.0)),
                    ("text-anchor", &anchor),
                ],
                |markup| {
                    markup.leaf("title", &[], &flag.title);
                    markup.text(&label.text);
                },
            );
        }
    }
}

fn top_of(lane: usize) -> f64 {
    4.0 + lane as f64 * LANE
}

fn cut(label: &str) -> String {
    if label.chars().count() <= LETTERS {
        return label.to_owned();
    }
    let mut text: String = label.chars().take(LETTERS - 1).collect();
    text.push('…');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flag(label: &str, from_s: f64) -> Flag {
        Flag {
            kind: FlagKind::Mark,
            label: label.to_owned(),
            title: String::new(),
            from_s,
            to_s: from_s,
        }
    }

    fn lanes(flags: &[Flag]) -> Vec<Option<(usize, bool)>> {
        Placed::new(flags, 0.0, 400.0, |second| second)
            .flags
            .into_iter()
            .map(|(_, label)| label.map(|label| (label.lane, label.before)))
            .collect()
    }

    #[test]
    fn labels_that_would_overlap_get_lanes() {
        let flags = [
            flag("storm begins", 10.0),
            flag("relay killed", 20.0),
            flag("far", 300.0),
        ];
        assert_eq!(
            lanes(&flags),
            [Some((0, false)), Some((1, false)), Some((0, false))]
        );
    }

    #[test]
    fn of_labels_of_one_name_in_a_row_the_first_is_enough() {
        let flags = [
            flag("celebrity", 10.0),
            flag("celebrity", 12.0),
            flag("celebrity", 200.0),
        ];
        assert_eq!(lanes(&flags), [Some((0, false)), None, Some((0, false))]);
    }

    #[test]
    fn a_label_at_the_end_stands_before_its_line() {
        assert_eq!(lanes(&[flag("the very end", 390.0)]), [Some((0, true))]);
    }

    #[test]
    fn too_many_labels_leave_some_out_and_long_ones_are_cut() {
        let flags: Vec<Flag> = (0..9)
            .map(|index| flag(&format!("{index}{}", "x".repeat(80)), 10.0))
            .collect();
        let lanes = lanes(&flags);
        assert_eq!(lanes.iter().flatten().count(), LANES);
        assert_eq!(cut(&"x".repeat(80)).chars().count(), LETTERS);
    }
}
