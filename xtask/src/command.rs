//! The commands of `./x`: names, one line of help each, and what a wrong name
//! was probably meant to be.

use crate::failure::Failure;

/// One command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Up,
    Down,
    Status,
    Reset,
    Run,
    /// The inner half of `run`; not for people, so not in the help.
    Supervise,
    Demo,
    Test,
    Chaos,
    Sim,
    Load,
    Judge,
    Graph,
    Bench,
    Tidy,
    Ci,
    Help,
}

const ALL: [(Command, &str, &str); 16] = [
    (
        Command::Up,
        "up",
        "start Postgres, Kafka and Cassandra (finds running ones)",
    ),
    (Command::Down, "down", "stop them; data stays"),
    (
        Command::Status,
        "status",
        "show servers and services: address, state, memory",
    ),
    (Command::Reset, "reset", "stop them and wipe their data"),
    (
        Command::Run,
        "run",
        "servers and all services in the foreground, Ctrl-C stops [--keep-servers]",
    ),
    (
        Command::Demo,
        "demo",
        "watch posts travel while parts are killed; `./x demo --help` has options",
    ),
    (
        Command::Test,
        "test",
        "all tests against real servers; more words go to `cargo test`",
    ),
    (
        Command::Chaos,
        "chaos",
        "one fault on real servers under load, judged; `./x chaos --list` shows all",
    ),
    (
        Command::Sim,
        "sim",
        "thousands of seeded histories of the pure cores: `./x sim --seeds 5000`",
    ),
    (
        Command::Load,
        "load",
        "open-loop load, judged, with a report: `./x load steady`; `--list` shows all",
    ),
    (
        Command::Judge,
        "judge",
        "compare a load run's journal with what the stores hold",
    ),
    (
        Command::Graph,
        "graph",
        "make a follow graph, or load one from a list of edges",
    ),
    (
        Command::Bench,
        "bench",
        "what the account costs and finding takes (sweep), what load itself costs (generator)",
    ),
    (
        Command::Tidy,
        "tidy",
        "check file sizes, layers, crate edges, invariants",
    ),
    (
        Command::Ci,
        "ci",
        "what CI runs: fmt, clippy, tidy, doc, test, chaos --quick, demo --once (debug)",
    ),
    (Command::Help, "help", "this text"),
];

const SUPERVISE: &str = "run-supervised";

impl Command {
    /// Reads a command's name.
    pub(crate) fn parse(name: &str) -> Result<Self, Failure> {
        let known = match name {
            SUPERVISE => Some(Self::Supervise),
            "--help" | "-h" => Some(Self::Help),
            _ => ALL
                .into_iter()
                .find(|(_, known, _)| *known == name)
                .map(|(command, ..)| command),
        };
        known.ok_or_else(|| Failure::usage(unknown(name)))
    }

    /// Whether `--help` behind it is for the program it starts.
    pub(crate) fn passes_arguments(self) -> bool {
        matches!(
            self,
            Self::Demo
                | Self::Test
                | Self::Chaos
                | Self::Sim
                | Self::Load
                | Self::Judge
                | Self::Graph
                | Self::Bench
                | Self::Supervise
        )
    }

    /// Refuses words behind a command that takes none.
    pub(crate) fn without_arguments(self, rest: &[String]) -> Result<(), Failure> {
        match rest.first() {
            None => Ok(()),
            Some(word) => Err(Failure::usage(
                format!("{self:?} takes no arguments, got `{word}`").to_lowercase(),
            )),
        }
    }
}

/// The name of the command that carries out `run`.
pub(crate) fn supervise_name() -> &'static str {
    SUPERVISE
}

/// All commands, one line each.
pub(crate) fn help() -> String {
    let mut text = "usage: ./x [--no-install] <command>\n".to_owned();
    for (_, name, line) in ALL {
        text.push_str(&format!("\n  {name:<7} {line}"));
    }
    text
}

fn unknown(name: &str) -> String {
    let nearest = ALL
        .into_iter()
        .map(|(_, known, _)| (distance(name, known), known))
        .min();
    match nearest {
        Some((steps, known)) if steps <= 2 => {
            format!("no command `{name}`; did you mean `{known}`?")
        }
        _ => format!("no command `{name}`\n{}", help()),
    }
}

/// How many letters to add, drop or change to get from one word to the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let change = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_by_its_name_and_stands_in_the_help() {
        for (command, name, _) in ALL {
            assert_eq!(Command::parse(name).expect("known"), command);
            assert!(help().contains(name));
        }
    }

    #[test]
    fn a_slip_gets_the_nearest_name() {
        assert_eq!(
            unknown("statsu"),
            "no command `statsu`; did you mean `status`?"
        );
        assert_eq!(unknown("dem"), "no command `dem`; did you mean `demo`?");
        assert!(unknown("frobnicate").contains("usage:"));
    }

    #[test]
    fn distances() {
        assert_eq!(distance("up", "up"), 0);
        assert_eq!(distance("tst", "test"), 1);
        assert_eq!(distance("", "ci"), 2);
        assert_eq!(distance("run", "sun"), 1);
    }
}
