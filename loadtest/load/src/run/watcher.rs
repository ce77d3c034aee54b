//! A follower who polls their timeline until they see a post: what delivery is for.

use std::sync::Arc;
use std::time::Duration;

use events::PostId;

use super::Shared;
use crate::plan::{Account, PlannedPost};

/// Between two looks: the resolution of what is measured.
const EVERY: Duration = Duration::from_millis(50);

/// Posts on the page that is looked at.
const PAGE: u32 = 50;

/// Starts polling, unless too many poll already.
pub(super) fn start(
    due: Duration,
    id: PostId,
    post: &PlannedPost,
    follower: Account,
    shared: &Arc<Shared>,
) {
    let Ok(permit) = Arc::clone(&shared.watchers).try_acquire_owned() else {
        shared.tally().counts.unwatched += 1;
        return;
    };
    let (shared, class) = (Arc::clone(shared), post.audience);
    // Ends by itself within the run's time to settle; the run does not wait for it.
    let _task = tokio::spawn(async move {
        let _permit = permit;
        let reader = shared.accounts.id(follower);
        let deadline = shared.clock.now() + shared.limits.settle;
        while shared.clock.now() < deadline {
            let asked = shared.clock.now();
            if let Ok(page) = shared.client.page(reader, None, PAGE).await
                && page.posts.iter().any(|item| item.id == id)
            {
                let now = shared.clock.now();
                if let Some(times) = shared.tally().class(class) {
                    times.seen.record(due, now.saturating_sub(due));
                }
                return;
            }
            tokio::time::sleep_until(shared.clock.moment(asked + EVERY)).await;
        }
        shared.tally().counts.unseen += 1;
    });
}
