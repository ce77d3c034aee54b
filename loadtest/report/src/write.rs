//! A run on disk: the page, the data and the logs in one folder.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufWriter, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;

use crate::{FORMAT, Run, log, page};

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The page for people.
    pub page: PathBuf,
    /// The data for programs.
    pub json: PathBuf,
    /// The logs, one for each metric.
    pub logs: Vec<PathBuf>,
}

/// Writes everything about a run into a folder, which is made when it is not there.
///
/// Logs of an earlier run in the same folder stay where no metric of this run has their name.
///
/// # Errors
/// When the folder or a file cannot be written.
pub fn write(run: &Run, folder: &Path) -> anyhow::Result<Written> {
    fs::create_dir_all(folder)
        .with_context(|| format!("make the folder {} of the report", folder.display()))?;
    let (logs, names) = write_logs(run, folder)?;
    let json = folder.join("run.json");
    let text = serde_json::to_vec_pretty(run).context("run as JSON")?;
    put(&json, &text)?;
    let page = folder.join("index.html");
    put(&page, page::html(run, &names).as_bytes())?;
    Ok(Written { page, json, logs })
}

/// Reads a run from its `run.json`.
///
/// # Errors
/// When there is no such file, when it is no run, or when it is of a newer format.
pub fn read(path: &Path) -> anyhow::Result<Run> {
    let text = fs::read(path).with_context(|| format!("read the run {}", path.display()))?;
    let value: serde_json::Value =
        serde_json::from_slice(&text).with_context(|| format!("JSON of {}", path.display()))?;
    let format = value.get("format").and_then(serde_json::Value::as_u64);
    anyhow::ensure!(
        format.is_some_and(|format| format <= FORMAT.into()),
        "{} has the format {}, this program reads up to {FORMAT}: use the version that wrote it",
        path.display(),
        format.map_or_else(|| "of no run".to_owned(), |format| format.to_string()),
    );
    serde_json::from_value(value).with_context(|| format!("run in {}", path.display()))
}

fn write_logs(run: &Run, folder: &Path) -> anyhow::Result<(Vec<PathBuf>, Vec<String>)> {
    let (mut paths, mut names) = (Vec::new(), Vec::new());
    let mut taken = BTreeSet::new();
    let length = Duration::try_from_secs_f64(run.duration_s).unwrap_or_default();
    for (metric, recorder) in run.recorders() {
        if recorder.intervals().next().is_none() {
            continue;
        }
        let name = free(&file_name(&metric), &mut taken);
        let path = folder.join(&name);
        let context = || format!("write the log {}", path.display());
        let mut out = BufWriter::new(fs::File::create(&path).with_context(context)?);
        log::write(&mut out, &metric, recorder, run.started_unix_ms, length)
            .with_context(context)?;
        out.flush().with_context(context)?;
        paths.push(path);
        names.push(name);
    }
    Ok((paths, names))
}

fn put(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    fs::write(path, bytes).with_context(|| format!("write {}", path.display()))
}

/// Letters and digits of a metric, everything else a hyphen.
fn file_name(metric: &str) -> String {
    let plain: String = metric
        .to_lowercase()
        .chars()
        .map(|letter| match letter {
            'a'..='z' | '0'..='9' => letter,
            _ => ' ',
        })
        .take(80)
        .collect();
    plain.split_whitespace().collect::<Vec<_>>().join("-")
}

/// A file name that no other metric has.
fn free(name: &str, taken: &mut BTreeSet<String>) -> String {
    let mut file = format!("{name}.hdr");
    let mut copy = 2;
    while !taken.insert(file.clone()) {
        file = format!("{name}-{copy}.hdr");
        copy += 1;
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_plain_file_names_of_their_own() {
        assert_eq!(
            file_name("last follower 10 to 99 / ../etc"),
            "last-follower-10-to-99-etc"
        );
        let mut taken = BTreeSet::new();
        assert_eq!(free("page", &mut taken), "page.hdr");
        assert_eq!(free("page", &mut taken), "page-2.hdr");
    }
}
