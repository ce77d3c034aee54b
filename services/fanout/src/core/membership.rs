//! Whether a lane whose membership was fenced joins its group again.
//!
//! A broker that comes back after an outage fences the static member it still remembers, although
//! the only process with that instance id is this one: its session had run out, and the client
//! joined anew under the same id (KIP-345). Joining again mends that. Two processes that share an
//! instance id fence each other again and again: then one of them has to end, with a word about
//! the setting.

/// A lane that is fenced twice within this time shares its instance id with another process:
/// several session timeouts, and shorter than outages follow one another.
pub const AGAIN_WITHIN_US: u64 = 60_000_000;

/// What is known about the lane's membership.
#[derive(Debug, Default)]
pub struct Membership {
    fenced_us: Option<u64>,
}

impl Membership {
    /// The lane was fenced at `now_us` of the process's own clock: whether to join again.
    pub fn fenced(&mut self, now_us: u64) -> bool {
        let before = self.fenced_us.replace(now_us);
        before.is_none_or(|before| now_us.saturating_sub(before) >= AGAIN_WITHIN_US)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D-12: an outage of the broker ends no process; a second process with the same id does.
    #[test]
    fn d_12_once_is_an_outage_and_twice_in_a_minute_is_another_process() {
        let mut membership = Membership::default();
        assert!(membership.fenced(5));
        assert!(membership.fenced(5 + AGAIN_WITHIN_US));
        assert!(!membership.fenced(4 + 2 * AGAIN_WITHIN_US));
        // The last time counts, not the first.
        assert!(!membership.fenced(3 + 3 * AGAIN_WITHIN_US));
    }
}
