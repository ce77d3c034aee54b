//! Which partition an author's records are in: murmur2, as every Kafka client hashes keys.

use events::UserId;

/// Partitions of the topic of posts (`schemas/topics.toml`).
pub const PARTITIONS: u32 = 12;

/// The partition of an author's records among so many.
pub fn of_author(author: UserId, partitions: u32) -> u32 {
    // Java's toPositive: the sign bit is dropped, not the sign changed.
    (murmur2(author.to_string().as_bytes()) & 0x7fff_ffff) % partitions.max(1)
}

/// MurmurHash2 in 32 bits with the seed that Kafka's clients use
/// (org.apache.kafka.common.utils.Utils.murmur2).
fn murmur2(data: &[u8]) -> u32 {
    const SEED: u32 = 0x9747_b28c;
    const M: u32 = 0x5bd1_e995;
    const R: u32 = 24;
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let mut hash = SEED ^ length;
    let (words, tail) = data.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> R;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !tail.is_empty() {
        for (place, byte) in tail.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * place);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_hash_of_the_java_client() {
        // From Kafka's own UtilsTest.testMurmur2.
        let rows: [(&str, i32); 6] = [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            (
                "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8",
                -58_897_971,
            ),
            ("abc", 479_470_107),
        ];
        for (text, hash) in rows {
            assert_eq!(murmur2(text.as_bytes()).cast_signed(), hash, "{text}");
        }
    }

    #[test]
    fn partitions_are_in_range_and_all_are_used() {
        let mut seen = [false; PARTITIONS as usize];
        for author in 1..500 {
            seen[of_author(UserId(author), PARTITIONS) as usize] = true;
        }
        assert!(seen.iter().all(|seen| *seen));
    }
}
