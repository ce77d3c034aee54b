//! Moments in the ids of posts.

use events::{Micros, PostId};

/// 2025-01-01 in microseconds, from which post ids count.
const ID_ERA_US: i64 = 1_735_689_600_000_000;

/// The moment in the upper bits of a post id. The post's own time may differ: ids rise while the
/// clock steps back.
pub(crate) fn of_id(id: PostId) -> Micros {
    Micros(ID_ERA_US).plus((id.0 >> 22).saturating_mul(1_000))
}

/// The lowest post id of a moment; 0 for one before there were ids.
pub(crate) fn lowest_id(moment: Micros) -> PostId {
    let millis = moment.0.saturating_sub(ID_ERA_US).max(0) / 1_000;
    PostId(millis.saturating_mul(1 << 22))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_carry_their_moment() {
        let moment = Micros(1_772_366_400_123_000);
        assert_eq!(of_id(lowest_id(moment)), moment);
        assert_eq!(of_id(PostId(lowest_id(moment).0 + 4_194_303)), moment);
        assert_eq!(lowest_id(Micros(0)), PostId(0));
    }
}
