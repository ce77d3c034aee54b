//! The table, the file and the last line.

use comfy_table::{Table, presets::UTF8_FULL_CONDENSED};
use serde::Serialize;

use crate::{
    comparison::{Accounting, WholeOutbox},
    find::Found,
    flow::Rates,
    idle::Idle,
    ledger::Size,
    machine::Machine,
    numbers::Runs,
};

/// Everything that was measured.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    /// Ids of the largest outbox.
    pub(crate) rows: i64,
    pub(crate) runs: u32,
    /// One id in so many has no row.
    pub(crate) gap_every: i64,
    pub(crate) machine: Machine,
    /// None when only the other part was measured.
    pub(crate) finding: Option<Finding>,
    pub(crate) travelling: Option<Travelling>,
}

/// What was measured in the large outbox.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Finding {
    /// At a tenth, a fifth, and all of the rows.
    pub(crate) found: Vec<Found>,
    /// With less and more missing, at all of the rows.
    pub(crate) by_missing: Vec<Found>,
    /// Both stages together.
    pub(crate) idle: Idle,
    pub(crate) ledger: Size,
    pub(crate) whole_outbox: WholeOutbox,
}

/// What was measured of rows that travel.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Travelling {
    pub(crate) accounting: Accounting,
    pub(crate) rates: Rates,
}

/// What, Tideline, others, the physical limit.
type Line = [String; 4];

/// A number with what it has to be.
struct Target {
    name: &'static str,
    value: f64,
    digits: usize,
    limit: Limit,
}

enum Limit {
    Below(f64),
    AtLeast(f64),
}

impl Limit {
    fn holds(&self, value: f64) -> bool {
        match self {
            Self::Below(limit) => value < *limit,
            Self::AtLeast(limit) => value >= *limit,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Below(limit) => format!("< {limit}"),
            Self::AtLeast(limit) => format!("≥ {limit}"),
        }
    }
}

impl Report {
    /// As JSON, for a file.
    pub(crate) fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }

    /// What was found, beside what others do and the physical limit.
    pub(crate) fn table(&self) -> String {
        let machine = &self.machine;
        format!(
            "{}\n{}\n{} cores ({}), {} MiB, load before {}; Postgres {}, shared_buffers {}; median \
             of {} runs, least to greatest in parentheses; one id in {} is a gap",
            self.comparisons(),
            self.targets_table(),
            machine.cores,
            machine.cpu,
            machine.memory_mib,
            machine.load_before,
            machine.postgres,
            machine.shared_buffers,
            self.runs,
            self.gap_every,
        )
    }

    fn comparisons(&self) -> Table {
        let mut table = Table::new();
        table.load_style(UTF8_FULL_CONDENSED);
        table.set_header(["", "Tideline", "others", "physical limit"]);
        if let Some(finding) = &self.finding {
            table.add_rows(finding.lines());
        }
        if let Some(travelling) = &self.travelling {
            table.add_rows(travelling.accounting_lines());
            table.add_rows(travelling.rate_lines());
        }
        table
    }

    fn targets_table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(UTF8_FULL_CONDENSED);
        table.set_header(["", "measured", "target", ""]);
        for target in self.targets() {
            let met = if target.limit.holds(target.value) {
                "met"
            } else {
                "MISSED"
            };
            table.add_row([
                target.name.to_owned(),
                format!("{:.*}", target.digits, target.value),
                target.limit.text(),
                met.to_owned(),
            ]);
        }
        table
    }

    /// In the order of the last line; those of the parts that were measured.
    fn targets(&self) -> impl Iterator<Item = Target> {
        let found = |at: usize| {
            let finding = self.finding.as_ref()?;
            let found = finding.found.get(at);
            Some(found.map_or(f64::NAN, |found| found.look_ms.median()))
        };
        let finding = self.finding.as_ref();
        let ledger_kib = finding.map(|finding| finding.ledger.kib_per_million());
        let idle_ms = finding.map(|finding| finding.idle.database_ms.median());
        let rates = self.travelling.as_ref().map(|travelling| &travelling.rates);
        let target = |name, value: Option<f64>, digits, limit| {
            value.map(|value| Target {
                name,
                value,
                digits,
                limit,
            })
        };
        let below = Limit::Below;
        let cost_pct = rates.map(Rates::relay_cost_pct);
        let share = rates.map(Rates::redeliver_vs_relay);
        let targets = [
            target("find_ms_0_5m", found(0), 1, below(500.0)),
            target("find_ms_5m", found(2), 1, below(500.0)),
            target("ledger_kib_per_million", ledger_kib, 1, below(150.0)),
            target("relay_cost_pct", cost_pct, 1, below(3.0)),
            target("redeliver_vs_relay", share, 2, Limit::AtLeast(0.5)),
            target("find_ms_1m", found(1), 1, below(500.0)),
            target("idle_round_ms", idle_ms, 1, below(5.0)),
        ];
        targets.into_iter().flatten()
    }

    /// The last line of a run. Names of sizes are those of the full scale; `rows` tells the real
    /// one.
    pub(crate) fn last_line(&self) -> String {
        let mut line = "BENCH sweep".to_owned();
        for target in self.targets() {
            line.push_str(&format!(
                " {}={:.*}",
                target.name, target.digits, target.value
            ));
        }
        if let Some(finding) = &self.finding {
            let rested = finding.idle.rested_ms.median();
            line.push_str(&format!(" idle_rested_ms={rested:.1}"));
        }
        format!("{line} rows={}", self.rows)
    }
}

