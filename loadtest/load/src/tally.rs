//! Everything that is counted and timed in a run.

use std::time::Duration;

use report::{Counter, Recorder};

use crate::audience::Audience;

/// Kinds of failures that are kept by their words.
const TOLD: usize = 10;

/// Kinds of requests that are timed apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// `POST /v1/posts`
    Post,
    /// `DELETE /v1/posts/{id}`
    Delete,
    /// `PUT` and `DELETE /v1/users/{id}/follow`
    Follow,
    /// The first page of an ordinary reader.
    FirstPage,
    /// A later page of any reader: timed from the answer to the page before.
    NextPage,
    /// The first page of a reader who thunders.
    ThunderingPage,
    /// The first page of the hot reader.
    HotPage,
}

impl Request {
    /// All of them, writes before reads.
    pub const ALL: [Self; 7] = [
        Self::Post,
        Self::Delete,
        Self::Follow,
        Self::FirstPage,
        Self::NextPage,
        Self::ThunderingPage,
        Self::HotPage,
    ];

    /// Its name in reports.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Post => "post",
            Self::Delete => "delete",
            Self::Follow => "follow or unfollow",
            Self::FirstPage => "first page",
            Self::NextPage => "later page",
            Self::ThunderingPage => "first page, thundering",
            Self::HotPage => "first page, hot reader",
        }
    }

    /// Whether it asks and changes nothing.
    pub const fn reads(self) -> bool {
        matches!(
            self,
            Self::FirstPage | Self::NextPage | Self::ThunderingPage | Self::HotPage
        )
    }
}

/// Times of the posts of one class.
#[derive(Clone, Debug)]
pub struct ClassTimes {
    /// To the first row.
    pub first: Recorder,
    /// To the last row.
    pub last: Recorder,
    /// Until a polling follower saw it.
    pub seen: Recorder,
}

/// Plain counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Operations that became due.
    pub planned: u64,
    /// Posts that were acknowledged.
    pub posts: u64,
    /// Deletions that were acknowledged.
    pub deletes: u64,
    /// Follows that changed.
    pub edges: u64,
    /// Pages that came.
    pub pages: u64,
    /// Attempts without a good answer that were made again.
    pub retries: u64,
    /// Operations without a good answer in the end.
    pub failed: u64,
    /// Operations that were due and not sent, because too many were under way.
    pub shed: u64,
    /// Posts whose delivery was reported.
    pub delivered: u64,
    /// Rows of those.
    pub rows: u64,
    /// Polling followers who gave up.
    pub unseen: u64,
    /// Posts whose polling follower was left out, because too many polled.
    pub unwatched: u64,
}

impl Counts {
    /// Requests that were answered well.
    pub const fn answered(&self) -> u64 {
        self.posts + self.deletes + self.edges + self.pages
    }
}

/// Everything that is counted and timed.
#[derive(Debug)]
pub struct Tally {
    /// Plain counts.
    pub counts: Counts,
    /// Operations by the second they were due.
    pub planned: Counter,
    /// Operations by the second of the good answer.
    pub acknowledged: Counter,
    /// Operations by the second they failed or were shed.
    pub failed: Counter,
    /// Rows by the second of the post's last row.
    pub rows: Counter,
    /// By [`Request::ALL`].
    pub requests: Vec<Recorder>,
    /// By [`Audience::ALL`].
    pub classes: Vec<ClassTimes>,
    /// How late operations were begun.
    pub lag: Recorder,
    /// The first kinds of failures, in words, and how often each was met.
    pub told: Vec<(String, u64)>,
}

impl Tally {
    /// Nothing yet; what is due before the end of the warm-up is not in the totals.
    pub fn new(warm_up: Duration) -> Self {
        let recorder = || Recorder::measured_from(warm_up);
        let class = || ClassTimes {
            first: recorder(),
            last: recorder(),
            seen: recorder(),
        };
        Self {
            counts: Counts::default(),
            planned: Counter::new(),
            acknowledged: Counter::new(),
            failed: Counter::new(),
            rows: Counter::new(),
            requests: Request::ALL.map(|_| recorder()).to_vec(),
            classes: Audience::ALL.map(|_| class()).to_vec(),
            lag: recorder(),
            told: Vec::new(),
        }
    }

    /// An operation is due and begun so late.
    pub fn begun(&mut self, due: Duration, late: Duration) {
        self.lag.record(due, late);
    }

    /// A good answer, so long after the intended start.
    pub fn answered(&mut self, request: Request, due: Duration, took: Duration) {
        if let Some(recorder) = self.requests.get_mut(request as usize) {
            recorder.record(due, took);
        }
        if request != Request::NextPage {
            self.acknowledged.add(due + took, 1);
        }
        let count = match request {
            Request::Post => &mut self.counts.posts,
            Request::Delete => &mut self.counts.deletes,
            Request::Follow => &mut self.counts.edges,
            Request::FirstPage | Request::NextPage | Request::ThunderingPage | Request::HotPage => {
                &mut self.counts.pages
            }
        };
        *count += 1;
    }

    /// No good answer in the end.
    pub fn gave_up(&mut self, what: &str, now: Duration, why: &str) {
        self.counts.failed += 1;
        self.failed.add(now, 1);
        let text = format!("{what}: {why}");
        let known = self.told.iter_mut().find(|(told, _)| *told == text);
        if let Some((_, count)) = known {
            *count += 1;
        } else if self.told.len() < TOLD {
            self.told.push((text, 1));
        }
    }

    /// Due, and not sent.
    pub fn shed(&mut self, now: Duration) {
        self.counts.shed += 1;
        self.failed.add(now, 1);
    }

    /// Times of one class.
    pub fn class(&mut self, class: Audience) -> Option<&mut ClassTimes> {
        self.classes.get_mut(class.index())
    }

    /// The times of one kind of request.
    pub fn request(&self, request: Request) -> Option<&Recorder> {
        self.requests.get(request as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_is_due_in_the_warm_up_is_counted_and_not_measured() {
        let mut tally = Tally::new(5 * SECOND);
        tally.answered(Request::Post, 2 * SECOND, SECOND);
        tally.answered(Request::Post, 6 * SECOND, 2 * SECOND);
        assert_eq!(tally.counts.posts, 2);
        let times = tally.request(Request::Post).unwrap();
        assert_eq!(times.total().len(), 1);
        let slow = times.quantile(0.5).unwrap().as_secs_f64();
        assert!((slow - 2.0).abs() < 0.01, "{slow}");
    }

    #[test]
    fn only_the_first_kinds_of_failures_are_told() {
        let mut tally = Tally::new(Duration::ZERO);
        for number in 0..40 {
            tally.gave_up("a post", SECOND, &(number % 20).to_string());
        }
        assert_eq!((tally.counts.failed, tally.told.len()), (40, TOLD));
        assert_eq!(tally.told[0], ("a post: 0".to_owned(), 2));
        for (place, request) in Request::ALL.into_iter().enumerate() {
            assert_eq!(request as usize, place);
        }
    }
}
