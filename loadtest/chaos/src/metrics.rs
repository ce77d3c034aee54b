//! Reads values out of a Prometheus text. Pure.

/// Every series of a metric, as its labels (`{stage="published"}`, or nothing) and its value.
pub fn series<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = (&'a str, f64)> {
    text.lines().filter_map(move |line| {
        let rest = line.strip_prefix(name)?;
        let (labels, value) = match rest.as_bytes().first()? {
            b' ' => ("", rest),
            b'{' => rest.split_at(rest.rfind('}')? + 1),
            _ => return None,
        };
        let value = value.split_whitespace().next()?.parse().ok()?;
        Some((labels, value))
    })
}

/// The sum of all series of a metric; `None` when there is none of that name.
pub fn sum(text: &str, name: &str) -> Option<f64> {
    series(text, name)
        .map(|(_, value)| value)
        .reduce(|sum, value| sum + value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_summed_and_names_are_whole() {
        let text = "# HELP a_total Things.\n# TYPE a_total counter\na_total{x=\"} 1\"} 2\na_total{x=\"b\"} 3.5 17\n\
                    a_total_created 9\nb 4\n";
        assert_eq!(sum(text, "a_total"), Some(5.5));
        assert_eq!(sum(text, "b"), Some(4.0));
        assert_eq!(sum(text, "a"), None);
        let found: Vec<_> = series(text, "a_total").collect();
        assert_eq!(found, [("{x=\"} 1\"}", 2.0), ("{x=\"b\"}", 3.5)]);
    }
}
