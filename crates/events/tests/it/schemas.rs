//! Every published example of every version is read for ever, and what is written fits the schema.

use std::{
    fs,
    path::{Path, PathBuf},
};

use events::{Event, EventType, registry};
use serde_json::Value;

fn folder(event_type: EventType) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../schemas/events")
        .join(event_type.as_str())
}

fn json(path: &Path) -> Value {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn examples(event_type: EventType) -> Vec<(PathBuf, Value)> {
    let folder = folder(event_type).join("examples");
    let paths =
        fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    paths
        .map(|entry| entry.expect("a readable entry of the folder").path())
        .map(|path| (path.clone(), json(&path)))
        .collect()
}

#[test]
fn every_type_has_a_schema_and_examples_that_fit_it_and_can_be_read() {
    for entry in registry::entries() {
        let validator =
            jsonschema::validator_for(&json(&folder(entry.event_type).join("schema.json")))
                .unwrap();
        let examples = examples(entry.event_type);
        assert!(!examples.is_empty(), "{} has no example", entry.name);
        for (path, example) in examples {
            assert!(
                validator.is_valid(&example),
                "{} does not fit its schema",
                path.display()
            );
            let event = Event::decode(entry.name, example.to_string().as_bytes())
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let written: Value = serde_json::from_str(&event.encode()).unwrap();
            assert!(
                validator.is_valid(&written),
                "what is written for {} does not fit",
                path.display()
            );
            for (field, value) in written.as_object().unwrap() {
                assert_eq!(
                    Some(value),
                    example.get(field),
                    "{field} of {}",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn every_schema_belongs_to_a_registered_type() {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/events");
    for entry in fs::read_dir(all).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            EventType::from_name(&name).is_some(),
            "schemas/events/{name} is not in the registry"
        );
    }
}
