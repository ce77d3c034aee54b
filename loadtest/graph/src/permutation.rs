//! A keyed permutation of `0..size` that needs no table: the image of an index, and the way back,
//! in a few multiplications.
//!
//! A Feistel network over the next power of two, walked until it lands inside (Black and Rogaway,
//! "Ciphers with Arbitrary Finite Domains", 2002). It mixes well enough for a load; it is no
//! cipher.

/// Rounds of the network. Fewer show patterns in domains of a few dozen values.
const ROUNDS: u64 = 6;

/// 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Every value of `0..size` once, in an order that follows from the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Permutation {
    size: u64,
    /// Bits of the lower half of a value.
    low_bits: u32,
    low_mask: u64,
    high_mask: u64,
    key: u64,
}

impl Permutation {
    /// The permutation of `0..size` with this key. An empty one has no values to ask for.
    pub(crate) fn new(size: u64, key: u64) -> Self {
        let bits = (64 - size.saturating_sub(1).leading_zeros()).max(2);
        let low_bits = bits / 2;
        Self {
            size,
            low_bits,
            low_mask: (1 << low_bits) - 1,
            high_mask: (1 << (bits - low_bits)) - 1,
            key,
        }
    }

    /// The value at `index`, which has to be below the size.
    pub(crate) fn at(&self, index: u64) -> u64 {
        self.walk(index, |this, value| this.shuffle(value, 0..ROUNDS))
    }

    /// The index at which `value` stands; it has to be below the size.
    pub(crate) fn index_of(&self, value: u64) -> u64 {
        self.walk(value, |this, value| this.shuffle(value, (0..ROUNDS).rev()))
    }

    /// A cycle that starts inside comes back inside, so the walk ends; two steps on average.
    fn walk(&self, start: u64, step: impl Fn(&Self, u64) -> u64) -> u64 {
        debug_assert!(start < self.size, "{start} is not below {}", self.size);
        let mut value = step(self, start);
        while value >= self.size {
            value = step(self, value);
        }
        value
    }

    /// Each round changes one half by the other, so the rounds backwards undo it.
    fn shuffle(&self, value: u64, rounds: impl Iterator<Item = u64>) -> u64 {
        let (mut high, mut low) = (value >> self.low_bits, value & self.low_mask);
        for round in rounds {
            if round % 2 == 0 {
                high ^= self.hash(round, low) & self.high_mask;
            } else {
                low ^= self.hash(round, high) & self.low_mask;
            }
        }
        high << self.low_bits | low
    }

    fn hash(&self, round: u64, half: u64) -> u64 {
        mix(self.key.wrapping_add(round.wrapping_mul(GOLDEN)) ^ half)
    }
}

/// A key for one purpose out of a seed: other parts, another key.
pub(crate) fn key(seed: u64, parts: [u64; 2]) -> u64 {
    parts.iter().fold(mix(seed ^ GOLDEN), |key, part| {
        mix(key.wrapping_add(GOLDEN) ^ part)
    })
}

/// The finish of SplitMix64 (Steele, Lea and Flood, 2014): every bit depends on every bit.
fn mix(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_comes_once_and_finds_its_way_back() {
        for size in (1..70).chain([1_000, 4_096, 4_097, 10_007]) {
            for seed in 0..3 {
                let permutation = Permutation::new(size, key(seed, [size, 0]));
                let mut met = vec![false; usize::try_from(size).unwrap()];
                for index in 0..size {
                    let value = permutation.at(index);
                    assert_eq!(permutation.index_of(value), index, "size {size}");
                    let met = &mut met[usize::try_from(value).unwrap()];
                    assert!(!std::mem::replace(met, true), "size {size}: {value} twice");
                }
            }
        }
    }

    #[test]
    fn the_first_values_are_spread_evenly() {
        // 1 000 draws of the first 10 of 100: each value is expected 100 times.
        let mut seen = [0_u32; 100];
        for seed in 0..1_000 {
            let permutation = Permutation::new(100, key(seed, [1, 2]));
            for index in 0..10 {
                seen[usize::try_from(permutation.at(index)).unwrap()] += 1;
            }
        }
        // Five standard deviations of a binomial count.
        assert!(
            seen.iter().all(|count| (53..=147).contains(count)),
            "{seen:?}"
        );
    }

    #[test]
    fn another_key_is_another_order() {
        let order = |key| {
            let permutation = Permutation::new(50, key);
            (0..50)
                .map(|index| permutation.at(index))
                .collect::<Vec<_>>()
        };
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
    }
}
