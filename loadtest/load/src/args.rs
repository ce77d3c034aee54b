//! The command line. Flags stand above the environment (`. target/sandbox/env`), and who names
//! write-api by a flag names a deployment: the environment's other addresses are left alone then.

use std::path::PathBuf;
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser};
use report::Fact;
use runtime::config::value::Span;

use crate::scenario::Overrides;
use crate::target::Target;

/// Addresses that the environment may give, by the id of their argument.
const ADDRESSES: [&str; 8] = [
    "read_api",
    "secret_file",
    "postgres",
    "cql",
    "keyspace",
    "relay_admin",
    "fanout_admin",
    "sweep_admin",
];

/// Sends a planned load at its own times, whatever the deployment does, measures every post from
/// its intended start to its last follower, and has every row judged.
///
/// Exit codes: 0 everything held, 1 the promise or a threshold did not, 2 the run proves nothing
/// (the generator was late, or nobody could judge), 64 usage, 69 something needed does not answer,
/// 130 interrupted.
#[derive(Clone, Debug, Parser)]
#[command(name = "load", version)]
pub struct Args {
    /// A scenario that comes along (--list), or a file.
    pub scenario: Option<String>,
    /// List the scenarios that come along.
    #[arg(long)]
    pub list: bool,
    /// Tell what would be sent, and send nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Seed of graph, arrivals and choices, instead of the scenario's.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// How long operations arrive, instead of the scenario's: 30s, 5m.
    #[arg(long, value_parser = duration)]
    pub duration: Option<Duration>,
    /// One value of the scenario: posts.arrivals.rate=200.
    #[arg(long, value_name = "KEY.PATH=VALUE")]
    pub set: Vec<String>,
    /// Where journal and report go [default: target/load/SCENARIO-SEED].
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// write-api, host:port or URL.
    #[arg(long, env = "TIDELINE_WRITE_API__LISTEN", value_name = "ADDRESS")]
    write_api: Option<String>,
    /// read-api, host:port or URL.
    #[arg(long, env = "TIDELINE_READ_API__LISTEN", value_name = "ADDRESS")]
    read_api: Option<String>,
    /// File with the secret that signs tokens.
    #[arg(long, env = "TIDELINE_AUTH__SECRET_FILE", value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// Postgres: the graph is loaded by COPY, deliveries are read in bulk, posts are judged.
    #[arg(
        long,
        env = "TIDELINE_POSTGRES__URL",
        value_name = "URL",
        hide_env_values = true
    )]
    postgres: Option<String>,
    /// Contact points of the CQL store, comma separated: rows are judged.
    #[arg(long, env = "TIDELINE_CQL__NODES", value_name = "NODES")]
    cql: Option<String>,
    /// Keyspace of the timelines.
    #[arg(long, env = "TIDELINE_CQL__KEYSPACE", value_name = "NAME")]
    keyspace: Option<String>,
    /// Metrics of a service, host:port or URL; may be repeated.
    #[arg(long, value_name = "ADDRESS")]
    metrics: Vec<String>,
    /// A line for the report that the deployment cannot be asked for: kafka=4.1.0; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = note)]
    note: Vec<Fact>,
    #[arg(long, env = "TIDELINE_RELAY__ADMIN", hide = true)]
    relay_admin: Option<String>,
    #[arg(long, env = "TIDELINE_FANOUT__ADMIN", hide = true)]
    fanout_admin: Option<String>,
    #[arg(long, env = "TIDELINE_SWEEP__ADMIN", hide = true)]
    sweep_admin: Option<String>,
}

impl Args {
    /// Reads the command line of the process.
    ///
    /// # Errors
    /// What clap says, help and version included.
    pub fn read() -> Result<Self, clap::Error> {
        Self::of(std::env::args_os())
    }

