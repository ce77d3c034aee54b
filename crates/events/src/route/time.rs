//! The text of a `timestamptz` cell as RFC 3339, digit for digit.

/// `2026-11-29 18:58:55.123456+00` → `2026-11-29T18:58:55.123456Z`. `None` for what RFC 3339
/// cannot say: infinity, years beyond 9999 or BC, offsets with seconds.
pub fn rfc3339(text: &str) -> Option<String> {
    let (date, rest) = text.split_once(' ')?;
    let zone = rest.find(['+', '-'])?;
    let (clock, offset) = rest.split_at_checked(zone)?;
    let (clock, fraction) = clock
        .split_once('.')
        .map_or((clock, ""), |(clock, fraction)| (clock, fraction));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let shaped = |text: &str, separator: char, lengths: [usize; 3]| {
        let mut parts = text.split(separator);
        lengths.iter().all(|length| {
            parts
                .next()
                .is_some_and(|part| part.len() == *length && digits(part))
        }) && parts.next().is_none()
    };
    if !shaped(date, '-', [4, 2, 2]) || !shaped(clock, ':', [2, 2, 2]) || !digits(fraction) {
        return None;
    }
    let (hours, minutes) = match offset.get(1..)?.split_once(':') {
        Some((hours, minutes)) => (hours, minutes),
        None => (offset.get(1..)?, "00"),
    };
    if hours.len() != 2 || minutes.len() != 2 || !digits(hours) || !digits(minutes) {
        return None;
    }
    let dot = if fraction.is_empty() { "" } else { "." };
    let utc = hours == "00" && minutes == "00";
    let sign = offset.get(..1)?;
    Some(if utc {
        format!("{date}T{clock}{dot}{fraction}Z")
    } else {
        format!("{date}T{clock}{dot}{fraction}{sign}{hours}:{minutes}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn postgres_text_becomes_rfc_3339() {
        for (text, expected) in [
            (
                "2026-11-29 18:58:55.123456+00",
                Some("2026-11-29T18:58:55.123456Z"),
            ),
            ("2026-11-29 18:58:55+00", Some("2026-11-29T18:58:55Z")),
            (
                "2026-11-29 18:58:55.1+05:30",
                Some("2026-11-29T18:58:55.1+05:30"),
            ),
            ("2026-11-29 18:58:55-05", Some("2026-11-29T18:58:55-05:00")),
            ("infinity", None),
            ("0044-03-15 12:00:00+00 BC", None),
            ("12026-11-29 18:58:55+00", None),
            ("2026-11-29 18:58:55", None),
            ("2026-11-29 18:58:55+00:00:07", None),
            ("", None),
        ] {
            assert_eq!(rfc3339(text).as_deref(), expected, "{text}");
        }
    }
}
