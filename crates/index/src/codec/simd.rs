//! The kernels of `lanes.rs` for x86-64: AVX2, and AVX-512 with VBMI and VBMI2.
//!
//! A register has two (AVX2) or four (AVX-512) rows of four consecutive numbers. Unpacking permutes the words of each
//! row, shifts each by its own count, and masks. Prefix sums are computed inside the register: neighbours by a shift of
//! 64-bit words, then pairs, then rows. The sum of all previous registers is added last, so that only one addition per
//! register depends on the previous one.
//!
//! Only loads, stores, and calls of functions that need a CPU feature are unsafe: every address comes from a slice, and
//! [`kernels`] returns a table only if the CPU has the features of its functions.
#![allow(unsafe_code)]

use super::BLOCK;
use super::lanes::{Kernels, SCALAR, SumFull, UnpackFull, eight_bytes, per_width};
use std::arch::x86_64::*;
use std::sync::LazyLock;

/// The kernels that this CPU supports, the fastest last.
pub fn kernels() -> &'static [&'static Kernels] {
    static FOUND: LazyLock<Vec<&'static Kernels>> = LazyLock::new(|| {
        let mut found = Vec::new();
        if is_x86_feature_detected!("avx2") {
            found.push(&AVX2);
        }
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("avx512vbmi2")
        {
            found.push(&AVX512);
        }
        found
    });
    &FOUND
}

/// A table with functions of a module, and for the rest those of another table.
macro_rules! table {
    ($module:ident: $($function:ident($($argument:ident),*)),* $(; ..$rest:ident)?) => {{
        fn unpack_full<const WIDTH: usize>(bytes: &[u8], add: u32, numbers: &mut [u32; BLOCK]) {
            // SAFETY: `kernels` returns a table only if the CPU has the features of its functions.
            unsafe { $module::unpack_full::<WIDTH>(bytes, add, numbers) }
        }
        fn sum_full<const WIDTH: usize>(bytes: &[u8], base: u32, numbers: &mut [u32; BLOCK]) {
            // SAFETY: the same.
            unsafe { $module::sum_full::<WIDTH>(bytes, base, numbers) }
        }
        Kernels {
            unpack_full: per_width!(unpack_full as UnpackFull),
            sum_full: per_width!(sum_full as SumFull),
            // SAFETY: the same.
            $($function: |$($argument),*| unsafe { $module::$function($($argument),*) },)*
            $(..$rest)?
        }
    }};
}

static AVX2: Kernels = table!(avx2: sum(base, numbers); ..SCALAR);

static AVX512: Kernels = table!(
    avx512: unpack_bits(bytes, width, add, numbers), sum_bits(bytes, width, base, numbers), sum(base, numbers),
    add_unary(bits, shift, step, numbers)
);

/// Defines the functions that read full blocks, `$size` numbers at a time, by functions of the module.
macro_rules! full_blocks {
    ($features:literal, $size:literal, $set:ident, $add:ident) => {
        #[target_feature(enable = $features)]
        pub fn unpack_full<const WIDTH: usize>(bytes: &[u8], add: u32, numbers: &mut [u32; BLOCK]) {
            let rows = rows_of::<WIDTH>(bytes);
            let add = $set(add as i32);
            for (group, out) in numbers.as_chunks_mut::<$size>().0.iter_mut().enumerate() {
                store($add(some_rows(rows, $size / 4 * group), add), out);
            }
        }

        #[target_feature(enable = $features)]
        pub fn sum_full<const WIDTH: usize>(bytes: &[u8], base: u32, numbers: &mut [u32; BLOCK]) {
            let rows = rows_of::<WIDTH>(bytes);
            let mut start = start_from(base);
            for (group, out) in numbers.as_chunks_mut::<$size>().0.iter_mut().enumerate() {
                let sums = running(some_rows(rows, $size / 4 * group));
                store($add(start, sums), out);
                start = after(start, sums);
            }
        }
    };
}

/// The rows of a full block of a width.
#[inline]
fn rows_of<const WIDTH: usize>(bytes: &[u8]) -> &[[u8; 16]; WIDTH] {
    bytes.as_chunks().0.first_chunk().expect("as many bytes as the width asks for")
}

/// Word and shift of each row of a group of rows, the first of which is `row`.
#[inline]
fn places<const WIDTH: usize, const ROWS: usize>(row: usize) -> ([usize; ROWS], [i32; ROWS]) {
    let bit = |i: usize| (row + i) * WIDTH;
    (std::array::from_fn(|i| bit(i) / 32), std::array::from_fn(|i| (bit(i) % 32) as i32))
}

