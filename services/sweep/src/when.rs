//! A point in time as people type it: RFC 3339, or a span before now.
//!
//! Pure. Now is Postgres's, since it decides about data.

use std::str::FromStr;

use events::Micros;
use runtime::config::value::Span;

/// `2026-11-29T18:00:00Z`, or `2h` for two hours ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// This moment.
    At(Micros),
    /// So long before now.
    Ago(Span),
}

impl When {
    /// The moment, by this now.
    pub fn at(self, now: Micros) -> Micros {
        match self {
            Self::At(at) => at,
            Self::Ago(span) => Micros(now.0.saturating_sub(span.micros())),
        }
    }
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(span) = text.parse() {
            return Ok(Self::Ago(span));
        }
        rfc3339(text).map(Self::At).ok_or_else(|| {
            "use a time such as 2026-11-29T18:00:00Z, or a span before now such as 2h".to_owned()
        })
    }
}

/// Date, `T` or space, time, optional fraction, and `Z` or an offset.
fn rfc3339(text: &str) -> Option<Micros> {
    let (date, rest) = text.split_at_checked(10)?;
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let (year, month, day) = three(date, '-')?;
    let zone = rest.find(['Z', 'z', '+', '-'])?;
    let (time, zone) = rest.split_at_checked(zone)?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let (hour, minute, second) = three(time, ':')?;
    let is_date = (1..=12).contains(&month) && (1..=days_of(year, month)).contains(&day);
    if !is_date || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    let micros = fraction_micros(fraction)?;
    Some(Micros((seconds - offset(zone)?) * 1_000_000 + micros))
}

fn three(text: &str, separator: char) -> Option<(i64, i64, i64)> {
    let mut parts = text.split(separator).map(number);
    match (parts.next()??, parts.next()??, parts.next()??, parts.next()) {
        (first, second, third, None) => Some((first, second, third)),
        _ => None,
    }
}

fn number(text: &str) -> Option<i64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

fn fraction_micros(text: &str) -> Option<i64> {
    if text.is_empty() {
        return Some(0);
    }
    let digits = text.get(..6).unwrap_or(text);
    let _all_digits = number(text)?;
    let scale = u32::try_from(digits.len()).ok()?;
    Some(number(digits)? * 10_i64.pow(6 - scale))
}

/// Seconds east of UTC.
fn offset(zone: &str) -> Option<i64> {
    if matches!(zone, "Z" | "z") {
        return Some(0);
    }
    let (sign, rest) = zone.split_at_checked(1)?;
    let (hours, minutes) = rest.split_once(':')?;
    let seconds = number(hours)? * 3_600 + number(minutes)? * 60;
    Some(if sign == "-" { -seconds } else { seconds })
}

fn days_of(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The proleptic Gregorian calendar, years counted from March.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_spans_are_read() {
        let at = |text: &str| match text.parse() {
            Ok(When::At(Micros(at))) => Some(at),
            _ => None,
        };
        assert_eq!(at("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(at("2026-11-29T18:58:55.25Z"), Some(1_795_978_735_250_000));
        assert_eq!(
            at("2026-11-29T20:58:55.2500009+02:00"),
            Some(1_795_978_735_250_000)
        );
        assert_eq!(at("2024-02-29 00:00:00-00:30"), Some(1_709_166_600_000_000));
        assert_eq!("2h".parse(), Ok(When::Ago(Span::seconds(7_200))));
        assert_eq!(
            When::Ago(Span::seconds(1)).at(Micros(5_000_000)),
            Micros(4_000_000)
        );
    }

    #[test]
    fn what_cannot_be_read_is_answered_with_an_example() {
        for text in [
            "",
            "yesterday",
            "2026-13-01T00:00:00Z",
            "2025-02-29T00:00:00Z",
            "2026-11-29",
            "2026-11-29T18:58Z",
            "2026-11-29T18:58:55",
            "2026-11-29T24:00:00Z",
            "2h ago",
            "2026-11-29T18:58:55.x5Z",
            "ä026-11-29T18:58:55Z",
        ] {
            let fault = text.parse::<When>().expect_err(text);
            assert!(fault.contains("2026-11-29T18:00:00Z"), "{text}: {fault}");
        }
    }
}
