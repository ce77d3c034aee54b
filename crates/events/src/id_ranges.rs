//! Sets of event ids, held as ranges: the algebra of the ledger.
//!
//! Owns: union, difference and intersection of id sets, their cutting into ledger blocks, and
//! their text, which is that of Postgres's `int8multirange`. Does not own what a set means: a
//! stage of the ledger, a look of the sweep, a gap.
//!
//! Promise: pure; every operation on two sets costs time linear in the number of *ranges*, never
//! in the number of ids, so a year of dense ids is as cheap as one. Ids near the ends of 64 bits
//! never panic; `i64::MAX` itself cannot be held, as in Postgres, whose half-open form has no
//! bound above it.

use std::{cmp::Ordering, fmt, str::FromStr};

use crate::EventId;

/// How many ids a block of the ledger has.
pub const BLOCK: i64 = 65_536;

/// The block an id lies in. Ids begin at 1, so this is SQL's `id / 65536`.
pub const fn block_of(id: EventId) -> i64 {
    id.0.div_euclid(BLOCK)
}

/// The ids from `low` up to, and without, `high`. A range whose `low` is not below its `high`
/// holds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IdRange {
    /// The first id.
    pub low: i64,
    /// The first id after the range.
    pub high: i64,
}

impl IdRange {
    /// Every id there can be.
    pub const ALL: Self = Self {
        low: i64::MIN,
        high: i64::MAX,
    };

    /// The range that holds one id.
    pub const fn one(id: EventId) -> Self {
        Self {
            low: id.0,
            high: id.0.saturating_add(1),
        }
    }

    /// Whether it holds nothing.
    pub const fn is_empty(self) -> bool {
        self.low >= self.high
    }

    /// The blocks that its first and its last id lie in. Of a range that holds nothing, the first
    /// may lie above the last.
    pub const fn block_span(self) -> (i64, i64) {
        let last = EventId(self.high.saturating_sub(1));
        (block_of(EventId(self.low)), block_of(last))
    }

    /// How many ids it holds.
    pub const fn ids(self) -> u64 {
        if self.is_empty() {
            0
        } else {
            self.high.abs_diff(self.low)
        }
    }

    /// What both hold; may be empty.
    fn intersect(self, other: Self) -> Self {
        Self {
            low: self.low.max(other.low),
            high: self.high.min(other.high),
        }
    }
}

/// A set of event ids: ranges in order, disjoint and not adjoining, so equal sets are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct IdRanges {
    ranges: Vec<IdRange>,
}

impl IdRanges {
    /// The empty set.
    pub const fn new() -> Self {
        Self { ranges: Vec::new() }
    }

    /// The ids of these ranges, which may come in any order, overlap and repeat.
    pub fn from_ranges(ranges: impl IntoIterator<Item = IdRange>) -> Self {
        let mut sorted: Vec<IdRange> = ranges
            .into_iter()
            .filter(|range| !range.is_empty())
            .collect();
        sorted.sort_unstable_by_key(|range| range.low);
        let mut set = Self::new();
        for range in sorted {
            set.append(range);
        }
        set
    }

    /// These ids, which may come in any order and repeat.
    pub fn from_ids(ids: impl IntoIterator<Item = EventId>) -> Self {
        Self::from_ranges(ids.into_iter().map(IdRange::one))
    }

    /// Adds the ids of a range.
    pub fn insert(&mut self, range: IdRange) {
        if range.is_empty() {
            return;
        }
        // Everything that overlaps or adjoins becomes one range.
        let start = self.ranges.partition_point(|held| held.high < range.low);
        let end = self.ranges.partition_point(|held| held.low <= range.high);
        let touched = self.ranges.get(start..end).unwrap_or_default();
        let joined = touched.iter().fold(range, |joined, held| IdRange {
            low: joined.low.min(held.low),
            high: joined.high.max(held.high),
        });
        self.ranges.splice(start..end, [joined]);
    }

    /// Adds one id.
    pub fn insert_id(&mut self, id: EventId) {
        self.insert(IdRange::one(id));
    }

    /// Whether the set holds this id.
    pub fn contains(&self, id: EventId) -> bool {
        let after = self.ranges.partition_point(|held| held.low <= id.0);
        after
            .checked_sub(1)
            .and_then(|index| self.ranges.get(index))
            .is_some_and(|held| id.0 < held.high)
    }

