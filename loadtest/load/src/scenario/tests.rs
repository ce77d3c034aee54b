//! Scenario files: those that come along, and what a faulty one is told.

use super::*;

fn parse(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::parse("test", text, &Overrides::default())
}

fn places(error: &ScenarioError) -> Vec<&str> {
    error.faults.iter().map(|fault| fault.at.as_str()).collect()
}

#[test]
fn every_scenario_that_comes_along_is_good() {
    for (name, _) in BUILT_IN {
        let scenario = Scenario::read(name, &Overrides::default());
        let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(scenario.name, name);
        assert!(!scenario.about.is_empty(), "{name}");
        assert!(!scenario.thresholds.last_follower_p99.is_empty(), "{name}");
    }
}

#[test]
fn all_faults_are_told_together_with_their_key_path() {
    let error = parse(
        r#"
        duration = "soon"
        speed = 3
        [graph]
        users = 100
        celebrities = [50, 500]
        [posts]
        delete_share = 2.0
        [posts.arrivals]
        process = "poisson"
        rate = -1.0
        [posts.mix]
        under_100 = 0.5
        tiny = 0.5
        [[celebrities]]
        first = 1
        [[celebrities]]
        authors = 3
        when = "2s"
        [readers]
        arrivals = { process = "sometimes" }
        [thresholds.last_follower_p99]
        small = "1s"
        "#,
    )
    .unwrap_err();
    let told = error.to_string();
    for place in [
        "duration",
        "speed",
        "graph.celebrities[1]",
        "posts.delete_share",
        "posts.arrivals.rate",
        "posts.mix.tiny",
        "posts.mix",
        "celebrities[1].when",
        "celebrities[1].authors",
        "readers.arrivals.process",
        "thresholds.last_follower_p99.small",
    ] {
        assert!(places(&error).contains(&place), "{place} in\n{told}");
    }
    assert!(told.contains("unknown field `speed`"), "{told}");
    assert!(!told.contains("celebrities[0]"), "{told}");
}

#[test]
fn the_command_line_stands_above_the_file() {
    let overrides = Overrides {
        seed: Some(77),
        duration: Some(Duration::from_secs(8)),
        set: vec![
            "posts.arrivals.rate=250".to_owned(),
            "limits.settle=9s".to_owned(),
        ],
    };
    let scenario = Scenario::read("steady", &overrides).unwrap();
    assert_eq!(scenario.seed, 77);
    assert_eq!(scenario.duration, Duration::from_secs(8));
    assert!(scenario.warm_up <= Duration::from_secs(2));
    assert_eq!(scenario.posts.unwrap().arrivals.peak(), Some(250.0));
    assert_eq!(scenario.limits.settle, Duration::from_secs(9));
    let overrides = Overrides {
        set: vec!["posts.arrivals.rat=1".to_owned(), "nonsense".to_owned()],
        ..Overrides::default()
    };
    let error = Scenario::read("steady", &overrides).unwrap_err();
    assert!(places(&error).contains(&"posts.arrivals.rat"), "{error}");
    assert!(places(&error).contains(&"--set nonsense"), "{error}");
}

#[test]
fn an_unknown_name_lists_the_known_ones() {
    let error = Scenario::read("stedy", &Overrides::default()).unwrap_err();
    assert!(error.to_string().contains("steady, ramp"), "{error}");
}

#[test]
fn a_file_that_is_no_toml_is_told_with_its_line() {
    let error = parse("duration = \"1s\"\nposts = [").unwrap_err();
    assert!(error.to_string().contains("line 2"), "{error}");
}
