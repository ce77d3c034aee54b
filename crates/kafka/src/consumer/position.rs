//! Where each assigned partition stands. Pure.
//!
//! Tideline's topics are neither compacted nor transactional, so offsets of a partition have no
//! gaps: a record whose offset is not the one after its predecessor, or not the committed one,
//! tells of records that retention or an operator took away, or of a new topic of the same name.

use std::collections::BTreeMap;

/// The assigned partitions.
#[derive(Debug, Default)]
pub(super) struct Positions {
    generation: u64,
    partitions: BTreeMap<i32, Position>,
}

#[derive(Clone, Copy, Debug)]
struct Position {
    generation: u64,
    next: Option<i64>,
}

/// What a record's offset tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// It follows.
    Next { generation: u64 },
    /// It does not; went back if `found` is below `expected`, and then the generation is new.
    Jump {
        generation: u64,
        expected: i64,
        found: i64,
    },
    /// The partition is not assigned; the record is its next owner's.
    Foreign,
}

impl Positions {
    /// Takes in an assignment: partitions with the offset each should go on at, if known.
    /// Returns its generation.
    pub(super) fn assign(
        &mut self,
        partitions: impl IntoIterator<Item = (i32, Option<i64>)>,
    ) -> u64 {
        self.generation += 1;
        let generation = self.generation;
        for (partition, next) in partitions {
            let _replaced = self
                .partitions
                .insert(partition, Position { generation, next });
        }
        generation
    }

    /// Drops a partition.
    pub(super) fn revoke(&mut self, partition: i32) {
        let _gone = self.partitions.remove(&partition);
    }

    /// Judges the offset of a record and expects the one after it next.
    pub(super) fn see(&mut self, partition: i32, offset: i64) -> Seen {
        let Some(position) = self.partitions.get_mut(&partition) else {
            return Seen::Foreign;
        };
        let expected = position.next.replace(offset + 1);
        match expected {
            Some(expected) if expected != offset => {
                if offset < expected {
                    self.generation += 1;
                    position.generation = self.generation;
                }
                Seen::Jump {
                    generation: position.generation,
                    expected,
                    found: offset,
                }
            }
            _ => Seen::Next {
                generation: position.generation,
            },
        }
    }

    /// Whether work of this generation may still be committed.
    pub(super) fn is_current(&self, partition: i32, generation: u64) -> bool {
        self.partitions
            .get(&partition)
            .is_some_and(|position| position.generation == generation)
    }

    /// The assigned partitions.
    pub(super) fn assigned(&self) -> impl Iterator<Item = i32> {
        self.partitions.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_are_told_and_only_those_back_begin_a_generation() {
        let mut positions = Positions::default();
        let first = positions.assign([(0, Some(10)), (1, None)]);
        assert_eq!(positions.see(0, 10), Seen::Next { generation: first });
        assert_eq!(positions.see(1, 900), Seen::Next { generation: first });
        assert_eq!(
            positions.see(0, 20),
            Seen::Jump {
                generation: first,
                expected: 11,
                found: 20
            }
        );
        let Seen::Jump {
            generation,
            expected: 21,
            found: 0,
        } = positions.see(0, 0)
        else {
            panic!("the topic is a new one");
        };
        assert!(generation > first);
        assert!(!positions.is_current(0, first));
        assert!(positions.is_current(0, generation));
        assert!(positions.is_current(1, first));
    }

    #[test]
    fn revoked_partition_is_foreign_until_assigned_again() {
        let mut positions = Positions::default();
        let first = positions.assign([(0, Some(1))]);
        positions.revoke(0);
        assert_eq!(positions.see(0, 1), Seen::Foreign);
        assert!(!positions.is_current(0, first));
        let second = positions.assign([(0, Some(1))]);
        assert!(second > first);
        assert!(!positions.is_current(0, first));
    }
}
