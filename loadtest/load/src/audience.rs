//! Audience classes: posts are planned and measured apart by the number of followers.

/// A range of audience sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Audience {
    /// Fewer than 100 followers.
    Under100,
    /// 100 to 999.
    Under1k,
    /// 1 000 to 9 999.
    Under10k,
    /// 10 000 to 99 999.
    Under100k,
    /// 100 000 and more.
    Over100k,
}

impl Audience {
    /// All of them, ascending.
    pub const ALL: [Self; 5] = [
        Self::Under100,
        Self::Under1k,
        Self::Under10k,
        Self::Under100k,
        Self::Over100k,
    ];

    /// The class of an author with so many followers.
    pub const fn of(followers: u64) -> Self {
        match followers {
            0..100 => Self::Under100,
            100..1_000 => Self::Under1k,
            1_000..10_000 => Self::Under10k,
            10_000..100_000 => Self::Under100k,
            _ => Self::Over100k,
        }
    }

    /// Its name in scenario files.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Under100 => "under_100",
            Self::Under1k => "under_1k",
            Self::Under10k => "under_10k",
            Self::Under100k => "under_100k",
            Self::Over100k => "over_100k",
        }
    }

    /// Its name in reports.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Under100 => "< 100 followers",
            Self::Under1k => "< 1 k followers",
            Self::Under10k => "< 10 k followers",
            Self::Under100k => "< 100 k followers",
            Self::Over100k => "≥ 100 k followers",
        }
    }

    /// The class with this name in scenario files.
    pub fn of_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.key() == key)
    }

    /// Its place in [`Audience::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_meet_without_gap() {
        let sizes = [
            (0, "under_100"),
            (99, "under_100"),
            (100, "under_1k"),
            (999, "under_1k"),
            (1_000, "under_10k"),
            (9_999, "under_10k"),
            (10_000, "under_100k"),
            (99_999, "under_100k"),
            (100_000, "over_100k"),
        ];
        for (size, key) in sizes {
            assert_eq!(Audience::of(size).key(), key, "{size}");
            assert_eq!(Audience::of_key(key), Some(Audience::of(size)));
        }
        for (index, class) in Audience::ALL.into_iter().enumerate() {
            assert_eq!(class.index(), index);
        }
    }
}
