//! What can be said about an instance without starting servers.

use super::*;

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("tideline-instance-{name}-{}", std::process::id()))
}

#[test]
fn opening_touches_nothing_and_remembers_the_block() {
    let root = scratch("open");
    let fresh = Instance::open(&root, "sandbox");
    assert!(!root.exists());
    assert_eq!(fresh.home.ports.base(), 17400);
    fs::create_dir_all(fresh.dir()).expect("made");
    fs::write(fresh.dir().join("ports"), "17460\n").expect("written");
    assert_eq!(Instance::open(&root, "sandbox").home.ports.base(), 17460);
    fs::remove_dir_all(root).expect("removed");
}

#[test]
fn a_stale_pid_file_is_reported_as_a_death() {
    let root = scratch("stale");
    let instance = Instance::open(&root, "sandbox");
    fs::create_dir_all(instance.dir().join("pid")).expect("made");
    let mut child = std::process::Command::new("true")
        .spawn()
        .expect("true runs");
    let pid = child.id();
    child.wait().expect("it ends");
    fs::write(instance.home.pid_path("kafka"), format!("{pid} 1\n")).expect("written");
    fs::write(
        instance.home.pid_path("cassandra"),
        format!("{} 1\n", std::process::id()),
    )
    .expect("written");
    let states: Vec<State> = instance.status().into_iter().map(|s| s.state).collect();
    assert_eq!(states[0], State::Stopped);
    assert_eq!(states[1], State::Died { pid });
    assert_eq!(
        states[2],
        State::PidReused {
            pid: std::process::id()
        }
    );
    fs::remove_dir_all(root).expect("removed");
}
