//! Decoding never panics, and what was written is read back.

use events::{
    DecodeError, Event, FollowCreated, Micros, PostCreated, PostDeleted, PostId, UserId, envelope,
    registry,
};
use proptest::prelude::*;

fn any_event() -> impl Strategy<Value = Event> {
    let created = (any::<i64>(), any::<i64>(), any::<i64>()).prop_map(|(post, author, at)| {
        Event::PostCreated(PostCreated {
            post_id: PostId(post),
            author_id: UserId(author),
            post_us: Micros(at),
        })
    });
    let deleted = (any::<i64>(), any::<i64>(), any::<i64>(), any::<i64>()).prop_map(
        |(post, author, at, del)| {
            Event::PostDeleted(PostDeleted {
                post_id: PostId(post),
                author_id: UserId(author),
                post_us: Micros(at),
                del_us: Micros(del),
            })
        },
    );
    let followed =
        (any::<i64>(), any::<i64>(), any::<i64>()).prop_map(|(followee, follower, at)| {
            Event::FollowCreated(FollowCreated {
                followee_id: UserId(followee),
                follower_id: UserId(follower),
                edge_us: Micros(at),
            })
        });
    prop_oneof![created, deleted, followed]
}

proptest! {
    #[test]
    fn written_is_read_back(event in any_event()) {
        let read = Event::decode(event.event_type().as_str(), event.encode().as_bytes()).unwrap();
        prop_assert_eq!(read, event);
    }

    #[test]
    fn any_bytes_are_an_event_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for entry in registry::entries() {
            let _outcome = Event::decode(entry.name, &bytes);
        }
    }

    #[test]
    fn sequence_text_sorts_as_its_numbers(a in any::<(u64, u32)>(), b in any::<(u64, u32)>()) {
        let (left, right) = (envelope::sequence(a.0, a.1), envelope::sequence(b.0, b.1));
        prop_assert_eq!(left.cmp(&right), a.cmp(&b));
    }
}

#[test]
fn faults_name_the_type() {
    let unknown = Event::decode("tideline.post.edited.v1", b"{}").unwrap_err();
    assert!(
        matches!(&unknown, DecodeError::UnknownType { name } if name == "tideline.post.edited.v1")
    );
    for payload in [
        &b"{}"[..],
        b"",
        b"null",
        br#"{"post_id":5,"author_id":"1","post_us":1}"#,
    ] {
        let error = Event::decode("tideline.post.created.v1", payload).unwrap_err();
        assert_eq!(
            error.to_string(),
            "malformed payload of tideline.post.created.v1"
        );
    }
}
