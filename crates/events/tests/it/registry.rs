//! The registry agrees with the types and with itself.

use std::collections::HashSet;

use events::{
    Event, EventType, FollowDeleted, Group, Hop, Micros, Namespace, PostCreated, PostId, Stage,
    UserId, registry, topic::TopicKind,
};

#[test]
fn names_are_unique_and_lead_back_to_their_type() {
    let names: HashSet<_> = registry::entries().iter().map(|entry| entry.name).collect();
    assert_eq!(names.len(), registry::entries().len());
    for entry in registry::entries() {
        assert_eq!(EventType::from_name(entry.name), Some(entry.event_type));
        assert_eq!(entry.event_type.entry(), entry);
        assert!(
            entry
                .name
                .starts_with(&format!("tideline.{}.", entry.aggregate)),
            "{}",
            entry.name
        );
    }
}

#[test]
fn the_key_is_the_field_that_the_registry_names() {
    let post = Event::PostCreated(PostCreated {
        post_id: PostId(1),
        author_id: UserId(7),
        post_us: Micros(3),
    });
    let follow = Event::FollowDeleted(FollowDeleted {
        followee_id: UserId(1),
        follower_id: UserId(8),
        edge_us: Micros(2),
        unfollow_us: Micros(3),
    });
    for event in [post, follow] {
        let payload: serde_json::Value = serde_json::from_str(&event.encode()).unwrap();
        let key = event.event_type().entry().key;
        assert_eq!(payload[key], event.partition_key().to_string());
    }
}

#[test]
fn topic_names_stay_apart_and_within_kafkas_limit() {
    let namespace = Namespace::new(&"n".repeat(100)).unwrap();
    let mut names: Vec<String> = TopicKind::ALL
        .iter()
        .map(|kind| namespace.topic(*kind))
        .collect();
    names.extend(
        TopicKind::ALL
            .iter()
            .map(|kind| namespace.relay_dead_letters(*kind)),
    );
    names.push(namespace.fanout_posts_dead_letters());
    assert!(names.iter().all(|name| name.len() <= 249), "{names:?}");
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
    for bad in ["", "Tideline", "a b", "ä"] {
        assert!(Namespace::new(bad).is_err(), "{bad}");
    }
}

#[test]
fn stages_lead_back_to_their_name_and_account_for_what_the_entries_say() {
    for stage in Stage::ALL {
        assert_eq!(Stage::from_name(stage.as_str()), Some(stage));
        assert!(stage.critical());
        for entry in registry::entries() {
            assert_eq!(
                stage.accounts_for(entry.event_type),
                entry.stages.contains(&stage)
            );
        }
    }
    assert_eq!(Stage::from_name("Published"), None);
    assert!(!Stage::Delivered.accounts_for(EventType::FollowCreatedV1));
}

/// What is accounted for as delivered travels over hops, the first of which reads its own topic;
/// what nothing consumes has none.
#[test]
fn hops_lead_from_the_topic_to_delivered() {
    for entry in registry::entries() {
        let first = entry.hops.first().map(|hop| hop.topic);
        if Stage::Delivered.accounts_for(entry.event_type) {
            assert_eq!(first, Some(entry.topic));
            assert!(
                entry
                    .hops
                    .iter()
                    .all(|hop| Stage::Delivered.hops().contains(hop))
            );
        } else {
            assert_eq!(first, None);
        }
    }
    let posts = Hop {
        topic: TopicKind::Posts,
        group: Group::FanoutPosts,
    };
    assert_eq!(Stage::Delivered.hops(), [posts]);
    assert!(Stage::Published.hops().is_empty());
    let namespace = Namespace::new("tideline").unwrap();
    assert_eq!(namespace.group(posts.group), "tideline-fanout-posts");
    assert_eq!(namespace.fanout_posts_group(), "tideline-fanout-posts");
}
