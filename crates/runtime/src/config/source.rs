//! Where values come from, flattened to (place, path, value).

use std::path::PathBuf;

use super::{ConfigError, Fault, PREFIX};

/// Where to look, later sources winning.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    file: Option<PathBuf>,
    environment: Vec<(String, String)>,
}

impl Sources {
    /// The process's environment, and a TOML file when one is named.
    pub fn of_process(file: Option<PathBuf>) -> Self {
        // Not `vars()`: that one panics on a variable which is not Unicode.
        let environment = std::env::vars_os()
            .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(key, _)| key.starts_with(PREFIX))
            .collect();
        Self { file, environment }
    }

    /// Only these variables; for tests and for parts run inside one process.
    pub fn of_variables(environment: Vec<(String, String)>) -> Self {
        Self {
            file: None,
            environment,
        }
    }
}

/// One value as it was given.
#[derive(Debug)]
pub(super) struct Setting {
    /// For messages.
    pub(super) at: String,
    /// Key path.
    pub(super) path: Vec<String>,
    /// From a file: typed. From the environment: text, read as the default's type.
    pub(super) value: Given,
}

#[derive(Debug)]
pub(super) enum Given {
    Text(String),
    Typed(toml::Value),
}

pub(super) fn settings(sources: &Sources) -> Result<Vec<Setting>, ConfigError> {
    let mut settings = Vec::new();
    if let Some(file) = &sources.file {
        let fault = |text: String| ConfigError {
            faults: vec![Fault {
                at: file.display().to_string(),
                text,
            }],
        };
        let text = std::fs::read_to_string(file)
            .map_err(|error| fault(format!("cannot be read: {error}")))?;
        let table: toml::Table = toml::from_str(&text).map_err(|error| fault(error.to_string()))?;
        flatten(
            &file.display().to_string(),
            &mut Vec::new(),
            table,
            &mut settings,
        );
    }
    for (key, value) in &sources.environment {
        let path = key
            .trim_start_matches(PREFIX)
            .split("__")
            .map(str::to_lowercase)
            .collect();
        settings.push(Setting {
            at: key.clone(),
            path,
            value: Given::Text(value.clone()),
        });
    }
    Ok(settings)
}

fn flatten(file: &str, path: &mut Vec<String>, table: toml::Table, settings: &mut Vec<Setting>) {
    for (key, value) in table {
        path.push(key);
        match value {
            toml::Value::Table(inner) => flatten(file, path, inner, settings),
            value => settings.push(Setting {
                at: format!("{file}: {}", path.join(".")),
                path: path.clone(),
                value: Given::Typed(value),
            }),
        }
        let _key = path.pop();
    }
}
