//! `chaos`: runs faults and ends with a table and one line for all of them.
//!
//! Exit code 0: every fault was hit and the promise held, known failures aside. 1: something else.
//! 64: words that make no sense.

use std::{
    path::PathBuf,
    process::{Command, ExitCode},
    time::Duration,
};

use chaos::{
    Scenario,
    campaign::{Agenda, Campaign, Seeds},
    results, scenario,
    summary::Summary,
};
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

const USAGE: u8 = 64;

/// Faults against the whole system, on real servers, with load going on.
#[derive(Debug, Parser)]
#[command(name = "chaos")]
struct Arguments {
    /// The faults; --list shows all.
    scenario: Vec<String>,
    /// What chance decides follows from it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Every seed from A to B, both included.
    #[arg(long, value_name = "A..B", conflicts_with = "seed")]
    seeds: Option<Seeds>,
    /// Every fault.
    #[arg(long, conflicts_with_all = ["scenario", "quick"])]
    all: bool,
    /// The faults that are marked as short.
    #[arg(long, conflicts_with = "scenario")]
    quick: bool,
    /// Goes round with rising seeds until so many minutes are over.
    #[arg(long, value_name = "M", conflicts_with = "seeds")]
    minutes: Option<u64>,
    /// Shows every fault and ends.
    #[arg(long)]
    list: bool,
    /// Shows the latest outcome of every fault and seed in the file of results, and ends.
    #[arg(long)]
    summary: bool,
    /// The file of results, to which every run adds a line.
    #[arg(long, default_value = "target/chaos/results.jsonl")]
    results: PathBuf,
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are told the same way, and are no fault.
            let code = if error.use_stderr() { USAGE } else { 0 };
            let _unprintable = error.print();
            return ExitCode::from(code);
        }
    };
    if arguments.list {
        list();
        return ExitCode::SUCCESS;
    }
    let outcome = if arguments.summary {
        results::read(&arguments.results).map(results::latest)
    } else {
        match choose(&arguments) {
            Ok(chosen) => run(chosen, &arguments),
            Err(fault) => {
                eprintln!("chaos: {fault}");
                return ExitCode::from(USAGE);
            }
        }
    };
    let good = outcome.map(|outcomes| {
        let summary = Summary::of(&outcomes);
        println!("{summary}");
        summary.is_good()
    });
    match good {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("chaos: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn list() {
    let width = scenario::all().map(|scenario| scenario.name.len()).max();
    let width = width.unwrap_or_default();
    for scenario in scenario::all() {
        let covers: Vec<String> = scenario.covers.iter().map(u8::to_string).collect();
        let covers = match covers.as_slice() {
            [] => "-".to_owned(),
            numbers => numbers.join(","),
        };
        let quick = if scenario.quick { "quick" } else { "" };
        println!(
            "{:<width$} {:>4} s  {:<8} {:<5} {}",
            scenario.name,
            scenario.limit.as_secs(),
            covers,
            quick,
            scenario.about
        );
        if let Some(reason) = scenario.stands.known_failing() {
            println!("{:<width$}         known failing: {reason}", "");
        }
    }
}

/// The scenarios that are asked for.
fn choose(arguments: &Arguments) -> Result<Vec<&'static Scenario>, String> {
    if arguments.all {
        return Ok(scenario::all().collect());
    }
    if arguments.quick {
        return Ok(scenario::all().filter(|scenario| scenario.quick).collect());
    }
    if arguments.scenario.is_empty() {
        return Err("name a scenario, or use --all or --quick; --list shows them".to_owned());
    }
    let find = |name: &String| Scenario::find(name).ok_or_else(|| unknown(name));
    arguments.scenario.iter().map(find).collect()
}

fn unknown(name: &str) -> String {
    let nearest = scenario::all()
        .map(|scenario| {
            (
                strsim::damerau_levenshtein(name, scenario.name),
                scenario.name,
            )
        })
        .min();
    // Further away than half of it is another word.
    let nearest = nearest.filter(|(distance, found)| distance * 2 <= found.len().max(name.len()));
    let hint = nearest.map_or_else(String::new, |(_, found)| format!("; did you mean {found}?"));
    format!("no scenario {name:?}{hint} --list shows all")
}

/// Does the runs; answers what became of them, also when somebody interrupts it.
fn run(
    chosen: Vec<&'static Scenario>,
    arguments: &Arguments,
) -> anyhow::Result<Vec<results::Outcome>> {
    let one = Seeds {
        first: arguments.seed,
        last: arguments.seed,
    };
    let agenda = match arguments.minutes {
        Some(minutes) => Agenda::of_time(
            chosen,
            arguments.seed,
            Duration::from_secs(minutes.saturating_mul(60)),
        ),
        None => Agenda::of_seeds(chosen, arguments.seeds.unwrap_or(one)),
    };
    let mut campaign = Campaign {
        results: arguments.results.clone(),
        commit: commit(),
        outcomes: Vec::new(),
    };
    let runtime = tokio::runtime::Runtime::new()?;
    let interrupted = runtime.block_on(async {
        let mut ended = signal(SignalKind::terminate())?;
        tokio::select! {
            done = campaign.run(agenda) => done.map(|()| false),
            _ = tokio::signal::ctrl_c() => Ok(true),
            _ = ended.recv() => Ok(true),
        }
    })?;
    if interrupted {
        println!("{}", Summary::of(&campaign.outcomes));
        anyhow::bail!("interrupted");
    }
    Ok(campaign.outcomes)
}

/// The commit of the working tree, with a `+` when files were changed since.
fn commit() -> String {
    let git = |words: &[&str]| {
        let output = Command::new("git").args(words).output().ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short", "HEAD"]) else {
        return "unknown".to_owned();
    };
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]);
    let mark = if changed.is_some_and(|text| !text.is_empty()) {
        "+"
    } else {
        ""
    };
    format!("{commit}{mark}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Vec<&'static str>, String> {
        let words = std::iter::once("chaos").chain(words.iter().copied());
        let arguments = Arguments::try_parse_from(words).map_err(|error| error.to_string())?;
        let chosen = choose(&arguments)?;
        Ok(chosen.into_iter().map(|scenario| scenario.name).collect())
    }

    #[test]
    fn scenarios_are_chosen_by_name_mark_or_all() {
        assert_eq!(
            parse(&["slot-dropped", "relay-absent"]),
            Ok(vec!["slot-dropped", "relay-absent"])
        );
        let (quick, all) = (parse(&["--quick"]), parse(&["--all"]));
        let count = |names: Result<Vec<_>, _>| names.map(|names| names.len());
        assert!(count(quick) < count(all));
    }

    #[test]
    fn words_that_make_no_sense_are_told() {
        let fault = |words: &[&str]| parse(words).expect_err("no sense");
        assert!(fault(&["slot-droped"]).contains("did you mean slot-dropped?"));
        assert!(!fault(&["xyz"]).contains("mean"));
        assert!(fault(&[]).contains("--all"));
        assert!(fault(&["--seeds", "5..1", "--all"]).contains("1..10"));
        assert!(fault(&["--all", "--quick"]).contains("cannot be used"));
        assert!(fault(&["--all", "--minutes", "5", "--seeds", "1..2"]).contains("cannot be used"));
    }
}
