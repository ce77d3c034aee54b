//! Numbers as people read them: round, with their unit, digits in threes.

/// Separates digits in threes and a number from its unit: narrow, and lines do not break at it.
const THIN: char = '\u{202f}';

/// A count in full, digits in threes.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(THIN);
        }
        text.push(digit);
    }
    text
}

/// A count with its noun.
pub(crate) fn counted(value: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(value), if value == 1 { one } else { many })
}

/// A number with at most three significant digits, or in full from a thousand on.
pub(crate) fn number(value: f64) -> String {
    if !value.is_finite() {
        return "?".to_owned();
    }
    let size = value.abs();
    if size >= 999.5 {
        let sign = if value < 0.0 { "−" } else { "" };
        return format!("{sign}{}", count(size.round() as u64));
    }
    let decimals = match size {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A number on an axis: thousands and millions by their letter.
pub(crate) fn short(value: f64) -> String {
    let (part, letter) = match value.abs() {
        1e9.. => (value / 1e9, "G"),
        1e6.. => (value / 1e6, "M"),
        1e3.. => (value / 1e3, "k"),
        _ => (value, ""),
    };
    format!("{}{letter}", number(part))
}

/// A measured time in the unit that suits it, with three significant digits; microseconds are
/// whole.
pub(crate) fn time(micros: f64) -> String {
    let (part, unit) = unit_of_time(micros);
    let decimals = match part {
        _ if unit == "µs" => 0,
        99.95.. => 0,
        9.995.. => 1,
        _ => 2,
    };
    format!("{part:.decimals$}{THIN}{unit}")
}

/// A measured time with two significant digits.
pub(crate) fn two_digits(micros: f64) -> String {
    let (part, unit) = unit_of_time(micros);
    let decimals = if part < 9.95 && unit != "µs" { 1 } else { 0 };
    format!("{part:.decimals$}{THIN}{unit}")
}

/// A round time, as it stands on an axis.
pub(crate) fn round_time(micros: f64) -> String {
    let (part, unit) = unit_of_time(micros);
    format!("{}{THIN}{unit}", number(part))
}

fn unit_of_time(micros: f64) -> (f64, &'static str) {
    match micros {
        999_500.0.. => (micros / 1e6, "s"),
        999.5.. => (micros / 1e3, "ms"),
        _ => (micros, "µs"),
    }
}

/// The length of a run or a phase, to the second.
pub(crate) fn length(seconds: f64) -> String {
    if seconds < 60.0 {
        return format!("{}{THIN}s", number(seconds));
    }
    let whole = seconds.round() as u64;
    let (hours, minutes, rest) = (whole / 3_600, whole / 60 % 60, whole % 60);
    match hours {
        0 => format!("{minutes}{THIN}min {rest}{THIN}s"),
        _ => format!("{hours}{THIN}h {minutes}{THIN}min"),
    }
}

/// A moment of the run: seconds, or minutes and seconds.
pub(crate) fn offset(seconds: f64) -> String {
    let sign = if seconds < 0.0 { "−" } else { "" };
    let whole = seconds.abs().round() as u64;
    match (whole / 3_600, whole / 60 % 60, whole % 60) {
        (0, minutes, rest) => format!("{sign}{minutes}:{rest:02}"),
        (hours, minutes, rest) => format!("{sign}{hours}:{minutes:02}:{rest:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_round() {
        assert_eq!(count(0), "0");
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(counted(1, "row", "rows"), "1 row");
        assert_eq!(
            [0.0, 0.12345, 2.5, 12.34, 999.4, 1_234.5].map(number),
            ["0", "0.123", "2.5", "12.3", "999", "1\u{202f}235"]
        );
        assert_eq!([1_500.0, 20.0, 3e6].map(short), ["1.5k", "20", "3M"]);
        assert_eq!(number(f64::NAN), "?");
    }

    #[test]
    fn times_have_the_unit_that_suits_them() {
        assert_eq!(
            [7.0, 1_250.0, 999_600.0, 12_340_000.0].map(time),
            [
                "7\u{202f}µs",
                "1.25\u{202f}ms",
                "1.00\u{202f}s",
                "12.3\u{202f}s"
            ]
        );
        assert_eq!(
            [9_996.0, 99_960.0, 20_000.0].map(time),
            ["10.0\u{202f}ms", "100\u{202f}ms", "20.0\u{202f}ms"]
        );
        assert_eq!(
            [2_449.0, 14_600.0, 7.0].map(two_digits),
            ["2.4\u{202f}ms", "15\u{202f}ms", "7\u{202f}µs"]
        );
        assert_eq!(round_time(20_000.0), "20\u{202f}ms");
        assert_eq!(
            [59.2, 61.0, 3_720.0].map(length),
            [
                "59.2\u{202f}s",
                "1\u{202f}min 1\u{202f}s",
                "1\u{202f}h 2\u{202f}min"
            ]
        );
        assert_eq!(
            [5.0, 65.0, 3_725.0].map(offset),
            ["0:05", "1:05", "1:02:05"]
        );
    }
}