impl Finding {
    fn lines(&self) -> Vec<Line> {
        let all = self.ledger.ids - self.ledger.gaps;
        let whole = &self.whole_outbox;
        let mut lines = Vec::new();
        for each in self.found.iter().chain(&self.by_missing) {
            let is_compared = each.rows == all && each.missing == 1_000;
            let beside =
                |name: &str, runs: &Runs| is_compared.then(|| format!("{name} {}", show(runs, 0)));
            lines.push([
                format!("find {} of {} rows, ms", each.missing, each.rows),
                show(&each.look_ms, 1),
                beside("anti-join", &whole.anti_join_ms).unwrap_or_default(),
                beside("count(*)", &whole.count_ms).unwrap_or_default(),
            ]);
        }
        // Gaps are read again, and the pool connects.
        for each in &self.found {
            lines.push(line(
                &format!("first look of a process, {} rows, ms", each.rows),
                show(&each.first_look_ms, 1),
                String::new(),
            ));
        }
        let round = "round with nothing missing, both stages, ms";
        let page = self.idle.rested_page_us.median();
        lines.push(line(
            &format!("{round} of the database"),
            show(&self.idle.database_ms, 1),
            String::new(),
        ));
        lines.push(line(
            &format!("{round} elapsed"),
            show(&self.idle.elapsed_ms, 1),
            String::new(),
        ));
        lines.push(line(
            &format!("{round} of the database after 10 s of rest"),
            show(&self.idle.rested_ms, 1),
            format!("a page that rested: {page:.1} µs"),
        ));
        let size = &self.ledger;
        lines.extend([
            line(
                "account of 1 M events, both stages, KiB",
                format!("{:.1} in {} rows", size.kib_per_million(), size.rows),
                String::new(),
            ),
            line(
                "notes of gaps per 1 M events, KiB",
                format!("{:.1}", size.void_kib_per_million()),
                String::new(),
            ),
        ]);
        lines
    }
}

impl Travelling {
    fn accounting_lines(&self) -> Vec<Line> {
        let Accounting {
            events,
            ledger,
            mark,
            find_unmarked_ms,
        } = &self.accounting;
        let by_mark = |value: f64, digits: usize| format!("mark on the row {value:.digits$}");
        vec![
            line(
                "account for one event, µs",
                format!("{:.2}", ledger.micros),
                by_mark(mark.micros, 2),
            ),
            line(
                "account for one event, bytes of WAL",
                format!("{:.1}", ledger.wal_bytes),
                by_mark(mark.wal_bytes, 1),
            ),
            line(
                "account for one event, bytes before vacuum",
                format!("{:.1}", ledger.bytes),
                by_mark(mark.bytes, 1),
            ),
            line(
                &format!("find 1000 of {events} marked rows, ms"),
                String::new(),
                by_mark(find_unmarked_ms.median(), 1),
            ),
        ]
    }

