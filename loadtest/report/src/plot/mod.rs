//! Plots as SVG: shapes with classes, which the style sheet of the page colours for light, dark
//! and paper. Values under the pointer are `<title>`s of columns that are not seen otherwise.

mod axis;
mod flags;
mod over_time;
mod percentiles;

use crate::markup::{Markup, Px};

pub(crate) use axis::Axis;
use axis::Tick;
pub(crate) use flags::{Flag, FlagKind};
pub(crate) use over_time::{Frame, Line, OverTime, Values};
pub(crate) use percentiles::{Curve, Percentiles};

/// For which screen a plot is drawn: text keeps its size, so a phone gets a plot of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// A screen or a sheet of paper.
    Wide,
    /// A phone.
    Narrow,
}

impl Size {
    /// Both.
    pub(crate) const ALL: [Self; 2] = [Self::Wide, Self::Narrow];

    fn class(self) -> &'static str {
        match self {
            Self::Wide => "plot wide",
            Self::Narrow => "plot narrow",
        }
    }

    fn width(self) -> f64 {
        match self {
            Self::Wide => 920.0,
            Self::Narrow => 380.0,
        }
    }

    /// How many labels have room on the lower axis.
    fn ticks_across(self) -> usize {
        match self {
            Self::Wide => 12,
            Self::Narrow => 5,
        }
    }

    /// How many columns show values under the pointer.
    fn columns(self) -> usize {
        match self {
            Self::Wide => 180,
            Self::Narrow => 60,
        }
    }
}

/// The height of the area of every plot.
const AREA_HEIGHT: f64 = 220.0;
/// Room for the labels of the left axis and its unit.
const LEFT: f64 = 74.0;
const RIGHT: f64 = 14.0;
/// Room for the labels of the lower axis and its name.
const BOTTOM: f64 = 40.0;
/// The width of a letter on an axis, about.
const TICK_LETTER: f64 = 6.6;

/// The area of a plot: where its values are drawn.
#[derive(Clone, Copy, Debug)]
struct Area {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl Area {
    fn new(size: Size, top: f64) -> Self {
        Self {
            left: LEFT,
            top,
            width: size.width() - LEFT - RIGHT,
            height: AREA_HEIGHT,
        }
    }

    fn x(&self, share: f64) -> f64 {
        self.left + share.clamp(0.0, 1.0) * self.width
    }

    fn y(&self, share: f64) -> f64 {
        self.top + (1.0 - share.clamp(0.0, 1.0)) * self.height
    }

    fn right(&self) -> f64 {
        self.left + self.width
    }

    fn bottom(&self) -> f64 {
        self.top + self.height
    }
}

/// The outermost element of a plot; `inner` draws into it.
fn svg(markup: &mut Markup, size: Size, area: &Area, title: &str, inner: impl FnOnce(&mut Markup)) {
    let view = format!("0 0 {} {}", Px(size.width()), Px(area.bottom() + BOTTOM));
    markup.within(
        "svg",
        &[
            ("class", &size.class()),
            ("viewBox", &view),
            ("role", &"img"),
            ("aria-label", &title),
        ],
        inner,
    );
}

/// The ticks of the lower axis whose labels do not lie on one another; the later one stays.
fn with_room<'a>(area: &Area, across: &'a Axis) -> Vec<&'a Tick> {
    let mut free = f64::INFINITY;
    let mut shown = Vec::new();
    for tick in across.ticks.iter().rev() {
        let x = area.x(across.share(tick.value));
        let half = tick.label.chars().count() as f64 * TICK_LETTER / 2.0;
        if x + half <= free {
            free = x - half - TICK_LETTER;
            shown.push(tick);
        }
    }
    shown.reverse();
    shown
}

/// Both axes with their lines, labels and names.
fn axes(markup: &mut Markup, area: &Area, across: &Axis, up: &Axis, names: (&str, &str)) {
    let (left, right, bottom) = (Px(area.left), Px(area.right()), Px(area.bottom()));
    for value in &up.minor {
        let y = Px(area.y(up.share(*value)));
        markup.empty(
            "path",
            &[
                ("class", &"grid minor"),
                ("d", &format!("M{left} {y}H{right}")),
            ],
        );
    }
    for tick in &up.ticks {
        let y = area.y(up.share(tick.value));
        markup.empty(
            "path",
            &[
                ("class", &"grid"),
                ("d", &format!("M{left} {}H{right}", Px(y))),
            ],
        );
        markup.leaf(
            "text",
            &[
                ("class", &"tick up"),
                ("x", &Px(area.left - 8.0)),
                ("y", &Px(y + 4.0)),
            ],
            &tick.label,
        );
    }
    for tick in with_room(area, across) {
        let x = Px(area.x(across.share(tick.value)));
        markup.empty(
            "path",
            &[("class", &"axis"), ("d", &format!("M{x} {bottom}v5"))],
        );
        markup.leaf(
            "text",
            &[
                ("class", &"tick across"),
                ("x", &x),
                ("y", &Px(area.bottom() + 18.0)),
            ],
            &tick.label,
        );
    }
    markup.empty(
        "path",
        &[
            ("class", &"axis"),
            ("d", &format!("M{left} {bottom}H{right}")),
        ],
    );
    let middle = (area.left + area.width / 2.0, area.top + area.height / 2.0);
    markup.leaf(
        "text",
        &[
            ("class", &"name across"),
            ("x", &Px(middle.0)),
            ("y", &Px(area.bottom() + 35.0)),
        ],
        names.0,
    );
    let turned = format!("rotate(-90 14 {})", Px(middle.1));
    markup.leaf(
        "text",
        &[
            ("class", &"name across"),
            ("x", &14),
            ("y", &Px(middle.1)),
            ("transform", &turned),
        ],
        names.1,
    );
}
