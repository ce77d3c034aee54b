//! Which rows travel together: those that have the same replicas, and the same shard on the
//! first of them where there are shards.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;

use scylla::cluster::ClusterState;

use super::Shared;
use super::flight::Mutation;

/// The replicas of a row, in the order of the ring, with the shard that owns it on each.
type Home = Vec<(u128, u32)>;

impl Shared {
    /// Orders the changes so that those with the same home are neighbours, and cuts them into
    /// units of at most one batch. The order inside a home is kept.
    pub(super) fn grouped<M: Mutation>(&self, changes: &[M]) -> (Vec<M>, Vec<Range<usize>>) {
        let cluster = self.session.get_cluster_state();
        if is_one_place(&cluster) {
            return (changes.to_vec(), units(&[changes.len()], self.batch_rows));
        }
        let home = |change: &M| self.home(&cluster, change.owner().0);
        let (changes, sizes) = neighbours(changes, home);
        (changes, units(&sizes, self.batch_rows))
    }

    fn home(&self, cluster: &ClusterState, owner: i64) -> Home {
        // An owner the driver cannot place shares the empty home with its like: slower, not wrong.
        let endpoints = cluster
            .get_endpoints(&self.keyspace, "timelines", &(owner,))
            .unwrap_or_default();
        endpoints
            .iter()
            .map(|(node, shard)| (node.host_id.as_u128(), *shard))
            .collect()
    }
}

/// Brings items of the same home together, in the order in which homes and items come. Returns
/// the items and the size of each group.
fn neighbours<T: Copy, H: Hash + Eq>(items: &[T], home: impl Fn(&T) -> H) -> (Vec<T>, Vec<usize>) {
    let mut places: HashMap<H, usize> = HashMap::new();
    let mut groups: Vec<Vec<T>> = Vec::new();
    for item in items {
        let place = *places.entry(home(item)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(*item),
            None => groups.push(vec![*item]),
        }
    }
    let sizes = groups.iter().map(Vec::len).collect();
    (groups.concat(), sizes)
}

/// Whether there is nothing to choose: one node without shards.
fn is_one_place(cluster: &ClusterState) -> bool {
    match cluster.get_nodes_info() {
        [node] => node
            .sharder()
            .is_none_or(|sharder| sharder.nr_shards.get() == 1),
        _ => false,
    }
}

/// Cuts neighbouring groups of these sizes into ranges of at most `most`, none across a group.
pub(super) fn units(group_sizes: &[usize], most: usize) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut start = 0;
    for size in group_sizes {
        let end = start + size;
        while start < end {
            let next = end.min(start + most.max(1));
            ranges.push(start..next);
            start = next;
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_cover_every_row_once_and_never_cross_a_group() {
        assert_eq!(units(&[5, 0, 2], 2), [0..2, 2..4, 4..5, 5..7]);
        assert_eq!(units(&[3], 1), [0..1, 1..2, 2..3]);
        assert_eq!(units(&[3], 32), vec![0..3]);
        assert_eq!(units(&[0], 32), Vec::<Range<usize>>::new());
    }

    #[test]
    fn neighbours_share_their_home_and_keep_their_order() {
        let (items, sizes) = neighbours(&[31, 12, 13, 24, 35, 16], |item| item / 10);
        assert_eq!(items, [31, 35, 12, 13, 16, 24]);
        assert_eq!(sizes, [2, 3, 1]);
        assert_eq!(neighbours(&[0_u8; 0], |item| *item), (vec![], vec![]));
    }
}