    fn rate_lines(&self) -> Vec<Line> {
        let rates = &self.rates;
        let limit = || format!("bare producer {}", show(&rates.producer, 0));
        let mut lines = vec![
            line(
                &format!("relay drains {} rows, rows/s", rates.rows),
                show(&rates.relay, 0),
                format!("no ledger {}", show(&rates.relay_without_ledger, 0)),
            ),
            line(
                "relay, processor µs per row",
                show(&rates.relay_cpu_us, 1),
                format!("no ledger {}", show(&rates.relay_without_ledger_cpu_us, 1)),
            ),
            line(
                &format!("sweep sends {} rows again, rows/s", rates.rows),
                show(&rates.sweep, 0),
                String::new(),
            ),
        ];
        for at in [0, 2] {
            lines[at][3] = limit();
        }
        lines
    }
}

fn line(name: &str, own: String, others: String) -> Line {
    [name.to_owned(), own, others, String::new()]
}

/// `12.3 (11.9-14.0)`.
/// The median, and the least and the greatest in parentheses.
pub(crate) fn show(runs: &Runs, digits: usize) -> String {
    let (least, greatest) = runs.spread();
    format!(
        "{:.digits$} ({least:.digits$}-{greatest:.digits$})",
        runs.median()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let runs = |value: f64| [value].into_iter().collect::<Runs>();
        let found = |rows, ms| Found {
            rows,
            missing: 1_000,
            first_look_ms: runs(600.0),
            look_ms: runs(ms),
        };
        Report {
            rows: 5_000_000,
            runs: 1,
            gap_every: 1_000,
            machine: Machine::default(),
            finding: Some(Finding {
                found: vec![
                    found(499_500, 40.0),
                    found(999_000, 45.0),
                    found(4_995_000, 61.25),
                ],
                by_missing: Vec::new(),
                idle: Idle {
                    elapsed_ms: runs(9.0),
                    database_ms: runs(7.5),
                    rested_ms: runs(30.0),
                    ..Idle::default()
                },
                ledger: Size {
                    ids: 5_000_000,
                    gaps: 5_000,
                    bytes: 512_000,
                    ..Size::default()
                },
                whole_outbox: WholeOutbox {
                    anti_join_ms: runs(2_345.0),
                    ..WholeOutbox::default()
                },
            }),
            travelling: Some(Travelling {
                accounting: Accounting::default(),
                rates: Rates {
                    relay: runs(98.0),
                    relay_without_ledger: runs(100.0),
                    sweep: runs(49.0),
                    ..Rates::default()
                },
            }),
        }
    }

    #[test]
    fn the_last_line_has_every_number() {
        assert_eq!(
            report().last_line(),
            "BENCH sweep find_ms_0_5m=40.0 find_ms_5m=61.2 ledger_kib_per_million=100.0 \
             relay_cost_pct=2.0 redeliver_vs_relay=0.50 find_ms_1m=45.0 idle_round_ms=7.5 idle_rested_ms=30.0 rows=5000000"
        );
        let part = Report {
            finding: None,
            ..report()
        };
        assert_eq!(
            part.last_line(),
            "BENCH sweep relay_cost_pct=2.0 redeliver_vs_relay=0.50 rows=5000000"
        );
    }

    #[test]
    fn the_table_tells_what_is_missed_and_compares_at_full_size() {
        let table = report().table();
        assert_eq!(table.matches("MISSED").count(), 1, "{table}");
        assert_eq!(table.matches("anti-join 2345").count(), 1, "{table}");
    }

    #[test]
    fn the_file_holds_each_run() {
        let json: serde_json::Value = serde_json::from_str(&report().json().unwrap()).unwrap();
        assert_eq!(json["finding"]["found"][2]["look_ms"][0], 61.25);
        assert_eq!(json["travelling"]["rates"]["relay"][0], 98.0);
    }
}
