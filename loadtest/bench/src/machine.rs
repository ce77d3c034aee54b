//! What the numbers were measured on.

use std::fs;

use serde::Serialize;
use tokio_postgres::Client;

/// The machine and the versions.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Machine {
    pub(crate) cores: usize,
    pub(crate) cpu: String,
    pub(crate) memory_mib: u64,
    /// Processes that wanted to run in the minute before the start: others may be at work.
    pub(crate) load_before: String,
    pub(crate) postgres: String,
    pub(crate) shared_buffers: String,
    pub(crate) tideline: &'static str,
}

impl Machine {
    pub(crate) async fn look(sql: &Client) -> anyhow::Result<Self> {
        let show = async |name: &str| -> anyhow::Result<String> {
            let row = sql
                .query_one("select current_setting($1)", &[&name])
                .await?;
            Ok(row.try_get(0)?)
        };
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let cpu = read("/proc/cpuinfo");
        let cpu = cpu.lines().find(|line| line.starts_with("model name"));
        let cpu = cpu.and_then(|line| line.split_once(": "));
        let memory = read("/proc/meminfo");
        let kib = memory
            .split_whitespace()
            .nth(1)
            .and_then(|kib| kib.parse::<u64>().ok());
        let load = read("/proc/loadavg");
        Ok(Self {
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            cpu: cpu.map_or_else(String::new, |(_, model)| model.to_owned()),
            memory_mib: kib.unwrap_or(0) / 1024,
            load_before: load.split_whitespace().next().unwrap_or("?").to_owned(),
            postgres: show("server_version").await?,
            shared_buffers: show("shared_buffers").await?,
            tideline: env!("CARGO_PKG_VERSION"),
        })
    }
}
