//! Moments of the wall clock, as people read them.

use time::OffsetDateTime;

/// Date and time in UTC, to the second; says so when nobody told it.
pub(crate) fn utc(unix_ms: u64) -> String {
    let unknown = || "start unknown".to_owned();
    if unix_ms == 0 {
        return unknown();
    }
    let seconds = i64::try_from(unix_ms / 1_000).unwrap_or(i64::MAX);
    OffsetDateTime::from_unix_timestamp(seconds).map_or_else(
        |_| unknown(),
        |at| {
            format!(
                "{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC",
                at.year(),
                u8::from(at.month()),
                at.day(),
                at.hour(),
                at.minute(),
                at.second()
            )
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_in_utc() {
        assert_eq!(utc(1_772_366_400_999), "2026-03-01 12:00:00 UTC");
        assert_eq!(utc(u64::MAX), "start unknown");
        assert_eq!(utc(0), "start unknown");
    }
}
