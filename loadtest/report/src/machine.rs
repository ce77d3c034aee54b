//! What the numbers were measured on.

use std::fs;

use serde::{Deserialize, Serialize};

/// The machine, as far as it tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Cores that this process may use.
    pub cores: usize,
    /// The processor's own name.
    pub cpu: String,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// The kernel's name and release.
    pub kernel: String,
    /// Processes that wanted to run in the minute before the start: others may be at work.
    pub load_before: String,
}

impl Machine {
    /// Looks at this machine. What it does not tell stays empty.
    pub fn look() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let kernel = format!(
            "{} {}",
            read("/proc/sys/kernel/ostype").trim(),
            read("/proc/sys/kernel/osrelease").trim()
        );
        Self {
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            cpu: cpu(&read("/proc/cpuinfo")),
            memory_mib: memory_mib(&read("/proc/meminfo")),
            kernel: kernel.trim().to_owned(),
            load_before: first_word(&read("/proc/loadavg")),
        }
    }
}

fn cpu(cpuinfo: &str) -> String {
    cpuinfo
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == "model name")
        .map(|(_, model)| model.trim().to_owned())
        .unwrap_or_default()
}

fn memory_mib(meminfo: &str) -> u64 {
    let kib = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .map(first_word)
        .and_then(|kib| kib.parse::<u64>().ok());
    kib.unwrap_or(0) / 1_024
}

fn first_word(text: &str) -> String {
    text.split_whitespace()
        .next()
        .unwrap_or_default()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_kernel_are_understood() {
        let cpuinfo = "processor\t: 0\nvendor_id\t: X\nmodel name\t: Fast CPU @ 3.00GHz: rev 2\n";
        assert_eq!(cpu(cpuinfo), "Fast CPU @ 3.00GHz: rev 2");
        assert_eq!(
            memory_mib("MemTotal:       24576000 kB\nMemFree: 1 kB\n"),
            24_000
        );
        assert_eq!(first_word("0.52 0.58 0.59 1/467 12345\n"), "0.52");
        assert_eq!((cpu(""), memory_mib("")), (String::new(), 0));
    }

    #[test]
    fn this_machine_has_cores() {
        assert!(Machine::look().cores > 0);
    }
}
