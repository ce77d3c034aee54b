//! `sim`: runs seeds, tells what they found.

use std::process::ExitCode;

use anyhow::bail;
use clap::Parser;
use sim::{Bug, Outcome, Seeds, Summary, many, tell};

/// Seeds within which every deliberate bug has to be found.
const WITHIN: u64 = 500;

/// The cores of relay, fan-out and sweep under a seeded scheduler.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many seeds to run.
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Threads; 0: as many as there are processors.
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Switches a deliberate bug on (a build with the feature `bugs`).
    #[arg(long)]
    bug: Option<String>,
    /// Looks for every deliberate bug, and tells how many seeds each took.
    #[arg(long)]
    bugs: bool,
    /// Runs this seed alone.
    #[arg(long, conflicts_with_all = ["seeds", "from", "bugs"])]
    seed: Option<u64>,
    /// Prints all of its history.
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Lines of history that are shown of a violation.
    #[arg(long, default_value_t = 30)]
    lines: usize,
    /// Ends after so many violations.
    #[arg(long, default_value_t = 5)]
    enough: usize,
}

fn main() -> anyhow::Result<ExitCode> {
    let mut arguments = Arguments::parse();
    if (arguments.bug.is_some() || arguments.bugs) && !cfg!(feature = "bugs") {
        bail!("this build has no deliberate bugs: build it with `--features bugs`");
    }
    if arguments.threads == 0 {
        arguments.threads = std::thread::available_parallelism().map_or(1, usize::from);
    }
    let bug = match &arguments.bug {
        None => None,
        Some(name) => Some(known(name)?),
    };
    let clean = if arguments.bugs {
        every_bug(&arguments)
    } else if let Some(seed) = arguments.seed {
        one(&arguments, seed, bug)
    } else {
        seeds(&arguments, bug)
    };
    Ok(if clean {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn known(name: &str) -> anyhow::Result<Bug> {
    let Some(bug) = Bug::from_name(name) else {
        let names: Vec<&str> = Bug::ALL.into_iter().map(Bug::as_str).collect();
        bail!("no bug is called {name:?}; there are {}", names.join(", "));
    };
    Ok(bug)
}

/// One seed; with all its history if that is asked for.
fn one(arguments: &Arguments, seed: u64, bug: Option<Bug>) -> bool {
    let (outcome, lines) = tell(seed, bug);
    if arguments.trace {
        lines.iter().for_each(|line| println!("{line}"));
    }
    let summary = Summary {
        seeds: 1,
        steps: outcome.steps,
        sent_again: outcome.sent_again,
        violations: outcome
            .violation
            .is_some()
            .then(|| outcome.clone())
            .into_iter()
            .collect(),
    };
    print(arguments, &summary, bug);
    summary.violations.is_empty()
}

fn seeds(arguments: &Arguments, bug: Option<Bug>) -> bool {
    let summary = many(
        Seeds {
            from: arguments.from,
            count: arguments.seeds,
            threads: arguments.threads,
            bug,
        },
        arguments.enough,
    );
    print(arguments, &summary, bug);
    summary.violations.is_empty()
}

fn print(arguments: &Arguments, summary: &Summary, bug: Option<Bug>) {
    for outcome in &summary.violations {
        explain(arguments, outcome, bug);
    }
    println!(
        "SIM seeds={} steps={} resent={} violations={}",
        summary.seeds,
        summary.steps,
        summary.sent_again,
        summary.violations.len()
    );
}

/// What broke, how it came to that, and how to see it again.
fn explain(arguments: &Arguments, outcome: &Outcome, bug: Option<Bug>) {
    let Some(violation) = &outcome.violation else {
        return;
    };
    let (_, history) = tell(outcome.seed, bug);
    let skipped = history.len().saturating_sub(arguments.lines);
    println!("… {skipped} lines before");
    history
        .iter()
        .skip(skipped)
        .for_each(|line| println!("{line}"));
    let seed = outcome.seed;
    println!(
        "seed {seed} breaks {}: {}",
        violation.invariant.as_str(),
        violation.text
    );
    let with = bug.map_or_else(String::new, |bug| format!(" --bug {}", bug.as_str()));
    println!("again:   ./x sim --seeds 1 --from {seed}{with}");
    println!("in full: ./x sim --seed {seed} --trace{with}\n");
}

/// Looks for each bug, up to the first seed that finds it.
fn every_bug(arguments: &Arguments) -> bool {
    let mut took = Vec::new();
    println!("{:<24} {:>6}  {:<8} what is wrong", "bug", "seeds", "broke");
    for bug in Bug::ALL {
        let summary = many(
            Seeds {
                from: arguments.from,
                count: WITHIN,
                threads: arguments.threads,
                bug: Some(bug),
            },
            1,
        );
        let first = summary.violations.first();
        let seeds = first.map(|outcome| outcome.seed - arguments.from + 1);
        let broke = first.and_then(|outcome| outcome.violation.as_ref());
        println!(
            "{:<24} {:>6}  {:<8} {}",
            bug.as_str(),
            seeds.map_or_else(|| "-".to_owned(), |seeds| seeds.to_string()),
            broke.map_or("-", |violation| violation.invariant.as_str()),
            bug.words()
        );
        took.extend(seeds);
    }
    took.sort_unstable();
    let median = took.get(took.len() / 2).copied().unwrap_or_default();
    println!(
        "SIM bugs found={}/{} median_seeds={median}",
        took.len(),
        Bug::ALL.len()
    );
    took.len() == Bug::ALL.len()
}
