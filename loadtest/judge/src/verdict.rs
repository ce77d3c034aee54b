//! The verdict: what is wrong, counted and named.

use std::fmt;

use events::{PostId, UserId};

/// How many of each fault are named; all are counted.
pub const NAMED: usize = 20;

/// The ways in which the promise is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// What must be there is not.
    Lost,
    /// What must not be there is.
    Foreign,
    /// A deleted post is there.
    Resurrected,
    /// A post is there twice, or one key made two posts.
    Duplicated,
    /// Something is not in its order.
    Disorder,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Lost,
        Self::Foreign,
        Self::Resurrected,
        Self::Duplicated,
        Self::Disorder,
    ];

    /// The word in reports.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Foreign => "foreign",
            Self::Resurrected => "resurrected",
            Self::Duplicated => "duplicated",
            Self::Disorder => "out of order",
        }
    }
}

/// One fault, named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// Whose timeline; `None` when it is about no timeline.
    pub owner: Option<UserId>,
    /// The post, where it has an id.
    pub post: Option<PostId>,
    /// Its author; `None` when it is about no single post.
    pub author: Option<UserId>,
    /// What was seen, and why that is wrong.
    pub reason: String,
}

impl fmt::Display for Example {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Vec::new();
        words.extend(self.post.map(|post| format!("post {post}")));
        words.extend(self.author.map(|author| format!("of author {author}")));
        words.extend(
            self.owner
                .map(|owner| format!("in the timeline of {owner}")),
        );
        write!(f, "{}: {}", words.join(" "), self.reason)
    }
}

/// How often one fault was met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All of them.
    pub count: u64,
    /// The first [`NAMED`].
    pub examples: Vec<Example>,
}

/// What the judge found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Posts that were acknowledged, or whose commit was found.
    pub posts: u64,
    /// Rows that must be in the store.
    pub rows_expected: u64,
    /// How many of those are there.
    pub rows_found: u64,
    /// All rows of the run in the store, with those that may be there.
    pub rows_stored: u64,
    /// All rows that were looked at, those of others included.
    pub rows_read: u64,
    /// Readers who were followed through the API to the end of their timeline.
    pub walks: u64,
    /// Posts that they met.
    pub walked_posts: u64,
    /// What must be there and is not.
    pub lost: Tally,
    /// What must not be there and is.
    pub foreign: Tally,
    /// Deleted posts that are there.
    pub resurrected: Tally,
    /// Posts that are there twice.
    pub duplicated: Tally,
    /// What is not in its order.
    pub disorder: Tally,
}

impl Verdict {
    /// Whether nothing is wrong.
    pub fn holds(&self) -> bool {
        Fault::ALL
            .into_iter()
            .all(|fault| self.tally(fault).count == 0)
    }

    /// What was found of one fault.
    pub fn tally(&self, fault: Fault) -> &Tally {
        match fault {
            Fault::Lost => &self.lost,
            Fault::Foreign => &self.foreign,
            Fault::Resurrected => &self.resurrected,
            Fault::Duplicated => &self.duplicated,
            Fault::Disorder => &self.disorder,
        }
    }

    /// Counts a fault, and names it while there is room.
    pub(crate) fn add(&mut self, fault: Fault, example: impl FnOnce() -> Example) {
        let tally = match fault {
            Fault::Lost => &mut self.lost,
            Fault::Foreign => &mut self.foreign,
            Fault::Resurrected => &mut self.resurrected,
            Fault::Duplicated => &mut self.duplicated,
            Fault::Disorder => &mut self.disorder,
        };
        tally.count += 1;
        if tally.examples.len() < NAMED {
            tally.examples.push(example());
        }
    }
}

/// One line for each named fault, and one for those that are only counted.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fault in Fault::ALL {
            let tally = self.tally(fault);
            for example in &tally.examples {
                writeln!(f, "{}: {example}", fault.word())?;
            }
            let unnamed = tally.count - tally.examples.len() as u64;
            if unnamed > 0 {
                writeln!(f, "{}: and {unnamed} more", fault.word())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_counted_and_the_first_are_named() {
        let mut verdict = Verdict::default();
        assert!(verdict.holds());
        for post in 0..25 {
            verdict.add(Fault::Lost, || Example {
                owner: Some(UserId(7)),
                post: Some(PostId(post)),
                author: Some(UserId(1)),
                reason: "no row".into(),
            });
        }
        assert!(!verdict.holds());
        assert_eq!(
            (verdict.lost.count, verdict.lost.examples.len()),
            (25, NAMED)
        );
        let text = verdict.to_string();
        assert!(
            text.starts_with("lost: post 0 of author 1 in the timeline of 7: no row\n"),
            "{text}"
        );
        assert!(text.ends_with("lost: and 5 more\n"), "{text}");
    }
}
