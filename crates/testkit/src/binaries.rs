//! The services' binaries, built with crash points.

use std::{path::PathBuf, process::Command, sync::OnceLock};

use sandbox::Service;

use crate::servers::root;

/// Packages and features of a test build; `./x test` builds the same before it starts.
const BUILD: &[&str] = &[
    "build",
    "--quiet",
    "-p",
    "write-api",
    "-p",
    "relay",
    "-p",
    "fanout",
    "-p",
    "sweep",
    "-p",
    "read-api",
    "--features",
    "write-api/crash-points,relay/crash-points,sweep/crash-points,fanout/crash-points",
];

/// A folder with programs that were built like this already; whoever sets it has built them.
const BUILT: &str = "TESTKIT_BINARIES";

/// The path of a service's binary; built by the first caller of the process.
///
/// # Panics
/// When it does not compile.
pub fn binary(service: Service) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        if let Some(built) = std::env::var_os(BUILT) {
            return PathBuf::from(built);
        }
        let cargo = option_env!("CARGO").unwrap_or("cargo");
        let status = Command::new(cargo)
            .args(BUILD)
            .current_dir(root())
            .status()
            .expect("run cargo");
        assert!(status.success(), "the services do not compile");
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| root().join("target"), PathBuf::from);
        target.join("debug")
    });
    folder.join(service.binary())
}
