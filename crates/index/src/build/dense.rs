//! Encoding of a dense list: words, ranks, bounds of chunks, and weights by rank.

use super::list::{BlockColumns, ListEncoder, Strongest};
use crate::codec::BLOCK;
use crate::format::dense::{CHUNK, DENSE_MARK, DenseLayout, EXCEPTIONS_AT, FREQUENCY_BITS, MARK_AT};
use crate::format::segment::WINDOW;
use crate::weight::{chunk_saturation_code, saturation_code};

impl ListEncoder<'_> {
    /// Appends the list as a dense one.
    pub(super) fn encode_dense(&self, out: &mut Vec<u8>) {
        let bits = if self.context.has_frequencies { self.frequency_bits() } else { 0 };
        let layout = DenseLayout {
            postings: self.postings.len(),
            documents: self.context.documents as usize,
            exceptions: if bits > 0 { self.exceptions(bits) } else { 0 },
            frequency_bits: usize::from(bits),
            has_impacts: self.context.has_impacts,
        };
        let mut list =
            DenseList { layout, bytes: vec![0; layout.end()], exceptions: 0, strongest: Strongest::default() };
        list.put_u32(0, layout.postings as u32);
        list.put_u32(MARK_AT, DENSE_MARK + u32::from(bits));
        list.put_u32(EXCEPTIONS_AT, layout.exceptions as u32);
        for (number, postings) in self.postings.chunks(BLOCK).enumerate() {
            let columns = self.columns(postings);
            let saturations = self.saturations(postings);
            for (i, saturation) in saturations[..postings.len()].iter().enumerate() {
                list.put((number * BLOCK + i) as u32, &columns, i, *saturation);
            }
            list.strongest.add(&self.context, &columns, &saturations, postings.len());
        }
        list.put_ranks();
        list.strongest.write(&mut list.bytes);
        out.append(&mut list.bytes);
    }

    /// The width of frequencies, in bits, that makes the list smallest.
    fn frequency_bits(&self) -> u8 {
        let bytes = |bits: &u8| self.postings.len() * usize::from(*bits) / 8 + 8 * self.exceptions(*bits);
        FREQUENCY_BITS.into_iter().min_by_key(bytes).unwrap_or(FREQUENCY_BITS[0])
    }

    /// The number of frequencies that do not fit in `bits` bits.
    fn exceptions(&self, bits: u8) -> usize {
        self.postings.iter().filter(|posting| posting.frequency >> bits > 0).count()
    }
}

/// A dense list being encoded.
struct DenseList {
    layout: DenseLayout,
    bytes: Vec<u8>,
    /// Exceptions so far.
    exceptions: usize,
    strongest: Strongest,
}

impl DenseList {
    fn put_u32(&mut self, at: usize, number: u32) {
        self.bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }

    fn raise_u8(&mut self, at: usize, bound: u8) {
        self.bytes[at] = self.bytes[at].max(bound);
    }

