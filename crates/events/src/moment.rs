//! A moment as text. Pure, so that there is one calendar wherever one is needed.

use crate::id::Micros;

/// RFC 3339 in UTC, to the microsecond.
pub fn rfc3339(moment: Micros) -> String {
    const DAY: i64 = 24 * Micros::HOUR;
    let (days, micros) = (moment.0.div_euclid(DAY), moment.0.rem_euclid(DAY));
    let (year, month, day) = civil(days);
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:06}Z")
}

/// The date of a day since 1970-01-01, in the Gregorian calendar. The year is taken to begin in
/// March, so that the leap day is its last one.
const fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        let table = [
            (0, "1970-01-01T00:00:00.000000Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
            (951_782_400_000_000, "2000-02-29T00:00:00.000000Z"),
            (1_735_689_600_000_000, "2025-01-01T00:00:00.000000Z"),
            (1_772_366_400_123_456, "2026-03-01T12:00:00.123456Z"),
            (4_107_542_400_000_000, "2100-03-01T00:00:00.000000Z"),
        ];
        for (micros, text) in table {
            assert_eq!(rfc3339(Micros(micros)), text);
        }
    }
}
