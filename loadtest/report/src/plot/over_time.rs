//! Values over the time of a run.

use std::fmt::Write as _;

use super::{Area, Axis, Flag, Size, flags::Placed};
use crate::{
    Point,
    markup::{Markup, Px, path},
    quantity,
};

/// What all plots of one run share: how long it is, and what stands on the time axis.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) end_s: f64,
    pub(crate) flags: Vec<Flag>,
}

/// One line of a plot.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) name: String,
    /// The class that colours it.
    pub(crate) class: String,
    pub(crate) points: Vec<Point>,
}

/// How values are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Values {
    /// From zero, with this unit.
    Counts(String),
    /// Microseconds, on a logarithmic axis.
    Times,
}

impl Values {
    fn show(&self, value: f64) -> String {
        match self {
            Self::Counts(unit) => format!("{} {unit}", quantity::number(value)),
            Self::Times => quantity::time(value),
        }
    }
}

/// A plot over time.
#[derive(Clone, Debug)]
pub(crate) struct OverTime<'a> {
    pub(crate) title: &'a str,
    pub(crate) values: Values,
    pub(crate) lines: &'a [Line],
    pub(crate) frame: &'a Frame,
}

impl OverTime<'_> {
    /// Whether there is a value to show.
    pub(crate) fn has_data(&self) -> bool {
        self.values().next().is_some()
    }

    /// Draws the plot for one screen.
    pub(crate) fn draw(&self, markup: &mut Markup, size: Size) {
        let across = Axis::moments(self.frame.end_s, size.ticks_across());
        let largest = self.values().fold(0.0, f64::max);
        let (up, unit) = match &self.values {
            Values::Counts(unit) => (Axis::counts(largest, 5), unit.as_str()),
            Values::Times => {
                let smallest = self.values().fold(f64::INFINITY, f64::min);
                (Axis::times(smallest, largest), "time, logarithmic")
            }
        };
        let flat = Area::new(size, 0.0);
        let x = |second: f64| flat.x(across.share(second));
        let placed = Placed::new(&self.frame.flags, flat.left, flat.right(), x);
        let area = Area::new(size, placed.height());
        super::svg(markup, size, &area, self.title, |markup| {
            placed.shades(markup, &area, x);
            let name = if self.frame.end_s < 3_600.0 {
                "minutes:seconds since the start"
            } else {
                "hours:minutes:seconds since the start"
            };
            super::axes(markup, &area, &across, &up, (name, unit));
            placed.lines(markup, &area, x);
            for line in self.lines {
                draw_line(markup, line, |point| {
                    let value = point.value?;
                    Some((x(point.at_s), area.y(up.share(value))))
                });
            }
            placed.labels(markup, x);
            self.columns(markup, &area, size.columns());
        });
    }

    /// Columns that show the values of their moment under the pointer.
    fn columns(&self, markup: &mut Markup, area: &Area, most: usize) {
        let longest = self.lines.iter().map(|line| line.points.len()).max();
        let count = longest.unwrap_or(0).clamp(1, most);
        let width = area.width / count as f64;
        let length = self.frame.end_s.max(f64::MIN_POSITIVE) / count as f64;
        for index in 0..count {
            let from_s = index as f64 * length;
            let text = self.describe(from_s, from_s + length);
            if text.is_empty() {
                continue;
            }
            markup.within(
                "rect",
                &[
                    ("class", &"column"),
                    ("x", &Px(area.left + index as f64 * width)),
                    ("y", &Px(area.top)),
                    ("width", &Px(width)),
                    ("height", &Px(area.height)),
                ],
                |markup| markup.leaf("title", &[], &text),
            );
        }
    }

    /// The largest value of each line within a part of the run, a line each; empty without any.
    fn describe(&self, from_s: f64, to_s: f64) -> String {
        let mut text = String::new();
        for line in self.lines {
            let largest = line
                .points
                .iter()
                .filter(|point| (from_s..to_s).contains(&point.at_s))
                .filter_map(|point| point.value)
                .reduce(f64::max);
            if let Some(value) = largest {
                // Writing to a string does not fail.
                let _ok = write!(text, "\n{}: {}", line.name, self.values.show(value));
            }
        }
        match text.is_empty() {
            true => text,
            false => format!("at {}{text}", quantity::offset(from_s)),
        }
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        self.lines
            .iter()
            .flat_map(|line| &line.points)
            .filter_map(|point| point.value)
    }
}

