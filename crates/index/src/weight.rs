//! The weight of a posting: one fixed sequence of operations that gives the same integer on every CPU and GPU.
//!
//! A score is a `u32` in fixed point: [`ONE`] units are 1.0. The weight of a posting has two factors: its *saturation*
//! `s = tf / (tf + norm)`, which depends only on the document and the index, and the `idf` of the query term. Every
//! operation rounds to nearest even and is therefore monotone, so the largest saturation of a set of postings gives
//! exactly the largest weight of the set, whatever the idf. That is why bounds and k-th weights are stored as
//! saturations: they stay valid under any query weight and any document frequency, such as those of a larger
//! collection.
//!
//! BM25 is that of Robertson and Zaragoza (2009) without the constant factor k1 + 1; idf and length codes are Lucene's.

crate::codec::constants! {
    /// Units in a score of 1.0.
    pub ONE: f32 = 65536.0;
    /// The code of a saturation of 1.0 in 16 bits.
    FULL_SATURATION: f32 = 65535.0;
    /// Length codes, each of which has a norm.
    pub LENGTH_CODES: usize = 256;
}

/// The two parameters of BM25, fixed when an index is built.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Bm25 {
    /// How slowly a frequency saturates.
    pub k1: f64,
    /// How much a document's length counts, from 0 to 1.
    pub b: f64,
}

impl Default for Bm25 {
    fn default() -> Self {
        Bm25 { k1: 0.9, b: 0.4 }
    }
}

impl Bm25 {
    /// Whether both parameters lie in their ranges.
    pub fn is_valid(&self) -> bool {
        self.k1.is_finite() && self.k1 >= 0.0 && self.k1 <= 1000.0 && (0.0..=1.0).contains(&self.b)
    }

    /// The norm of each length code: `k1 (1 - b + b · length / average)`.
    pub fn norms(&self, average_length: f64) -> Norms {
        let average = if average_length > 0.0 { average_length } else { 1.0 };
        let mut table = [0.0; LENGTH_CODES];
        for (code, norm) in table.iter_mut().enumerate() {
            let length = f64::from(length_of(code as u8));
            *norm = (self.k1 * (1.0 - self.b + self.b * (length / average))) as f32;
        }
        Norms { table }
    }
}

/// The norm of each length code: all that scoring needs to know about the length of a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Norms {
    table: [f32; LENGTH_CODES],
}

impl Norms {
    /// The norm of a length code.
    #[inline]
    pub fn of(&self, code: u8) -> f32 {
        self.table[usize::from(code)]
    }

    /// All norms, indexed by length code.
    pub fn table(&self) -> &[f32; LENGTH_CODES] {
        &self.table
    }
}

/// `ln(1 + (documents - frequency + 0.5) / (frequency + 0.5))`, the same on every platform.
pub fn idf(documents: u64, frequency: u64) -> f64 {
    let documents = documents.max(frequency) as f64;
    let frequency = frequency as f64;
    libm::log(1.0 + (documents - frequency + 0.5) / (frequency + 0.5))
}

/// `tf / (tf + norm)`, in single precision, each operation rounded to nearest even.
#[inline]
pub fn saturation(frequency: u32, norm: f32) -> f32 {
    let frequency = frequency as f32;
    frequency / (frequency + norm)
}

/// The weight of a posting in units: `idf · saturation`, rounded half to even, at least 1.
#[inline]
pub fn units(idf: f32, saturation: f32) -> u32 {
    rounded((idf * saturation) * ONE).max(1)
}

/// Rounds a non-negative number half to even and saturates at `u32::MAX`.
#[inline]
fn rounded(number: f32) -> u32 {
    /// An `f32` of this size has no fractional bits: adding it to a smaller number rounds that number to an integer.
    const WHOLE: f32 = (1 << 23) as f32;
    match number < WHOLE {
        true => (number + WHOLE).to_bits().wrapping_sub(WHOLE.to_bits()),
        false => number as u32,
    }
}

/// The weight of a posting with an impact, in units: query weight times impact, rounded half to even, at least 1.
#[inline]
pub fn impact_units(query_weight: f32, impact: u32) -> u32 {
    rounded(query_weight * impact as f32).max(1)
}

/// Encodes a saturation in 16 bits, rounded up so that it stays an upper bound.
pub fn saturation_code(saturation: f32) -> u16 {
    let code = (f64::from(saturation) * f64::from(FULL_SATURATION)).ceil() as u16;
    // `saturation_of` rounds its quotient: step up until it is at least the saturation.
    (code..=u16::MAX).find(|&code| saturation_of(code) >= saturation).unwrap_or(u16::MAX)
}

/// Decodes a 16-bit code into a saturation, at least the one that was encoded.
#[inline]
pub fn saturation_of(code: u16) -> f32 {
    f32::from(code) / FULL_SATURATION
}

/// Encodes a saturation in 8 bits, rounded up so that it stays an upper bound.
pub fn chunk_saturation_code(saturation: f32) -> u8 {
    let code = (f64::from(saturation) * 255.0).ceil() as u8;
    (code..=u8::MAX).find(|&code| chunk_saturation_of(code) >= saturation).unwrap_or(u8::MAX)
}

