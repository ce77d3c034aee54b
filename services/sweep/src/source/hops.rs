//! How far the consumer groups of a hop are.

use events::registry::Hop;
use kafka::Admin;

use crate::{core::Mark, error::SweepError};

/// First and end offset and what the group has committed, of each partition of the hop's topic.
///
/// The commits are read before the ends: a group that is at the end never seems to be beyond it.
pub(crate) async fn marks(
    admin: &Admin,
    namespace: &events::Namespace,
    hop: &Hop,
) -> Result<Vec<Mark>, SweepError> {
    let topic = namespace.topic(hop.topic);
    let committed = admin.committed(&namespace.group(hop.group), &topic).await?;
    let watermarks = admin.watermarks(&topic).await?;
    Ok(watermarks
        .into_iter()
        .map(|(partition, (low, end))| Mark {
            partition,
            low,
            end,
            committed: committed.get(&partition).copied().flatten(),
        })
        .collect())
}

/// Records that the group has not committed, all partitions together.
pub(crate) fn lag(marks: &[Mark]) -> i64 {
    marks
        .iter()
        .map(|mark| (mark.end - mark.committed.unwrap_or(mark.low).max(mark.low)).max(0))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lag_counts_what_is_there_and_not_committed() {
        let mark = |low, end, committed| Mark {
            partition: 0,
            low,
            end,
            committed,
        };
        assert_eq!(lag(&[]), 0);
        assert_eq!(lag(&[mark(0, 5, Some(3)), mark(2, 9, None)]), 2 + 7);
        assert_eq!(lag(&[mark(4, 9, Some(1)), mark(0, 3, Some(8))]), 5);
    }
}