    /// Writes the posting with a rank, which is number `i` of its block.
    fn put(&mut self, rank: u32, columns: &BlockColumns, i: usize, saturation: f32) {
        let layout = self.layout;
        let document = columns.documents[i];
        let (chunk, window) = ((document / CHUNK) as usize, (document / WINDOW) as usize);
        self.bytes[layout.words() + (document / 8) as usize] |= 1 << (document % 8);
        if layout.frequency_bits > 0 {
            self.put_frequency(rank, columns.frequencies[i]);
            self.raise_u8(layout.chunk_saturation() + chunk, chunk_saturation_code(saturation));
            let at = layout.window_saturation() + 2 * window;
            let bound = u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]).max(saturation_code(saturation));
            self.bytes[at..at + 2].copy_from_slice(&bound.to_le_bytes());
        }
        if layout.has_impacts {
            let impact = columns.impacts[i] as u8;
            self.bytes[layout.impacts() + rank as usize] = impact;
            self.raise_u8(layout.chunk_impact() + chunk, impact);
            self.raise_u8(layout.window_impact() + window, impact);
        }
    }

    fn put_frequency(&mut self, rank: u32, frequency: u32) {
        let layout = self.layout;
        if frequency >> layout.frequency_bits > 0 {
            self.put_u32(layout.exception_rank() + 4 * self.exceptions, rank);
            self.put_u32(layout.exception_frequency() + 4 * self.exceptions, frequency);
            self.exceptions += 1;
            return;
        }
        let bit = rank as usize * layout.frequency_bits;
        self.bytes[layout.frequencies() + bit / 8] |= (frequency << (bit % 8)) as u8;
    }

    /// Writes the ranks of windows and of chunks.
    fn put_ranks(&mut self) {
        let layout = self.layout;
        let (mut rank, mut window_rank) = (0u32, 0u32);
        for chunk in 0..layout.chunks() {
            if (chunk as u32 * CHUNK).is_multiple_of(WINDOW) {
                window_rank = rank;
                self.put_u32(layout.window_rank() + 4 * (chunk as u32 * CHUNK / WINDOW) as usize, rank);
            }
            let at = layout.chunk_rank() + 2 * chunk;
            self.bytes[at..at + 2].copy_from_slice(&((rank - window_rank) as u16).to_le_bytes());
            let word = &self.bytes[layout.words() + 8 * chunk..][..8];
            rank += word.iter().map(|byte| byte.count_ones()).sum::<u32>();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::invert::pack_postings;
    use super::super::list::Weighing;
    use super::super::numbering::Numbering;
    use super::*;
    use crate::codec::Codecs;
    use crate::format::varint;
    use crate::open::{Column, List, ListContext};
    use crate::weight::{Bm25, Norms, chunk_saturation_of, saturation, saturation_of};
    use proptest::prelude::*;

    /// A list with what it was made from and its bytes.
    struct Made {
        context: ListContext,
        postings: Vec<(u32, u32)>,
        impacts: Vec<u32>,
        norms: Norms,
        length_codes: Vec<u8>,
        bytes: Vec<u8>,
    }

    impl Made {
        fn new(documents: u32, postings: Vec<(u32, u32)>, has_frequencies: bool, has_impacts: bool) -> Made {
            let codecs = Codecs::default();
            let context = ListContext { codecs, has_frequencies, has_impacts, has_dense: true, documents };
            let norms = Bm25::default().norms(30.0);
            let length_codes: Vec<u8> = (0..documents).map(|document| (document % 61) as u8).collect();
            let weighing = Weighing { norms: &norms, length_codes: &length_codes, learned: false, impact_scale: 90.0 };
            let mut encoder = ListEncoder::new(context, weighing, Numbering { dropped: &[], numbers: None });
            let (mut packed, mut pieces) = (Vec::new(), Vec::new());
            pack_postings(&postings, &mut packed);
            varint::write(0, &mut pieces);
            varint::write(packed.len() as u64, &mut pieces);
            pieces.extend(packed);
            encoder.read(postings.len() as u32, &pieces).unwrap();
            let impacts = encoder.impacts().map(|(_, impact)| impact).collect();
            let mut bytes = Vec::new();
            encoder.encode_dense(&mut bytes);
            Made { context, postings, impacts, norms, length_codes, bytes }
        }

        fn list(&self) -> List<'_> {
            List::long(&self.context, &self.bytes).unwrap()
        }

        fn layout(&self) -> DenseLayout {
            let number = |at: usize| u32::from_le_bytes(self.bytes[at..at + 4].try_into().unwrap());
            DenseLayout {
                postings: self.postings.len(),
                documents: self.context.documents as usize,
                exceptions: number(EXCEPTIONS_AT) as usize,
                frequency_bits: (number(MARK_AT) - DENSE_MARK) as usize,
                has_impacts: self.context.has_impacts,
            }
        }

        fn saturation(&self, document: u32, frequency: u32) -> f32 {
            saturation(frequency, self.norms.of(self.length_codes[document as usize]))
        }

        /// The value of the posting with a rank; 1 if the column is not stored.
        fn value(&self, column: Column, rank: usize) -> u32 {
            match column {
                Column::Frequency if self.context.has_frequencies => self.postings[rank].1,
                Column::Impact if self.context.has_impacts => self.impacts[rank],
                Column::Frequency | Column::Impact => 1,
            }
        }

        fn verified(&self) -> Result<(), &'static str> {
            let Some(list) = List::long(&self.context, &self.bytes) else {
                return Err("not a list");
            };
            let documents = self.context.documents;
            list.dense().unwrap().verify(documents, list.postings(), |column, document, value| match column {
                Column::Frequency => chunk_saturation_code(self.saturation(document, value)),
                Column::Impact => value as u8,
            })
        }

        /// Looks up every document, and some beyond the last.
        fn check_lookups(&self) {
            let (list, mut rank) = (self.list(), 0);
            let dense = list.dense().unwrap();
            for document in 0..self.context.documents + 200 {
                let is_posting = self.postings.get(rank).is_some_and(|posting| posting.0 == document);
                assert_eq!(dense.find(document), is_posting.then_some(rank as u32), "document {document}");
                if document.is_multiple_of(CHUNK) && document < self.context.documents {
                    assert_eq!(dense.rank((document / CHUNK) as usize), rank as u32);
                }
                if is_posting {
                    for column in [Column::Frequency, Column::Impact] {
                        assert_eq!(dense.value(column, rank as u32), self.value(column, rank), "document {document}");
                    }
                    rank += 1;
                }
            }
            assert_eq!(rank, self.postings.len());
        }

        /// Reads the list block by block.
        fn check_blocks(&self) {
            let (list, mut rank) = (self.list(), 0);
            assert_eq!(list.blocks(), (self.context.documents as usize).div_ceil(BLOCK));
            for block in 0..list.blocks() {
                let (mut documents, mut weights) = ([0; BLOCK], [0; BLOCK]);
                let count = list.decode_documents(block, &mut documents);
                let end = rank + self.postings[rank..].partition_point(|posting| posting.0 as usize / BLOCK <= block);
                let expected: Vec<u32> = self.postings[rank..end].iter().map(|posting| posting.0).collect();
                assert_eq!(documents[..count], expected, "block {block}");
                for column in [Column::Frequency, Column::Impact] {
                    assert_eq!(list.decode_values(column, block, &mut weights), count);
                    for (i, &weight) in weights[..count].iter().enumerate() {
                        let value = self.value(column, rank + i);
                        assert_eq!((weight, list.value_at(column, block, i)), (value, value), "block {block}");
                    }
                    let (dense, mut values) = (list.dense().unwrap(), [0; BLOCK]);
                    dense.values_of(column, &documents[..count], &mut values);
                    assert_eq!(values[..count], weights[..count], "block {block}");
                }
                for &document in &documents[..count] {
                    assert!(document <= list.last_document(block));
                    assert_eq!(list.find_block(0, document), block);
                }
                rank = end;
            }
        }

        /// Compares the bounds of chunks and windows with the largest weight there, or 0.
        fn check_bounds(&self) {
            let list = self.list();
            let dense = list.dense().unwrap();
            let largest = |in_part: &dyn Fn(u32) -> bool| {
                let inside = self.postings.iter().enumerate().filter(|(_, posting)| in_part(posting.0));
                inside.fold((0.0f32, 0), |(saturation, impact), (rank, &(document, frequency))| {
                    (saturation.max(self.saturation(document, frequency)), impact.max(self.impacts[rank]))
                })
            };
            for chunk in 0..dense.chunks() {
                let (saturation, impact) = largest(&|document| (document / CHUNK) as usize == chunk);
                let code = dense.chunk_saturations().get(chunk).copied();
                assert_eq!(code, self.context.has_frequencies.then(|| chunk_saturation_code(saturation)));
                assert!(code.is_none_or(|code| chunk_saturation_of(code) >= saturation));
                let bound = dense.chunk_impacts().get(chunk).map(|&bound| u32::from(bound));
                assert_eq!(bound, self.context.has_impacts.then_some(impact));
                assert!(!self.context.has_frequencies || list.saturation_bound(chunk / 2..chunk / 2 + 1) >= saturation);
                assert!(list.impact_bound(chunk / 2) >= impact || !self.context.has_impacts);
            }
            for window in 0..self.context.windows() {
                let (saturation, impact) = largest(&|document| (document / WINDOW) as usize == window);
                let bound = saturation_of(saturation_code(saturation));
                assert_eq!(
                    list.window_saturation_bound(window),
                    if self.context.has_frequencies { bound } else { 1.0 }
                );
                assert_eq!(list.window_impact_bound(window), if self.context.has_impacts { impact } else { 255 });
            }
        }
    }

    /// About one in `every` documents, with random frequencies; one in nine of them is up to `most`, the others up to
    /// 3.
    fn postings(documents: u32, every: u32, seed: u32, most: u32) -> Vec<(u32, u32)> {
        let draw = |document: u32, salt: u32| (document ^ salt).wrapping_mul(0x9E37_79B1).rotate_left(13) ^ seed;
        let mut postings = Vec::new();
        for document in 0..documents {
            if draw(document, 1).wrapping_mul(0x85EB_CA6B) % every == 0 {
                let random = draw(document, 2).wrapping_mul(0xC2B2_AE35);
                let frequency = if random % 9 == 0 { random / 9 % most } else { random / 9 % most.min(3) };
                postings.push((document, frequency + 1));
            }
        }
        postings
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_dense_list_holds_what_a_vector_holds(
            documents in prop_oneof![3 => 1u32..700, 1 => 32_700u32..32_900, 1 => 65_400u32..65_700],
            every in prop_oneof![Just(1u32), Just(2), Just(8), Just(32)],
            most in prop_oneof![Just(1u32), Just(3), Just(4), Just(15), Just(17), Just(255), Just(257), Just(u32::MAX)],
            seed: u32, columns in prop_oneof![Just((true, true)), Just((true, false)), Just((false, true))],
        ) {
            let made = Made::new(documents, postings(documents, every, seed, most), columns.0, columns.1);
            made.check_lookups();
            made.check_blocks();
            if documents < 700 {
                made.check_bounds();
            }
            prop_assert_eq!(made.verified(), Ok(()));
            prop_assert!(every > 1 || made.postings.len() == documents as usize);
        }

        #[test]
        fn any_bytes_are_a_dense_list_or_none_and_never_a_panic(
            at in any::<prop::sample::Index>(), byte: u8, cut in any::<prop::sample::Index>(), is_cut: bool,
        ) {
            let mut made = Made::new(500, postings(500, 2, 7, 300), true, true);
            let at = at.index(made.bytes.len());
            made.bytes[at] = byte;
            if is_cut {
                made.bytes.truncate(cut.index(made.bytes.len()));
            }
            let Some(list) = List::long(&made.context, &made.bytes) else { return Ok(()) };
            let Some(dense) = list.dense() else { return Ok(()) };
            for document in 0..700 {
                let rank = dense.find(document).unwrap_or(document);
                let values = [Column::Frequency, Column::Impact].map(|column| dense.value(column, rank));
                let _ = (dense.find(document), values);
            }
            for block in 0..list.blocks() + 2 {
                let mut buffer = [0; BLOCK];
                list.decode_documents(block, &mut buffer);
                list.decode_values(Column::Frequency, block, &mut buffer);
                let _ = (list.saturation_bound(block..block + 1), list.impact_bound(block));
                let _ = list.value_at(Column::Impact, block, 127);
            }
            let _ = made.verified();
        }
    }

    #[test]
    fn a_bit_outside_the_collection_is_found() {
        let mut made = Made::new(500, postings(500, 2, 7, 300), true, true);
        let last_word = made.layout().words() + 8 * (500 / CHUNK as usize);
        made.bytes[last_word + 7] |= 0x80;
        assert_eq!(made.verified(), Err("a document is outside the collection"));
    }

    #[test]
    fn bounds_are_those_of_chunks_and_windows_across_the_border_of_a_window() {
        // Nothing in the middle: many chunks, and all of the second window but its end, are empty.
        let near = |document: &u32| *document < 300 || *document > 65_450;
        let some = (0..70_000).filter(near).map(|document| (document, document % 23 + 1)).collect();
        let made = Made::new(70_000, some, true, true);
        made.check_lookups();
        made.check_blocks();
        made.check_bounds();
        assert_eq!(made.verified(), Ok(()));
    }

    #[test]
    fn frequencies_take_the_bits_that_make_the_list_smallest() {
        for (frequencies, bits, exceptions) in [
            ([1, 3], 2, 0),
            ([1, 4], 4, 0),
            ([15, 15], 4, 0),
            ([16, 1], 8, 0),
            ([255, 255], 8, 0),
            ([256, 256], 2, 1000),
            ([u32::MAX, u32::MAX], 2, 1000),
        ] {
            let made = Made::new(1000, (0..1000).map(|d| (d, frequencies[d as usize % 2])).collect(), true, false);
            let layout = made.layout();
            assert_eq!((layout.frequency_bits, layout.exceptions), (bits, exceptions), "{frequencies:?}");
            made.check_lookups();
            assert_eq!(made.verified(), Ok(()));
        }
        // A few that do not fit become exceptions: two more bits for each of the 1,000 would take more space.
        let made = Made::new(1000, (0..1000).map(|d| (d, if d % 400 == 7 { 4 } else { 2 })).collect(), true, false);
        assert_eq!((made.layout().frequency_bits, made.layout().exceptions), (2, 3));
    }

    /// Damages the bytes of a list.
    type Plant = fn(&mut [u8], &DenseLayout);

    #[test]
    fn verification_finds_every_planted_error() {
        let plants: [(&str, Plant); 12] = [
            ("rank of a window", |bytes, layout| bytes[layout.window_rank() + 4] ^= 1),
            ("rank of a chunk", |bytes, layout| bytes[layout.chunk_rank() + 2] ^= 1),
            ("rank of the last chunk", |bytes, layout| bytes[layout.window_saturation() - 2] ^= 1),
            ("a document less", |bytes, layout| bytes[layout.words()] &= bytes[layout.words()] - 1),
            ("saturation bound too high", |bytes, layout| bytes[layout.chunk_saturation() + 3] += 1),
            ("saturation bound too low", |bytes, layout| bytes[layout.chunk_saturation() + 3] -= 1),
            ("impact bound too high", |bytes, layout| bytes[layout.chunk_impact() + 5] += 1),
            ("impact bound too low", |bytes, layout| bytes[layout.chunk_impact() + 5] -= 1),
            ("exceptions out of order", |bytes, layout| {
                let (ranks, frequencies) = (layout.exception_rank(), layout.exception_frequency());
                for i in 0..4 {
                    bytes.swap(ranks + i, ranks + 4 + i);
                    bytes.swap(frequencies + i, frequencies + 4 + i);
                }
            }),
            ("an exception twice", |bytes, layout| {
                bytes.copy_within(layout.exception_rank()..layout.exception_rank() + 4, layout.exception_rank() + 4);
            }),
            ("an exception of a frequency that is packed", |bytes, layout| {
                // The last exception moves to the next posting, whose frequency is packed.
                bytes[layout.exception_frequency() - 4] += 1;
            }),
            ("an exception that its bits would hold", |bytes, layout| {
                bytes[layout.exception_frequency()..layout.exception_frequency() + 4].copy_from_slice(&[1, 0, 0, 0]);
            }),
        ];
        // Frequencies of 1 and 2, and now and then 40: no two exceptions are neighbours.
        let frequency = |document: u32| if document % 200 == 9 { 40 } else { 1 + document % 2 };
        for (name, plant) in plants {
            let mut made = Made::new(40_000, (0..40_000).map(|d| (d, frequency(d))).collect(), true, true);
            assert_eq!(made.verified(), Ok(()));
            let layout = made.layout();
            plant(&mut made.bytes, &layout);
            assert!(made.verified().is_err(), "{name}");
        }
    }
}
