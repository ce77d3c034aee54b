//! `tideline reconcile`: posts, outbox, ledger and timelines against each other.
//!
//! Owns the walks and the order in which they look: what may have moved on meanwhile is looked at
//! again before it is called a difference, so that a system at work has none. Does not own the
//! repair of what the account can see, which is the sweep's.
//!
//! ```text
//!   posts ──▶ outbox ──▶ ledger ──▶ timelines
//!     ▲         │  ▲       │           │
//!     └─ ghosts ┘  └ no row┘           └── rows that nothing explains
//! ```
//!
//! Promise: reads only, but for `--repair`, which takes ids out of the ledger and rows out of the
//! timelines, never the other way round. Memory is bounded by pages and by the sample (D-13).

mod difference;
mod ledger;
mod letters;
mod outbox;
mod posts;
mod range;
mod repair;
mod report;
mod strangers;
mod timelines;
mod walk;

use runtime::exit::Exit;
use sweep::when::When;

use crate::{Answer, config::Config, error::Error, servers};

use walk::Walk;

/// The arguments.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Arguments {
    /// Posts and events from this moment on: RFC 3339, or a span before now such as 2h.
    #[arg(long, value_name = "MOMENT")]
    since: When,
    /// Up to this moment. What is younger than a minute may still be on its way.
    #[arg(long, value_name = "MOMENT", default_value = "1m")]
    until: When,
    /// Look at the timelines of so many delivered posts and at so many accounts, drawn at random.
    /// Posts, outbox and ledger are always compared completely.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000), conflicts_with = "full")]
    sample: u32,
    /// Look at the timelines of all followers of all posts, and at every row of the store.
    #[arg(long)]
    full: bool,
    /// Take out of the ledger what it claims wrongly, so that the sweep delivers it again, and out
    /// of the timelines the rows that nothing explains.
    #[arg(long)]
    repair: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Compares and reports. [`Answer::Differs`] when something differs, repaired or not.
///
/// # Errors
/// [`Exit`] when a server does not answer.
pub async fn run(config: &Config, arguments: &Arguments) -> Result<Answer, Exit> {
    let pool = servers::pool(config)?;
    let client = servers::client(&pool).await?;
    let report = match Walk::begin(config, arguments, client).await {
        Ok(walk) => walk.compare().await,
        Err(error) => Err(error),
    };
    let report = report.map_err(Error::into_exit)?;
    if arguments.json {
        println!(
            "{}",
            serde_json::to_string_pretty(&report).map_err(Exit::bug)?
        );
    } else {
        print!("{report}");
    }
    Ok(if report.differences.is_empty() {
        Answer::Yes
    } else {
        Answer::Differs
    })
}