    /// The ids of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut set = Self::new();
        let (mut left, mut right) = (self.iter().peekable(), other.iter().peekable());
        loop {
            let next = match (left.peek(), right.peek()) {
                (Some(a), Some(b)) if a.low <= b.low => left.next(),
                (Some(_), None) => left.next(),
                (_, Some(_)) => right.next(),
                (None, None) => return set,
            };
            if let Some(range) = next {
                set.append(range);
            }
        }
    }

    /// The ids of this set that are not in the other.
    #[must_use]
    pub fn subtract(&self, other: &Self) -> Self {
        let mut set = Self::new();
        let mut cuts = other.iter().peekable();
        for range in self.iter() {
            let mut low = range.low;
            while let Some(cut) = cuts.peek().filter(|cut| cut.low < range.high) {
                set.append(IdRange { low, high: cut.low });
                low = low.max(cut.high);
                if cut.high >= range.high {
                    // It may reach into the next range as well.
                    break;
                }
                cuts.next();
            }
            set.append(IdRange {
                low,
                high: range.high,
            });
        }
        set
    }

    /// The ids that both sets hold.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        let mut set = Self::new();
        let (mut left, mut right) = (self.iter().peekable(), other.iter().peekable());
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            set.append(a.intersect(*b));
            if a.high.cmp(&b.high) == Ordering::Less {
                left.next();
            } else {
                right.next();
            }
        }
        set
    }

    /// The ids of this set that lie in the range.
    #[must_use]
    pub fn within(&self, range: IdRange) -> Self {
        let start = self.ranges.partition_point(|held| held.high <= range.low);
        let mut set = Self::new();
        for held in self.ranges.iter().skip(start) {
            if held.low >= range.high {
                break;
            }
            set.append(held.intersect(range));
        }
        set
    }

    /// The lowest ids of the set, at most `max_ids` of them.
    #[must_use]
    pub fn first(&self, max_ids: u64) -> Self {
        let mut set = Self::new();
        let mut room = max_ids;
        for range in self.iter() {
            if range.ids() > room {
                // Fits: the room is less than the ids of the range.
                set.append(IdRange {
                    low: range.low,
                    high: range.low.saturating_add_unsigned(room),
                });
                break;
            }
            room -= range.ids();
            set.append(range);
        }
        set
    }

    /// How many ids the set holds.
    pub fn ids(&self) -> u64 {
        self.iter().map(IdRange::ids).sum()
    }

    /// Whether the set holds no id.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The ranges, in order.
    pub fn iter(&self) -> impl Iterator<Item = IdRange> + '_ {
        self.ranges.iter().copied()
    }

    /// The lowest id.
    pub fn lowest(&self) -> Option<EventId> {
        self.ranges.first().map(|range| EventId(range.low))
    }

    /// The highest id.
    pub fn highest(&self) -> Option<EventId> {
        self.ranges.last().map(|range| EventId(range.high - 1))
    }

    /// The set cut at block borders: each block that holds an id of it, in order, with those ids.
    pub fn blocks(&self) -> impl Iterator<Item = (i64, Self)> + '_ {
        let mut rest = self.iter().peekable();
        let mut cut: Option<IdRange> = None;
        std::iter::from_fn(move || {
            let first = cut.take().or_else(|| rest.next())?;
            let block = block_of(EventId(first.low));
            let border = block.saturating_add(1).saturating_mul(BLOCK);
            let mut held = Self::new();
            let mut next = Some(first);
            while let Some(range) = next {
                held.append(IdRange {
                    low: range.low,
                    high: range.high.min(border),
                });
                if range.high > border {
                    cut = Some(IdRange {
                        low: border,
                        high: range.high,
                    });
                    break;
                }
                next = rest.next_if(|range| range.low < border);
            }
            Some((block, held))
        })
    }

    /// Adds a range that begins at or after the last one; joins it when they touch.
    fn append(&mut self, range: IdRange) {
        if range.is_empty() {
            return;
        }
        match self.ranges.last_mut() {
            Some(last) if range.low <= last.high => last.high = last.high.max(range.high),
            _ => self.ranges.push(range),
        }
    }
}

impl From<IdRange> for IdRanges {
    fn from(range: IdRange) -> Self {
        Self::from_ranges([range])
    }
}

impl fmt::Display for IdRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{},{})", self.low, self.high)
    }
}

/// The text of an `int8multirange`: `{[3,5),[9,10)}`.
impl fmt::Display for IdRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (index, range) in self.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            range.fmt(f)?;
        }
        f.write_str("}")
    }
}

/// Not the text of an `int8multirange`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected id ranges such as {{[3,5),[9,10)}}, got {text:?}")]
pub struct ParseIdRangesError {
    /// The text, cut at 100 characters.
    pub text: String,
}

/// Reads every form that Postgres prints or takes: bounds of either kind, and missing ones, which
/// become the ends of 64 bits.
impl FromStr for IdRanges {
    type Err = ParseIdRangesError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| ParseIdRangesError {
            text: text.chars().take(100).collect(),
        })
    }
}

fn parse(text: &str) -> Option<IdRanges> {
    let mut rest = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
    let mut ranges = Vec::new();
    while !rest.is_empty() {
        if !ranges.is_empty() {
            rest = rest.strip_prefix(',')?.trim_start();
        }
        let end = rest.find([')', ']'])? + 1;
        let (range, after) = rest.split_at_checked(end)?;
        ranges.push(parse_range(range)?);
        rest = after.trim_start();
    }
    Some(IdRanges::from_ranges(ranges))
}

fn parse_range(text: &str) -> Option<IdRange> {
    let (open, rest) = text.split_at_checked(1)?;
    let (bounds, close) = rest.split_at_checked(rest.len().checked_sub(1)?)?;
    let (low, high) = bounds.split_once(',')?;
    // A bound that is missing is unlimited, whichever bracket stands beside it.
    let bound = |text: &str, unlimited: i64, step: bool| match text.trim() {
        "" => Some(unlimited),
        number => {
            let number: i64 = number.parse().ok()?;
            Some(number.saturating_add(i64::from(step)))
        }
    };
    if !matches!(open, "[" | "(") {
        return None;
    }
    Some(IdRange {
        low: bound(low, i64::MIN, open == "(")?,
        high: bound(high, i64::MAX, close == "]")?,
    })
}