    /// Reads these words, the program's name first.
    ///
    /// # Errors
    /// What clap says, help and version included.
    pub fn of<I, T>(words: I) -> Result<Self, clap::Error>
    where
        I: IntoIterator<Item = T>,
        T: Into<std::ffi::OsString> + Clone,
    {
        let matches = Self::command().try_get_matches_from(words)?;
        let mut args = Self::from_arg_matches(&matches)?;
        if matches.value_source("write_api") == Some(ValueSource::CommandLine) {
            args.forget_environment(&matches);
        }
        Ok(args)
    }

    fn forget_environment(&mut self, matches: &ArgMatches) {
        let from_env = |id: &&str| matches.value_source(id) == Some(ValueSource::EnvVariable);
        for id in ADDRESSES.iter().filter(|id| from_env(id)) {
            match *id {
                "read_api" => self.read_api = None,
                "secret_file" => self.secret_file = None,
                "postgres" => self.postgres = None,
                "cql" => self.cql = None,
                "keyspace" => self.keyspace = None,
                "relay_admin" => self.relay_admin = None,
                "fanout_admin" => self.fanout_admin = None,
                _ => self.sweep_admin = None,
            }
        }
    }

    /// What is changed of the scenario.
    pub fn overrides(&self) -> Overrides {
        Overrides {
            seed: self.seed,
            duration: self.duration,
            set: self.set.clone(),
        }
    }

    /// Which deployment is loaded.
    pub fn target(&self) -> Target {
        let mut metrics = self.metrics.clone();
        if metrics.is_empty() {
            let known = [&self.relay_admin, &self.fanout_admin, &self.sweep_admin];
            metrics.extend(known.into_iter().flatten().cloned());
        }
        Target {
            write_api: self.write_api.clone().unwrap_or_default(),
            read_api: self.read_api.clone().unwrap_or_default(),
            secret_file: self.secret_file.clone().unwrap_or_default(),
            postgres: self.postgres.clone(),
            cql: self.cql.clone(),
            keyspace: self
                .keyspace
                .clone()
                .unwrap_or_else(|| "tideline".to_owned()),
            metrics,
            notes: self.note.clone(),
        }
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    text.parse::<Span>().map(|span| span.0)
}

fn note(text: &str) -> Result<Fact, String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok(Fact::new(name.trim(), value.trim())),
        _ => Err("use NAME=VALUE, such as kafka=4.1.0".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_overrides() {
        let words = [
            "load",
            "steady",
            "--seed",
            "7",
            "--duration",
            "90s",
            "--set",
            "probe.share=0",
            "--write-api",
            "h:1",
            "--metrics",
            "h:2",
            "--metrics",
            "h:3",
            "--note",
            "kafka=4.1.0",
        ];
        let args = Args::of(words).unwrap();
        assert_eq!(args.scenario.as_deref(), Some("steady"));
        assert_eq!(args.overrides().seed, Some(7));
        assert_eq!(args.overrides().duration, Some(Duration::from_secs(90)));
        assert_eq!(args.target().metrics, ["h:2", "h:3"]);
        assert_eq!(args.target().write_api, "h:1");
        assert_eq!(args.target().notes, [Fact::new("kafka", "4.1.0")]);
        assert!(Args::of(["load", "steady", "--note", "=4.1.0"]).is_err());
    }

    #[test]
    fn a_deployment_named_by_a_flag_is_not_mixed_with_the_environments() {
        let matches = Args::command()
            .mut_arg("postgres", |arg| arg.env("PATH"))
            .try_get_matches_from(["load", "steady", "--write-api", "h:1"])
            .unwrap();
        let mut args = Args::from_arg_matches(&matches).unwrap();
        assert!(args.postgres.is_some(), "PATH is set wherever tests run");
        args.forget_environment(&matches);
        assert_eq!(
            (args.postgres.as_deref(), args.write_api.as_deref()),
            (None, Some("h:1"))
        );
    }

    #[test]
    fn what_is_no_span_of_time_is_told() {
        let error = Args::of(["load", "steady", "--duration", "soon"]).unwrap_err();
        assert!(error.to_string().contains("250ms"), "{error}");
    }
}
