//! What a wrong configuration says, and how sources win over one another.

use std::time::Duration;

use runtime::config::{
    ConfigError, Sources, load,
    sections::{Kafka, Log, Postgres, Startup},
    value::{Secret, Span},
};
use serde::{Deserialize, Serialize};

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Example {
    postgres: Postgres,
    kafka: Kafka,
    log: Log,
    startup: Startup,
}

fn read(variables: &[(&str, &str)]) -> Result<Example, ConfigError> {
    let variables = variables
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    load(&Sources::of_variables(variables))
}

#[test]
fn nothing_set_gives_the_defaults() {
    let example = read(&[]).unwrap();
    assert_eq!(example.kafka, Kafka::default());
    assert_eq!(example.startup.budget.0, Duration::from_secs(300));
}

#[test]
fn a_variable_is_read_as_the_type_of_its_default() {
    let example = read(&[
        ("TIDELINE_POSTGRES__POOL_SIZE", "3"),
        ("TIDELINE_STARTUP__BUDGET", "250ms"),
        ("TIDELINE_LOG__FORMAT", "json"),
        ("TIDELINE_KAFKA__NAMESPACE", "17"),
    ])
    .unwrap();
    assert_eq!(example.postgres.pool_size, 3);
    assert_eq!(example.startup.budget, Span::millis(250));
    assert_eq!(example.kafka.namespace, "17");
}

#[test]
fn a_section_of_another_service_is_skipped() {
    assert!(read(&[("TIDELINE_READ_API__LISTEN", "127.0.0.1:1")]).is_ok());
}

#[test]
fn all_faults_are_told_together_with_the_nearest_known_name() {
    let error = read(&[
        ("TIDELINE_KAFKA__BROKER", "x"),
        ("TIDELINE_POSTGRESS__URL", "x"),
        ("TIDELINE_POSTGRES__POOL_SIZE", "many"),
        ("TIDELINE_STARTUP__BUDGET", "5 minutes"),
        ("TIDELINE_LOG__FORMAT", "xml"),
    ])
    .unwrap_err();
    let text = error.to_string();
    assert_eq!(error.faults.len(), 5, "{text}");
    for part in [
        "TIDELINE_KAFKA__BROKER: unknown option \"broker\"; did you mean \"brokers\"?",
        "TIDELINE_POSTGRESS__URL: unknown section \"postgress\"; did you mean \"postgres\"?",
        "\"many\" is not a whole number",
        "is not a span of time",
        "TIDELINE_LOG__FORMAT",
    ] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
}

#[test]
fn the_environment_wins_over_the_file_and_the_file_is_checked_too() {
    let file = std::env::temp_dir().join(format!("tideline-config-{}.toml", std::process::id()));
    std::fs::write(&file, "[kafka]\nbrokers = \"a:1\"\nnamespace = \"file\"\n").unwrap();
    let example: Example = load(&Sources::of_process(Some(file.clone()))).unwrap();
    assert_eq!(example.kafka.namespace, "file");
    std::fs::write(&file, "[kafka]\nnamspace = \"file\"\n").unwrap();
    let error = load::<Example>(&Sources::of_process(Some(file.clone()))).unwrap_err();
    assert!(
        error.to_string().contains("did you mean \"namespace\""),
        "{error}"
    );
    std::fs::remove_file(file).unwrap();
}

#[test]
fn a_secret_is_never_printed() {
    assert_eq!(format!("{:?}", Secret::new("hunter2")), "(hidden)");
}

#[test]
fn spans_round_trip() {
    for text in ["0ms", "250ms", "5s", "10m", "12h", "30d"] {
        assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
    }
    for text in ["", "5", "s", "-1s", "1.5h", "99999999999999999999d"] {
        assert!(text.parse::<Span>().is_err(), "{text}");
    }
}
