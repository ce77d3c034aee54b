//! `tideline explain`: the whole story of one post.
//!
//! Owns the order in which it is told: the post, its events with their copies in Kafka and their
//! account, its timelines, and what the sweep would do now. Does not own the account, nor the
//! sweep's rules, which are the sweep's.
//!
//! Promise: reads only; bounded in time and memory. Postgres has to answer; where Kafka or the
//! timeline store does not, the rest is told, and that too.

mod copies;
mod outlook;
mod postgres;
mod story;
mod text;
mod timelines;

use database::{Client, clock};
use events::{EventId, PostId, Stage};
use kafka::KafkaConfig;
use runtime::{exit::Exit, report::chain};

use crate::{Answer, config::Config, error::Error, servers};

use story::{Account, EventStory, StageStory, Story};

/// The arguments.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Arguments {
    /// Id of the post.
    #[arg(value_name = "POST")]
    post: PostId,
    /// Look at every follower, and search Kafka from the first record that it keeps. Without it:
    /// the first thousand followers, and records from a minute before the event on.
    #[arg(long)]
    full: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Tells the story. [`Answer::Differs`] when no server knows the post.
///
/// # Errors
/// [`Exit`] when Postgres does not answer.
pub async fn run(config: &Config, arguments: &Arguments) -> Result<Answer, Exit> {
    let kafka = servers::kafka(config)?;
    let pool = servers::pool(config)?;
    let client = servers::client(&pool).await?;
    let story = tell(config, &kafka, &client, arguments)
        .await
        .map_err(Error::into_exit)?;
    if arguments.json {
        println!(
            "{}",
            serde_json::to_string_pretty(&story).map_err(Exit::bug)?
        );
    } else {
        print!("{story}");
    }
    Ok(if story.is_known() {
        Answer::Yes
    } else {
        Answer::Differs
    })
}

async fn tell(
    config: &Config,
    kafka: &KafkaConfig,
    client: &Client,
    arguments: &Arguments,
) -> Result<Story, Error> {
    let post = database::posts::get(client, arguments.post).await?;
    let mut events = Vec::new();
    for found in postgres::events(client, arguments.post, post.as_ref()).await? {
        let account = account(config, kafka, client, &found).await?;
        let copies = copies::search(kafka, &found, arguments.full).await;
        events.push(EventStory {
            copies: copies.map_err(|error| chain(&error).to_string()),
            found,
            account,
        });
    }
    let timelines = match &post {
        None => None,
        Some(post) => Some(
            match servers::store(config).await {
                Ok(store) => timelines::look(client, &store, post, config, arguments.full).await,
                Err(error) => Err(error.into()),
            }
            .map_err(|error| chain(&error).to_string()),
        ),
    };
    Ok(Story {
        id: arguments.post,
        post: post.map(Into::into),
        events,
        timelines,
    })
}

/// What every stage says about an event.
async fn account(
    config: &Config,
    kafka: &KafkaConfig,
    client: &Client,
    found: &postgres::Found,
) -> Result<Account, Error> {
    let mut stages: Vec<StageStory> = Vec::new();
    for stage in Stage::ALL {
        if !found.is_accounted_by(stage) {
            continue;
        }
        let in_ledger = in_ledger(client, stage, found.event).await?;
        let notes = postgres::notes(client, stage, found.event).await?;
        let outlook = if in_ledger || found.created_us.is_none() {
            None
        } else {
            let earlier = stages.iter().find(|earlier| earlier.outlook.is_some());
            Some(match earlier {
                Some(earlier) => format!("it has to be {} first", earlier.stage),
                None => outlook::of(config, kafka, client, stage, found, &notes).await?,
            })
        };
        stages.push(StageStory {
            stage: stage.as_str(),
            in_ledger,
            notes,
            outlook,
        });
    }
    Ok(Account {
        stages,
        delivery: postgres::delivery(client, found.event).await?,
        told_us: clock::now(client).await?,
    })
}

/// Whether a stage, or a later one that implies it, has the event.
async fn in_ledger(client: &Client, stage: Stage, event: EventId) -> Result<bool, Error> {
    let later = Stage::ALL.into_iter().skip_while(|other| *other != stage);
    for stage in later {
        if database::delivery_ledger::contains(client, stage, event).await? {
            return Ok(true);
        }
    }
    Ok(false)
}
