//! What this process itself costs.

use std::fs;
use std::time::Duration;

/// Clock ticks in a second, as /proc counts them on every Linux that Rust runs on
/// (`getconf CLK_TCK`).
const TICKS: u64 = 100;

/// CPU time that this process has used, user and system together; none without /proc.
pub fn cpu_time() -> Option<Duration> {
    ticks(&fs::read_to_string("/proc/self/stat").ok()?)
        .map(|ticks| Duration::from_millis(ticks * 1_000 / TICKS))
}

/// `utime` and `stime` of a line of /proc/PID/stat (proc_pid_stat(5)). The name may hold anything,
/// so fields are counted from its closing bracket.
fn ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_found_behind_any_name() {
        let line = "42 (a) b) S 1 42 42 0 -1 4194560 9 0 0 0 120 30 0 0 20 0 4 0 100 1 1";
        assert_eq!(ticks(line), Some(150));
        assert_eq!(ticks("nonsense"), None);
        assert!(cpu_time().is_some());
    }
}
