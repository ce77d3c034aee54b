//! Streams of a real server, decoded, against their reviewed renderings.
//!
//! `*.bin` comes from `cargo run -p replication --example capture_goldens`;
//! `*.txt` is rewritten with `TIDELINE_UPDATE_GOLDENS=1`.

use std::fs;
use std::path::PathBuf;

use bytes::{Bytes, BytesMut};
use pgoutput::{Cell, CopyData, Message, RelationChange, Relations};

use crate::render;

/// Every captured stream: its name and the payloads of its CopyData frames.
pub(crate) fn streams() -> Vec<(String, Vec<Bytes>)> {
    let mut streams: Vec<_> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "bin"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, payloads(fs::read(&path).unwrap().into()))
        })
        .collect();
    streams.sort();
    assert!(streams.len() >= 15, "captured streams are missing");
    streams
}

/// The messages of one stream.
fn messages(name: &str) -> Vec<Message> {
    let (_, payloads) = streams()
        .into_iter()
        .find(|(each, _)| each == name)
        .unwrap();
    let data =
        payloads
            .into_iter()
            .filter_map(|payload| match CopyData::decode(payload).unwrap() {
                CopyData::XLog(data) => Some(data.data),
                _ => None,
            });
    data.map(|data| Message::decode(data).unwrap()).collect()
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/pg15")
}

fn payloads(mut file: Bytes) -> Vec<Bytes> {
    let mut payloads = Vec::new();
    while let Some(length) = file.first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize;
        let _ = file.split_to(4);
        payloads.push(file.split_to(length));
    }
    assert!(file.is_empty());
    payloads
}

#[test]
fn renderings_match() {
    let update = std::env::var_os("TIDELINE_UPDATE_GOLDENS").is_some();
    let mut wrong = Vec::new();
    for (name, payloads) in streams() {
        let rendered = render::stream(&payloads);
        let path = folder().join(&name).with_extension("txt");
        if update {
            fs::write(&path, &rendered).unwrap();
        } else if fs::read_to_string(&path).unwrap_or_default() != rendered {
            eprintln!("{name} is now:\n{rendered}");
            wrong.push(name);
        }
    }
    assert!(
        wrong.is_empty(),
        "changed: {wrong:?}; TIDELINE_UPDATE_GOLDENS=1 rewrites them"
    );
}

#[test]
fn encoding_gives_the_bytes_of_the_server() {
    for (name, payloads) in streams() {
        for payload in payloads {
            let decoded = CopyData::decode(payload.clone()).unwrap();
            let mut encoded = BytesMut::new();
            decoded.encode(&mut encoded);
            assert_eq!(encoded, payload, "{name}");
            if let CopyData::XLog(data) = decoded {
                let mut encoded = BytesMut::new();
                Message::decode(data.data.clone())
                    .unwrap()
                    .encode(&mut encoded)
                    .unwrap();
                assert_eq!(encoded, data.data, "{name}");
            }
        }
    }
}

#[test]
fn cells_share_the_memory_of_the_payload() {
    let (_, payloads) = streams()
        .into_iter()
        .find(|(name, _)| name == "plain_insert")
        .unwrap();
    let mut seen = 0;
    for payload in payloads {
        let range = payload.as_ptr_range();
        let CopyData::XLog(data) = CopyData::decode(payload).unwrap() else {
            continue;
        };
        let Message::Insert(insert) = Message::decode(data.data).unwrap() else {
            continue;
        };
        for cell in &insert.new.cells {
            assert!(range.contains(&cell.bytes().unwrap().as_ptr()));
            seen += 1;
        }
    }
    assert_eq!(seen, 2);
}

#[test]
fn a_vacuum_repeats_the_relation_and_an_alter_changes_it() {
    let mut relations = Relations::new();
    let mut changes = Vec::new();
    for message in messages("relation_again") {
        if let Message::Relation(relation) = message {
            changes.push(relations.insert(relation));
        }
    }
    let [first, vacuum, added, dropped] = changes.as_slice() else {
        panic!("{changes:?}")
    };
    assert_eq!(*first, RelationChange::New);
    assert_eq!(*vacuum, RelationChange::Same);
    assert!(matches!(added, RelationChange::Changed { before } if before.columns.len() == 2));
    assert!(matches!(dropped, RelationChange::Changed { before } if before.columns.len() == 3));
}

#[test]
fn rows_of_a_partition_are_read_by_their_own_relation() {
    for name in ["partition_root", "partition_leaf"] {
        let mut relations = Relations::new();
        let mut ids = Vec::new();
        for message in messages(name) {
            match message {
                Message::Relation(relation) => drop(relations.insert(relation)),
                Message::Insert(insert) => {
                    let position = relations
                        .get(insert.relation)
                        .unwrap()
                        .position("id")
                        .unwrap();
                    ids.push(insert.new.get(position).unwrap().as_i64().unwrap());
                }
                _ => {}
            }
        }
        assert_eq!(ids, [1, 2, 3, 4], "{name}");
    }
}

#[test]
fn values_are_read_as_the_server_writes_them() {
    let messages = messages("many_types");
    let relation = messages.iter().find_map(|message| match message {
        Message::Relation(relation) => Some(relation),
        _ => None,
    });
    let insert = messages.iter().find_map(|message| match message {
        Message::Insert(insert) => Some(insert),
        _ => None,
    });
    let (relation, insert) = (relation.unwrap(), insert.unwrap());
    let cell = |name: &str| insert.new.get(relation.position(name).unwrap()).unwrap();

    assert_eq!(cell("id").as_i64(), Ok(i64::MIN));
    assert_eq!(cell("small").as_i64(), Ok(-1));
    assert_eq!(cell("flag").as_bool(), Ok(true));
    assert_eq!(
        cell("doc").as_str(),
        Ok("{\"text\": \"wave \u{1F30A} 日本\"}")
    );
    assert_eq!(cell("note"), &Cell::Text(Bytes::new()));
    assert_eq!(
        cell("raw").as_bytea(),
        Ok(Bytes::from_static(&[0x00, 0xFF, 0x10]))
    );
    assert_eq!(
        cell("key").as_uuid().unwrap()[..4],
        [0x01, 0x23, 0x45, 0x67]
    );
    assert_eq!(cell("at").as_unix_micros(), Ok(1_795_975_135_123_456));
}

#[test]
fn an_unchanged_large_value_is_no_null() {
    let update = messages("unchanged_toast")
        .into_iter()
        .find_map(|message| match message {
            Message::Update(update) => Some(update),
            _ => None,
        });
    assert_eq!(update.unwrap().new.cells.last(), Some(&Cell::Unchanged));
}
