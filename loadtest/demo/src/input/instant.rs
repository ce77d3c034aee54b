//! Points in time as text (RFC 3339) → Unix seconds.

/// Reads `2026-01-31T12:00:00.5+01:00`; a blank or a small letter may stand for `T`.
pub(super) fn parse(text: &str) -> Result<f64, String> {
    seconds(text).ok_or_else(|| format!("the time {text:?} is neither RFC 3339 nor Unix seconds"))
}

fn seconds(text: &str) -> Option<f64> {
    let (date, rest) = (text.get(..10)?, text.get(11..)?);
    if !matches!(text.as_bytes().get(10)?, b'T' | b't' | b' ') {
        return None;
    }
    let offset_at = rest.find(['Z', 'z', '+', '-'])?;
    let (clock, offset) = rest.split_at(offset_at);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
    let sane = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !sane || fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction: f64 = format!("0.{fraction}").parse().ok()?;
    let whole =
        days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - shift(offset)?;
    // Exact below 2^53 seconds.
    Some(whole as f64 + fraction)
}

fn shift(offset: &str) -> Option<i64> {
    if matches!(offset, "Z" | "z") {
        return Some(0);
    }
    let sign = if offset.starts_with('-') { -1 } else { 1 };
    let [hours, minutes] = numbers(offset.get(1..)?, ':', [2, 2])?;
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

/// Digits of fixed widths between separators.
fn numbers<const N: usize>(text: &str, separator: char, widths: [usize; N]) -> Option<[i64; N]> {
    let parts: Vec<&str> = text.split(separator).collect();
    let fits = |(part, width): (&&str, &usize)| {
        part.len() == *width && part.bytes().all(|b| b.is_ascii_digit())
    };
    if parts.len() != N || !parts.iter().zip(&widths).all(fits) {
        return None;
    }
    let numbers: Vec<i64> = parts
        .iter()
        .map(|part| part.parse().ok())
        .collect::<Option<_>>()?;
    numbers.try_into().ok()
}

/// Days since 1970-01-01 in the Gregorian calendar, counted in years that begin in March.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let rows = [
            ("1970-01-01T00:00:00Z", 0.0),
            ("2000-02-29T00:00:00Z", 951_782_400.0),
            ("2025-01-01T00:00:00Z", 1_735_689_600.0),
            ("2025-01-01t01:00:00.25+01:00", 1_735_689_600.25),
            ("2024-12-31 22:30:00-01:30", 1_735_689_600.0),
        ];
        for (text, expected) in rows {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_time() {
        for text in [
            "",
            "noon",
            "2025-01-01",
            "2025-01-01T00:00:00",
            "2025-13-01T00:00:00Z",
            "2025-01-01T24:00:00Z",
            "2025-01-01T00:00:00.Z",
            "2025-1-1T00:00:00Z",
            "2025-01-01T00:00:00+1",
            "２０25-01-01T00:00:00Z",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
