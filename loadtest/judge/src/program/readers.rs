//! Readers who are followed through the API: who, and with which tokens.

use std::{
    collections::BTreeSet,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, bail};
use events::UserId;
use fastrand::Rng;
use futures::{StreamExt, TryStreamExt, stream};
use http_api::token::{Claims, Key, mint};
use judge::{Journal, Verdict, Walker, compare_walk};

use super::Arguments;

/// Posts a page: the most that read-api gives.
const PAGE: usize = 100;

/// Walks at once.
const CONCURRENT: usize = 4;

/// How long tokens are good for, in seconds.
const TOKEN_SECONDS: u64 = 60 * 60;

/// Walks through timelines with tokens of its own making.
pub(super) struct Walkers {
    walker: Walker,
    key: Key,
}

impl Walkers {
    /// `None`: nobody is to be walked through.
    pub(super) fn new(arguments: &Arguments) -> anyhow::Result<Option<Self>> {
        if arguments.walks() == 0 {
            return Ok(None);
        }
        let Some(address) = &arguments.read_api else {
            bail!("--walks needs --read-api");
        };
        let Some(path) = &arguments.token_key else {
            bail!(
                "walks need --token-key, the file with the secret that signs tokens; --walks 0 does without"
            );
        };
        let secret = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the token secret {}", path.display()))?;
        let base = if address.contains("://") {
            address.trim_end_matches('/').to_owned()
        } else {
            format!("http://{address}")
        };
        Ok(Some(Self {
            walker: Walker::new(base, PAGE)?,
            key: Key::new(secret.trim_end().as_bytes()).context("cannot use the token secret")?,
        }))
    }

    /// Adds to the verdict what a sample of readers sees.
    pub(super) async fn walk(
        &self,
        journal: &Journal,
        arguments: &Arguments,
        verdict: &mut Verdict,
    ) -> anyhow::Result<()> {
        let readers = choose(journal, arguments.walks(), arguments.seed);
        let walks = stream::iter(readers)
            .map(async |reader| self.walker.walk(reader, &self.token(reader)?).await);
        let mut walks = walks.buffer_unordered(CONCURRENT);
        while let Some(walk) = walks.try_next().await? {
            compare_walk(journal, &walk, verdict);
        }
        Ok(())
    }

    fn token(&self, reader: UserId) -> anyhow::Result<String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let claims = Claims {
            sub: reader.to_string(),
            exp: now.context("the clock is before 1970")?.as_secs() + TOKEN_SECONDS,
            scope: None,
        };
        mint(&self.key, &claims).context("signing a token")
    }
}

/// A third each of those whose follows changed, those who posted, and followers of some post.
fn choose(journal: &Journal, count: usize, seed: u64) -> BTreeSet<UserId> {
    let mut rng = Rng::with_seed(seed);
    let third = count.div_ceil(3);
    let changed = rng.choose_multiple(journal.changed_readers(), third);
    let authors = rng.choose_multiple(journal.authors(), third);
    let mut chosen: BTreeSet<UserId> = changed.into_iter().chain(authors).collect();
    // Some posts may have no followers, or those that are chosen already.
    for _ in 0..count * 4 {
        if chosen.len() >= count {
            break;
        }
        if let Some(post) = rng.choice(journal.posts()) {
            chosen.extend(rng.choose_multiple(journal.must_have(post), 1));
        }
    }
    chosen.into_iter().take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use judge::Change;

    #[test]
    fn readers_are_of_all_kinds_and_no_more_than_asked_for() {
        let mut journal = Journal::new();
        for author in 1..=50 {
            let followers = (1_000 + author * 10)..(1_000 + author * 10 + 10);
            journal.bulk_follows(UserId(author), followers.map(UserId));
            let _post = journal.post_sent(UserId(author), author.to_string());
            let _edge = journal.edge_sent(Change::Follow, UserId(9_000 + author), UserId(author));
        }
        let chosen = choose(&journal, 30, 1);
        assert_eq!(chosen.len(), 30);
        assert_eq!(chosen, choose(&journal, 30, 1));
        for (first, last) in [(1, 50), (1_000, 2_000), (9_000, 9_050)] {
            assert_eq!(chosen.range(UserId(first)..=UserId(last)).count(), 10);
        }
        assert_eq!(choose(&Journal::new(), 5, 1), BTreeSet::new());
    }
}
