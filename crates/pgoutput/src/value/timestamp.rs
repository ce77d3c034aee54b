//! The ISO text form of timestamps: `2026-11-29 18:58:55.123456+00`, with
//! offsets down to seconds, years beyond 9999 and years BC.

/// Microseconds of the Unix epoch, or nothing for text that is no finite
/// timestamp.
pub(super) fn parse(text: &str) -> Option<i64> {
    let (text, bc) = match text.strip_suffix(" BC") {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let (date, time) = text.split_once(' ')?;
    let sign_at = time.find(['+', '-']).unwrap_or(time.len());
    let (clock, offset) = time.split_at_checked(sign_at)?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));

    let seconds = days(date, bc)? * 86_400 + clock_seconds(clock)? - offset_seconds(offset)?;
    seconds
        .checked_mul(1_000_000)?
        .checked_add(fraction_micros(fraction)?)
}

/// Days since 1970-01-01 of `year-month-day`.
fn days(date: &str, bc: bool) -> Option<i64> {
    let mut parts = date.split('-');
    let year = number(parts.next()?, 4..=6)?;
    let month = number(parts.next()?, 2..=2)?;
    let day = number(parts.next()?, 2..=2)?;
    if parts.next().is_some() || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // There is no year 0 in the text form.
    let year = if bc { 1 - year } else { year };
    Some(days_from_civil(year, month, day))
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar: the year starts
/// in March, so that the leap day is its last one.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn clock_seconds(clock: &str) -> Option<i64> {
    let mut parts = clock.split(':');
    let hours = number(parts.next()?, 2..=2)?;
    let minutes = number(parts.next()?, 2..=2)?;
    let seconds = number(parts.next()?, 2..=2)?;
    if parts.next().is_some() || hours > 24 || minutes > 59 || seconds > 60 {
        return None;
    }
    Some(hours * 3600 + minutes * 60 + seconds)
}

/// `+hh`, `+hh:mm`, `+hh:mm:ss` or nothing.
fn offset_seconds(offset: &str) -> Option<i64> {
    let (sign, parts) = match offset.as_bytes().first() {
        None => return Some(0),
        Some(b'+') => (1, offset.strip_prefix('+')?),
        Some(_) => (-1, offset.strip_prefix('-')?),
    };
    let mut seconds = 0;
    let mut unit = 3600;
    for part in parts.split(':') {
        if unit == 0 {
            return None;
        }
        seconds += number(part, 2..=2)? * unit;
        unit /= 60;
    }
    Some(sign * seconds)
}

fn fraction_micros(fraction: &str) -> Option<i64> {
    if fraction.is_empty() {
        return Some(0);
    }
    let digits = number(fraction, 1..=6)?;
    let missing = u32::try_from(6_usize.checked_sub(fraction.len())?).ok()?;
    Some(digits * 10_i64.pow(missing))
}

/// Only digits, and as many as expected: the number parser would take signs.
fn number(text: &str, digits: std::ops::RangeInclusive<usize>) -> Option<i64> {
    if !digits.contains(&text.len()) || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}