/// Draws a line, and a dot for each value that has no neighbour to draw a line to.
fn draw_line(markup: &mut Markup, line: &Line, place: impl FnMut(&Point) -> Option<(f64, f64)>) {
    let places: Vec<Option<(f64, f64)>> = line.points.iter().map(place).collect();
    let class = format!("line {}", line.class);
    let path = path(places.iter().copied());
    markup.empty("path", &[("class", &class), ("d", &path)]);
    let at = |index: Option<usize>| index.and_then(|index| places.get(index).copied().flatten());
    for (index, place) in places.iter().enumerate() {
        let lonely = at(index.checked_sub(1)).is_none() && at(Some(index + 1)).is_none();
        let Some((x, y)) = place.filter(|_| lonely) else {
            continue;
        };
        markup.empty(
            "circle",
            &[
                ("class", &format!("dot {}", line.class)),
                ("cx", &Px(x)),
                ("cy", &Px(y)),
                ("r", &3),
            ],
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(points: &[(f64, Option<f64>)]) -> Line {
        Line {
            name: "rows".to_owned(),
            class: "s0".to_owned(),
            points: points.iter().map(|point| Point::from(*point)).collect(),
        }
    }

    fn frame() -> Frame {
        Frame {
            end_s: 10.0,
            flags: Vec::new(),
        }
    }

    #[test]
    fn the_largest_value_of_a_column_is_told() {
        let (lines, frame) = (
            [line(&[(0.5, Some(3.0)), (1.0, Some(7.0)), (2.5, None)])],
            frame(),
        );
        let plot = OverTime {
            title: "",
            values: Values::Counts("rows/s".to_owned()),
            lines: &lines,
            frame: &frame,
        };
        assert_eq!(plot.describe(0.0, 2.0), "at 0:00\nrows: 7 rows/s");
        assert_eq!(plot.describe(2.0, 4.0), "");
        assert!(plot.has_data());
    }

    #[test]
    fn gaps_alone_are_no_data() {
        let (lines, frame) = ([line(&[(0.5, None)])], frame());
        let plot = OverTime {
            title: "",
            values: Values::Times,
            lines: &lines,
            frame: &frame,
        };
        assert!(!plot.has_data());
    }

    #[test]
    fn a_value_without_neighbours_is_a_dot() {
        let mut markup = Markup::default();
        let line = line(&[
            (1.0, Some(1.0)),
            (2.0, None),
            (3.0, Some(1.0)),
            (4.0, Some(1.0)),
        ]);
        draw_line(&mut markup, &line, |point| {
            point.value.map(|value| (point.at_s, value))
        });
        let text = markup.into_string();
        assert_eq!(text.matches("<circle").count(), 1, "{text}");
        assert!(text.contains("cx=\"1\""), "{text}");
    }

    #[test]
    fn a_value_lies_where_the_axes_say() {
        let (lines, frame) = ([line(&[(0.0, Some(0.0)), (10.0, Some(100.0))])], frame());
        let plot = OverTime {
            title: "t",
            values: Values::Counts("rows/s".to_owned()),
            lines: &lines,
            frame: &frame,
        };
        let mut markup = Markup::default();
        plot.draw(&mut markup, Size::Wide);
        let text = markup.into_string();
        assert!(
            text.contains("class=\"line s0\" d=\"M74 226L906 6\""),
            "{text}"
        );
    }
}
