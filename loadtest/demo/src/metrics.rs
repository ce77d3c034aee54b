//! Reads single values out of a Prometheus text. Pure.

/// The sum of all series of a metric; `None` when there is none of that name.
pub(crate) fn sum(text: &str, name: &str) -> Option<f64> {
    let value = |line: &str| {
        let rest = line.strip_prefix(name)?;
        let number = match rest.as_bytes().first()? {
            b' ' => rest,
            b'{' => rest.rsplit_once('}')?.1,
            _ => return None,
        };
        number.split_whitespace().next()?.parse::<f64>().ok()
    };
    text.lines()
        .filter_map(value)
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
    }
}
