//! Puts settings onto the tree of defaults and reads the result, collecting every fault.

use serde::{Serialize, de::DeserializeOwned};
use toml::{Table, Value};

use super::{
    ConfigError, Fault, SECTIONS,
    source::{Given, Setting},
};

pub(super) fn merge<T>(settings: Vec<Setting>) -> Result<T, ConfigError>
where
    T: Serialize + DeserializeOwned + Default,
{
    let defaults =
        Table::try_from(T::default()).expect("defaults are plain data, which TOML can hold");
    let mut merged = defaults.clone();
    let mut faults = Vec::new();
    for setting in settings {
        match place(&defaults, &setting) {
            Ok(None) => {}
            Ok(Some(value)) => {
                // Read it alone first, so that a fault is told with this setting's place.
                let mut alone = defaults.clone();
                put(&mut alone, &setting.path, value.clone());
                match alone.try_into::<T>() {
                    Ok(_) => put(&mut merged, &setting.path, value),
                    Err(error) => faults.push(Fault {
                        at: setting.at,
                        text: first_line(&error.to_string()),
                    }),
                }
            }
            Err(text) => faults.push(Fault {
                at: setting.at,
                text,
            }),
        }
    }
    if faults.is_empty() {
        merged.try_into().map_err(|error| ConfigError {
            faults: vec![Fault {
                at: "configuration".into(),
                text: error.to_string(),
            }],
        })
    } else {
        Err(ConfigError { faults })
    }
}

/// The value to put at the setting's path; `None` when it belongs to another service.
fn place(defaults: &Table, setting: &Setting) -> Result<Option<Value>, String> {
    let (section, rest) = setting
        .path
        .split_first()
        .ok_or("no key after the prefix")?;
    if !SECTIONS.contains(&section.as_str()) {
        return Err(unknown("section", section, SECTIONS.iter().copied()));
    }
    let Some(mut at) = defaults.get(section) else {
        return Ok(None);
    };
    for key in rest {
        let Value::Table(table) = at else {
            return Err(format!("{section} has no level below this option"));
        };
        at = table
            .get(key)
            .ok_or_else(|| unknown("option", key, table.keys().map(String::as_str)))?;
    }
    if matches!(at, Value::Table(_)) {
        return Err("is a section, not an option".to_owned());
    }
    match &setting.value {
        Given::Typed(value) => Ok(Some(value.clone())),
        Given::Text(text) => read(text, at).map(Some),
    }
}

/// Reads text as the type that the default has.
fn read(text: &str, default: &Value) -> Result<Value, String> {
    match default {
        Value::Integer(_) => text
            .parse()
            .map(Value::Integer)
            .map_err(|_| format!("{text:?} is not a whole number")),
        Value::Float(_) => text
            .parse()
            .map(Value::Float)
            .map_err(|_| format!("{text:?} is not a number")),
        Value::Boolean(_) => text
            .parse()
            .map(Value::Boolean)
            .map_err(|_| format!("{text:?} is neither true nor false")),
        _ => Ok(Value::String(text.to_owned())),
    }
}

fn put(table: &mut Table, path: &[String], value: Value) {
    match path {
        [] => {}
        [key] => {
            let _replaced = table.insert(key.clone(), value);
        }
        [key, rest @ ..] => {
            if let Some(Value::Table(inner)) = table.get_mut(key) {
                put(inner, rest, value);
            }
        }
    }
}

fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let nearest = known
        .map(|known| (strsim::damerau_levenshtein(name, known), known))
        .min();
    match nearest {
        Some((distance, known)) if distance <= 1 + name.len() / 3 => {
            format!("unknown {what} {name:?}; did you mean {known:?}?")
        }
        _ => format!("unknown {what} {name:?}"),
    }
}

fn first_line(text: &str) -> String {
    text.lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("invalid")
        .to_owned()
}