/// Decodes an 8-bit code into a saturation, at least the one that was encoded.
#[inline]
pub fn chunk_saturation_of(code: u8) -> f32 {
    f32::from(code) / 255.0
}

/// The 8-bit code of a length, as in Lucene's `SmallFloat.intToByte4`: exact up to 40, then 4 significant bits.
pub fn length_code(length: u32) -> u8 {
    if length < FREE_CODES {
        return length as u8;
    }
    (FREE_CODES + u32::from(float_code(length - FREE_CODES))) as u8
}

/// The smallest length that has a code.
pub fn length_of(code: u8) -> u32 {
    let code = u32::from(code);
    if code < FREE_CODES {
        return code;
    }
    FREE_CODES.saturating_add(float_length(code - FREE_CODES))
}

/// Floats with 4 significant bits need only 232 codes for 31-bit lengths; the smallest lengths use the other 24
/// directly.
const FREE_CODES: u32 = 24;

fn float_code(length: u32) -> u8 {
    let length = length.min(i32::MAX as u32);
    let bits = 32 - length.leading_zeros();
    if bits < 4 {
        return length as u8;
    }
    let shift = bits - 4;
    let mantissa = (length >> shift) & 0x07;
    (mantissa | ((shift + 1) << 3)) as u8
}

fn float_length(code: u32) -> u32 {
    let mantissa = code & 0x07;
    match code >> 3 {
        0 => mantissa,
        shift => (mantissa | 0x08) << (shift - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn length_codes_are_exact_up_to_forty_and_monotone_after() {
        for length in 0..=40 {
            assert_eq!(length_of(length_code(length)), length);
        }
        let mut previous = 0;
        for code in 0..=255u8 {
            assert_eq!(length_code(length_of(code)), code);
            assert!(code == 0 || length_of(code) > previous, "code {code}");
            previous = length_of(code);
        }
        assert_eq!(length_code(u32::MAX), 255);
        assert_eq!(length_of(255), 2_013_265_944, "the largest length Lucene can tell apart");
    }

    #[test]
    fn golden_weights() {
        // Computed with exact fractions, rounded to single precision after each operation.
        let norms = Bm25::default().norms(100.0);
        assert_eq!(norms.of(length_code(0)).to_bits(), 0.54f32.to_bits());
        assert_eq!(norms.of(length_code(40)).to_bits(), 0.684f32.to_bits());
        let idf = idf(1_000_000, 1_000) as f32;
        assert_eq!(idf.to_bits(), 6.907_256_6_f32.to_bits());
        let golden = [(1, 0, 293_944), (1, 40, 268_809), (2, 40, 337_313), (100, 40, 449_599), (1, 1000, 89_067)];
        for (frequency, length, expected) in golden {
            let s = saturation(frequency, norms.of(length_code(length)));
            assert_eq!(units(idf, s), expected, "frequency {frequency}, length {length}");
        }
        assert_eq!(units(1e-9, 0.1), 1, "a weight is at least one unit");
        assert_eq!(impact_units(1.0, 255), 255);
        assert_eq!(impact_units(0.001, 3), 1);
        assert_eq!(impact_units(2.5, 3), 8, "7.5 rounds half to even");
        assert_eq!(impact_units(1.5, 3), 4, "4.5 rounds half to even");
    }

    proptest! {
        #[test]
        fn a_code_bounds_its_saturation(frequency in 1u32.., norm in 0f32..2000.0) {
            let s = saturation(frequency, norm);
            let bound = saturation_of(saturation_code(s));
            prop_assert!(bound >= s);
            prop_assert!(bound <= s + 3.1e-5);
            let bound = chunk_saturation_of(chunk_saturation_code(s));
            prop_assert!(bound >= s);
            prop_assert!(bound <= s + 0.004);
        }

        #[test]
        fn the_largest_saturation_gives_the_largest_weight(
            postings in prop::collection::vec((1u32..5000, 0.01f32..50.0), 1..50), idf in 1e-6f32..1e3,
        ) {
            let saturations: Vec<f32> = postings.iter().map(|&(f, n)| saturation(f, n)).collect();
            let largest = saturations.iter().copied().fold(0.0, f32::max);
            let weights = saturations.iter().map(|&s| units(idf, s));
            prop_assert_eq!(units(idf, largest), weights.max().unwrap());
        }

        #[test]
        fn rounding_is_half_to_even(number in prop_oneof![0f32..10.0, 0f32..1e7, 0f32..1e12], half in 0u32..9_000_000) {
            prop_assert_eq!(rounded(number), number.round_ties_even() as u32);
            let half = half as f32 + 0.5;
            prop_assert_eq!(rounded(half), half.round_ties_even() as u32);
        }

        #[test]
        fn a_longer_document_never_has_a_smaller_code(a: u32, b: u32) {
            let (short, long) = (a.min(b), a.max(b));
            prop_assert!(length_code(short) <= length_code(long));
        }
    }
}
