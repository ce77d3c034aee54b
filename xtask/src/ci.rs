//! `ci`: every check, cheap ones first, the same here as on a build server.

use std::time::Instant;

use crate::cargo;
use crate::chaos;
use crate::demo;
use crate::failure::Failure;
use crate::screen;
use crate::test;
use crate::tidy;

type Step = (&'static str, fn() -> Result<(), Failure>);

const STEPS: [Step; 7] = [
    ("fmt", || cargo::run(&["fmt", "--all", "--check"], &[])),
    ("clippy", || {
        cargo::run(
            &[
                "clippy",
                "--workspace",
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ],
            &[],
        )
    }),
    ("tidy", tidy::tidy),
    ("doc", || {
        cargo::run(
            &["doc", "--workspace", "--no-deps"],
            &[("RUSTDOCFLAGS", "-D warnings")],
        )
    }),
    ("test", || test::test(&[])),
    ("chaos", || chaos::chaos(&["--quick".to_owned()])),
    // The demo replaces this process, so it has to come last.
    ("demo", || demo::demo_after_tests(&["--once".to_owned()])),
];

pub(crate) fn ci() -> Result<(), Failure> {
    for (name, step) in STEPS {
        screen::line(format!("── {name}"));
        let begun = Instant::now();
        step().map_err(|failure| Failure::new(format!("ci stopped at {name}: {failure}")))?;
        screen::line(format!(
            "── {name}: fine ({:.0} s)",
            begun.elapsed().as_secs_f64()
        ));
    }
    Ok(())
}
