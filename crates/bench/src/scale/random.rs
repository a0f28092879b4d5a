//! Random numbers that depend only on a seed and a key, so that the order of work does not change them.
//!
//! SplitMix64 is written out here because generated collections must not change with the version of a crate.

/// A sequence of random numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence for a seed and a key.
    pub fn new(seed: u64, key: u64) -> Random {
        Random(mix(seed, key))
    }

    /// The next 64 bits.
    #[inline]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        finish(self.0)
    }

    /// Returns a number below `bound`, which is at least 1.
    #[inline]
    pub fn below(&mut self, bound: u32) -> u32 {
        (((self.next() >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// Draws an event; `share` is its probability times 2^32.
    #[inline]
    pub fn happens(&mut self, share: u64) -> bool {
        self.next() >> 32 < share
    }
}

/// Returns a random number for a pair of numbers.
#[inline]
pub fn mix(first: u64, second: u64) -> u64 {
    finish(finish(first.wrapping_add(0x9e37_79b9_7f4a_7c15)) ^ second.wrapping_mul(0xd6e8_feb8_6659_fd93))
}

/// Mixes every bit into all others (the finalizer of Steele, Lea and Flood's SplitMix64).
#[inline]
fn finish(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_below_a_bound_are_spread_evenly() {
        let mut random = Random::new(1, 2);
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[random.below(10) as usize] += 1;
        }
        assert!(counts.iter().all(|&count| (9_500..10_500).contains(&count)), "{counts:?}");
    }

    #[test]
    fn neighbouring_numbers_give_unrelated_bits() {
        let differing: u32 = (0..1000).map(|n| (mix(7, n) ^ mix(7, n + 1)).count_ones()).sum();
        assert!((31_000..33_000).contains(&differing), "{differing}");
    }
}