mod avx2 {
    //! Two rows at a time.
    use super::*;

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(row: &[u8; 16]) -> __m128i {
        // SAFETY: the sixteen bytes are the array.
        unsafe { _mm_loadu_si128(row.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load_eight(numbers: &[u32; 8]) -> __m256i {
        // SAFETY: the 32 bytes are the array.
        unsafe { _mm256_loadu_si256(numbers.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn store(numbers: __m256i, eight: &mut [u32; 8]) {
        // SAFETY: the 32 bytes are the array.
        unsafe { _mm256_storeu_si256(eight.as_mut_ptr().cast(), numbers) }
    }

    /// The eight numbers from `row` on.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn some_rows<const WIDTH: usize>(rows: &[[u8; 16]; WIDTH], row: usize) -> __m256i {
        if WIDTH == 0 {
            return _mm256_setzero_si256();
        }
        let (words, shifts) = places::<WIDTH, 2>(row);
        let pair = |words: [usize; 2]| _mm256_set_m128i(load(&rows[words[1]]), load(&rows[words[0]]));
        let shift = |[a, b]: [i32; 2]| _mm256_setr_epi32(a, a, a, a, b, b, b, b);
        let mut numbers = _mm256_srlv_epi32(pair(words), shift(shifts));
        if shifts.iter().any(|&shift| shift as usize + WIDTH > 32) {
            // A row that starts a word takes nothing from the next one: a shift of 32 gives 0.
            let next = pair(words.map(|word| (word + 1).min(WIDTH - 1)));
            numbers = _mm256_or_si256(numbers, _mm256_sllv_epi32(next, shift(shifts.map(|shift| 32 - shift))));
        }
        _mm256_and_si256(numbers, _mm256_set1_epi32(((1u64 << WIDTH) - 1) as i32))
    }

    /// The prefix sums of eight numbers.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn running(numbers: __m256i) -> __m256i {
        let pairs = _mm256_add_epi32(numbers, _mm256_slli_epi64::<32>(numbers));
        let zero = _mm256_setzero_si256();
        let second = _mm256_blend_epi32::<0b1100_1100>(zero, _mm256_shuffle_epi32::<0b01_01_00_00>(pairs));
        let rows = _mm256_add_epi32(pairs, second);
        let fourth = _mm256_permutevar8x32_epi32(rows, _mm256_set1_epi32(3));
        _mm256_add_epi32(rows, _mm256_blend_epi32::<0b1111_0000>(zero, fourth))
    }

    /// The base of the eight numbers after those of the prefix sums.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn after(start: __m256i, running: __m256i) -> __m256i {
        let total = _mm256_permutevar8x32_epi32(running, _mm256_set1_epi32(7));
        _mm256_add_epi32(start, _mm256_add_epi32(total, _mm256_set1_epi32(8)))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn start_from(base: u32) -> __m256i {
        _mm256_add_epi32(_mm256_set1_epi32(base as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
    }

    full_blocks!("avx2", 8, _mm256_set1_epi32, _mm256_add_epi32);

    #[target_feature(enable = "avx2")]
    pub fn sum(base: u32, numbers: &mut [u32]) {
        let (eights, rest) = numbers.as_chunks_mut::<8>();
        let mut start = start_from(base);
        for eight in &mut *eights {
            let sums = running(load_eight(eight));
            store(_mm256_add_epi32(start, sums), eight);
            start = after(start, sums);
        }
        let next = eights.last().map_or(base, |eight| eight[7].wrapping_add(1));
        (SCALAR.sum)(next, rest);
    }
}

mod avx512 {
    //! Four rows at a time, or sixteen numbers packed one after the other.
    use super::*;

    /// Up to 64 bytes; zeros after them.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
    fn load(bytes: &[u8]) -> __m512i {
        match bytes.first_chunk::<64>() {
            // SAFETY: the 64 bytes are the array.
            Some(whole) => unsafe { _mm512_loadu_si512(whole.as_ptr().cast()) },
            // The address of an empty slice need not be mapped, and even a suppressed fault is slow.
            None if bytes.is_empty() => _mm512_setzero_si512(),
            None => {
                let mask = (1u64 << bytes.len()) - 1;
                // SAFETY: a masked load touches only the bytes of its mask, which are those of the slice.
                unsafe { _mm512_maskz_loadu_epi8(mask, bytes.as_ptr().cast()) }
            }
        }
    }

    /// Stores as many of the sixteen numbers as fit.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
    fn store(numbers: __m512i, out: &mut [u32]) {
        match out.first_chunk_mut::<16>() {
            // SAFETY: the 64 bytes are the array.
            Some(sixteen) => unsafe { _mm512_storeu_si512(sixteen.as_mut_ptr().cast(), numbers) },
            None => {
                let mask = (1u16 << out.len()) - 1;
                // SAFETY: a masked store touches only the numbers of its mask, which are those of the slice.
                unsafe { _mm512_mask_storeu_epi32(out.as_mut_ptr().cast(), mask, numbers) }
            }
        }
    }

    /// The first sixteen numbers; zeros after the last.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
    fn load_numbers(numbers: &[u32]) -> __m512i {
        let mask = if numbers.len() >= 16 { u16::MAX } else { (1 << numbers.len()) - 1 };
        // SAFETY: a masked load touches only the numbers of its mask, which are in the slice.
        unsafe { _mm512_maskz_loadu_epi32(mask, numbers.as_ptr().cast()) }
    }

    /// A vector with one number for each row.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
    fn by_row([a, b, c, d]: [i32; 4]) -> __m512i {
        _mm512_setr_epi32(a, a, a, a, b, b, b, b, c, c, c, c, d, d, d, d)
    }

    /// The sixteen numbers from `row` on.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
    fn some_rows<const WIDTH: usize>(rows: &[[u8; 16]; WIDTH], row: usize) -> __m512i {
        if WIDTH == 0 {
            return _mm512_setzero_si512();
        }
        let (words, shifts) = places::<WIDTH, 4>(row);
        let lane = _mm512_setr_epi32(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3);
        // The words of four rows are in four consecutive rows of the block, from `first` on.
        let gather = |words: [usize; 4]| {
            let first = words[0].min(WIDTH.saturating_sub(4));
            let from = words.map(|word| 4 * (word - first) as i32);
            _mm512_permutexvar_epi32(_mm512_or_si512(by_row(from), lane), load(rows[first..].as_flattened()))
        };
        let low = gather(words);
        let numbers = if shifts.iter().any(|&shift| shift as usize + WIDTH > 32) {
            let next = gather(words.map(|word| (word + 1).min(WIDTH - 1)));
            _mm512_shrdv_epi32(low, next, by_row(shifts))
        } else {
            _mm512_srlv_epi32(low, by_row(shifts))
        };
        _mm512_and_si512(numbers, _mm512_set1_epi32(((1u64 << WIDTH) - 1) as i32))
    }

    /// The prefix sums of sixteen numbers.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
    fn running(numbers: __m512i) -> __m512i {
        let pairs = _mm512_add_epi32(numbers, _mm512_slli_epi64::<32>(numbers));
        let second = _mm512_maskz_shuffle_epi32::<0b01_01_00_00>(0xCCCC, pairs);
        let fours = _mm512_add_epi32(pairs, second);
        let fourth = _mm512_maskz_permutexvar_epi32(0xF0F0, by_row([3, 3, 11, 11]), fours);
        let eights = _mm512_add_epi32(fours, fourth);
        _mm512_add_epi32(eights, _mm512_maskz_permutexvar_epi32(0xFF00, _mm512_set1_epi32(7), eights))
    }

    /// The base of the sixteen numbers after those of the prefix sums.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
    fn after(start: __m512i, running: __m512i) -> __m512i {
        let total = _mm512_permutexvar_epi32(_mm512_set1_epi32(15), running);
        _mm512_add_epi32(start, _mm512_add_epi32(total, _mm512_set1_epi32(16)))
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
    fn start_from(base: u32) -> __m512i {
        let places = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        _mm512_add_epi32(_mm512_set1_epi32(base as i32), places)
    }

    full_blocks!("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2", 16, _mm512_set1_epi32, _mm512_add_epi32);

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
    pub fn sum(base: u32, numbers: &mut [u32]) {
        let mut start = start_from(base);
        for sixteen in numbers.chunks_mut(16) {
            let sums = running(load_numbers(sixteen));
            store(_mm512_add_epi32(start, sums), sixteen);
            start = after(start, sums);
        }
    }

    /// Up to this width, each of sixteen numbers packed one after the other is within four bytes.
    const WIDEST: usize = 25;

    /// `BYTES[width]`: the indexes of the four bytes that hold each of sixteen numbers.
    static BYTES: [[u8; 64]; WIDEST + 1] = {
        let mut table = [[0; 64]; WIDEST + 1];
        let mut i = 0;
        while i < 64 * (WIDEST + 1) {
            let (width, place) = (i / 64, i % 64);
            // Bytes after the 64 are not needed: the number ends before them.
            let byte = (place / 4 * width) / 8 + place % 4;
            table[width][place] = if byte < 64 { byte as u8 } else { 63 };
            i += 1;
        }
        table
    };

    /// How sixteen numbers of a width are read.
    struct Sixteen {
        bytes: __m512i,
        shifts: __m512i,
        mask: __m512i,
    }

    impl Sixteen {
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
        fn of(width: usize) -> Sixteen {
            let places = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
            let bits = _mm512_mullo_epi32(places, _mm512_set1_epi32(width as i32));
            Sixteen {
                bytes: load(&BYTES[width]),
                shifts: _mm512_and_si512(bits, _mm512_set1_epi32(7)),
                mask: _mm512_set1_epi32(((1u64 << width) - 1) as i32),
            }
        }

        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
        fn read(&self, bytes: &[u8]) -> __m512i {
            let words = _mm512_permutexvar_epi8(self.bytes, load(bytes));
            _mm512_and_si512(_mm512_srlv_epi32(words, self.shifts), self.mask)
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
    pub fn unpack_bits(bytes: &[u8], width: usize, add: u32, numbers: &mut [u32]) {
        if width > WIDEST {
            return (SCALAR.unpack_bits)(bytes, width, add, numbers);
        }
        let sixteen = Sixteen::of(width);
        let add = _mm512_set1_epi32(add as i32);
        for (group, out) in numbers.chunks_mut(16).enumerate() {
            let numbers = sixteen.read(bytes.get(2 * width * group..).unwrap_or(&[]));
            store(_mm512_add_epi32(numbers, add), out);
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
    pub fn sum_bits(bytes: &[u8], width: usize, base: u32, numbers: &mut [u32]) {
        if width > WIDEST {
            return (SCALAR.sum_bits)(bytes, width, base, numbers);
        }
        let sixteen = Sixteen::of(width);
        let mut start = start_from(base);
        for (group, out) in numbers.chunks_mut(16).enumerate() {
            let sums = running(sixteen.read(bytes.get(2 * width * group..).unwrap_or(&[])));
            store(_mm512_add_epi32(start, sums), out);
            start = after(start, sums);
        }
    }

    /// Writes the positions of the first `count` ones, and those of further ones in the same word; returns how many of
    /// the `count` were found.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,popcnt")]
    fn ones(bits: &[u8], count: usize, positions: &mut [u16; BLOCK + 32]) -> usize {
        let places: [u16; 32] = std::array::from_fn(|place| place as u16);
        // SAFETY: the 64 bytes are the array.
        let mut places = unsafe { _mm512_loadu_si512(places.as_ptr().cast()) };
        let mut found = 0;
        for at in (0..bits.len()).step_by(8) {
            let word = eight_bytes(bits, at);
            for half in [word as u32, (word >> 32) as u32] {
                let Some(out) = positions[found..].first_chunk_mut::<32>().filter(|_| found < count) else {
                    return count;
                };
                // SAFETY: the 64 bytes are the array.
                unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), _mm512_maskz_compress_epi16(half, places)) };
                places = _mm512_add_epi16(places, _mm512_set1_epi16(32));
                found += half.count_ones() as usize;
            }
        }
        found.min(count)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
    fn widen(positions: &[u16; 16]) -> __m512i {
        // SAFETY: the 32 bytes are the array.
        _mm512_cvtepu16_epi32(unsafe { _mm256_loadu_si256(positions.as_ptr().cast()) })
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,popcnt")]
    pub fn add_unary(bits: &[u8], shift: u32, step: u32, numbers: &mut [u32]) {
        let mut positions = [0; BLOCK + 32];
        let found = ones(bits, numbers.len().min(BLOCK), &mut positions);
        let (step, shift) = (_mm512_set1_epi32(step as i32), _mm_cvtsi32_si128(shift as i32));
        let mut place = start_from(0);
        for (out, positions) in numbers[..found].chunks_mut(16).zip(positions.as_chunks::<16>().0) {
            let sums = _mm512_sll_epi32(_mm512_sub_epi32(widen(positions), place), shift);
            let steps = _mm512_mullo_epi32(place, step);
            store(_mm512_add_epi32(load_numbers(out), _mm512_add_epi32(sums, steps)), out);
            place = _mm512_add_epi32(place, _mm512_set1_epi32(16));
        }
    }
}
