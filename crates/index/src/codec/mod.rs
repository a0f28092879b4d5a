//! Codecs: how a block of up to 128 postings lies in the file, one file for each.
//!
//! A codec stores the two streams of a block. *Documents* are strictly increasing and none is below `base`, the
//! document after the last one of the block before. *Values* are frequencies or impacts, all at least 1.
//! One byte for each stream and block, kept in the list's directory, tells the decoder how the stream was packed and
//! how long it is, where its bytes do not; it means something to its codec alone.
//!
//! A decoder reads nothing but the bytes it is given, and whatever they hold, it returns: with damaged bytes the
//! numbers are wrong (`verify` tells), but nothing panics.

mod bitpack;
mod elias_fano;
mod lanes;
mod pfor;
mod pfor_block;
pub mod qmx;
#[cfg(target_arch = "x86_64")]
mod qmx_simd;
mod raw;
mod rice;
#[cfg(target_arch = "x86_64")]
mod simd;
mod unary;

use lanes::Kernels;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

/// Postings in a full block.
pub const BLOCK: usize = 128;

/// A stream of one block as it lies in the file.
#[derive(Clone, Copy)]
pub struct Packed<'a> {
    /// The directory byte.
    pub byte: u8,
    /// From the first byte of the stream at least to its last.
    pub bytes: &'a [u8],
    /// What the codec keeps for all blocks of the list together; empty for a list of one unfinished block.
    pub shared: &'a [u8],
    /// Which block of the list this is.
    pub block: usize,
}

impl<'a> Packed<'a> {
    /// The stream of a list that has just one.
    pub fn alone(byte: u8, bytes: &'a [u8]) -> Packed<'a> {
        Packed { byte, bytes, shared: &[], block: 0 }
    }
}

/// Packs and unpacks the streams of one block.
pub trait Codec: Send + Sync {
    /// Fills `shared`, which is empty, with what the blocks of a list share, before they are encoded; with nothing, for
    /// most codecs. The numbers are those of the whole list: the gaps of its documents, or its values less 1.
    fn encode_shared(&self, _numbers: &mut dyn Iterator<Item = u32>, _shared: &mut Vec<u8>) {}

    /// Appends the documents, of which there are 1 to [`BLOCK`], and returns the directory byte.
    fn encode_documents(&self, shared: &[u8], base: u32, documents: &[u32], out: &mut Vec<u8>) -> u8;

    /// Fills `documents`, whose length is the number of postings.
    fn decode_documents(&self, packed: Packed, base: u32, documents: &mut [u32]);

    /// Appends the values, of which there are 1 to [`BLOCK`], and returns the directory byte.
    fn encode_values(&self, shared: &[u8], values: &[u32], out: &mut Vec<u8>) -> u8;

    /// Fills `values`, whose length is the number of postings.
    fn decode_values(&self, packed: Packed, values: &mut [u32]);

    /// Value `index` of a stream of `count`, without decoding the others where the layout allows it.
    fn value_at(&self, packed: Packed, count: usize, index: usize) -> u32 {
        let mut values = [0; BLOCK];
        self.decode_values(packed, &mut values[..count]);
        values[index]
    }

    /// Bytes of a stream of `count` postings.
    fn length(&self, packed: Packed, count: usize) -> usize;
}

/// Makes [`CodecName`] from a table with one row for each codec: name, tag, name in text, what packs and unpacks.
macro_rules! codecs {
    ($($(#[$docs:meta])* $name:ident = $tag:literal, $text:literal, $codec:expr;)*) => {
        /// The codecs by name; the number is the tag in the file.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[repr(u8)]
        pub enum CodecName {
            $($(#[$docs])* $name = $tag,)*
        }

        impl CodecName {
            /// Every codec, in the order of their tags.
            pub const ALL: [CodecName; [$($tag),*].len()] = [$(CodecName::$name),*];

            /// What packs and unpacks: in the form that is fastest on this processor.
            pub fn codec(self) -> &'static dyn Codec {
                match self {
                    $(CodecName::$name => $codec,)*
                }
            }

            fn text(self) -> &'static str {
                match self {
                    $(CodecName::$name => $text,)*
                }
            }
        }
    };
}

codecs! {
    /// Four bytes a number, as they are.
    Raw = 1, "raw", &raw::Raw;
    /// Gaps in as many bits as the largest of the block needs.
    Bitpack = 2, "bitpack", &*BITPACK;
    /// Sums of gaps, low bits apart, high bits in unary.
    EliasFano = 3, "elias-fano", &*ELIAS_FANO;
    /// Most gaps in few bits, one width for the list.
    Pfor = 4, "pfor", &*PFOR;
    /// Quotients of gaps in unary, remainders apart.
    Rice = 5, "rice", &*RICE;
    /// Gaps in words of 128 bits, each word with a width of its own.
    Qmx = 6, "qmx", &qmx::Qmx;
    /// Most gaps in few bits, a width for each block.
    PforBlock = 7, "pfor-block", &*PFOR_BLOCK;
}

static BITPACK: LazyLock<bitpack::Bitpack> = LazyLock::new(|| bitpack::Bitpack::new(Kernels::best()));
static ELIAS_FANO: LazyLock<elias_fano::EliasFano> = LazyLock::new(|| elias_fano::EliasFano::new(Kernels::best()));
static PFOR: LazyLock<pfor::Pfor> = LazyLock::new(|| pfor::Pfor::new(Kernels::best()));
static PFOR_BLOCK: LazyLock<pfor_block::PforBlock> = LazyLock::new(|| pfor_block::PforBlock::new(Kernels::best()));
static RICE: LazyLock<rice::Rice> = LazyLock::new(|| rice::Rice::new(Kernels::best()));

impl CodecName {
    /// All names, for a message.
    pub fn names() -> String {
        Self::ALL.map(CodecName::text).join(", ")
    }

    /// The codec of a tag found in a file.
    pub fn from_tag(tag: u8) -> Option<CodecName> {
        Self::ALL.into_iter().find(|&name| name as u8 == tag)
    }
}

impl fmt::Display for CodecName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// The gaps of documents: each less the one after its predecessor, the first less the base.
fn gaps_of(base: u32, documents: &[u32]) -> [u32; BLOCK] {
    let mut gaps = [0; BLOCK];
    let mut next = base;
    for (gap, &document) in gaps.iter_mut().zip(documents) {
        *gap = document - next;
        next = document.wrapping_add(1);
    }
    gaps
}

/// Values as they are packed: each less 1.
fn less_one(values: &[u32]) -> [u32; BLOCK] {
    let mut numbers = [0; BLOCK];
    for (number, &value) in numbers.iter_mut().zip(values) {
        *number = value - 1;
    }
    numbers
}

/// The codecs of an index: one for documents, one for weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Codecs {
    /// The codec of document numbers.
    pub documents: CodecName,
    /// The codec of frequencies and impacts.
    pub weights: CodecName,
}

impl Default for Codecs {
    fn default() -> Self {
        Codecs { documents: CodecName::Bitpack, weights: CodecName::Bitpack }
    }
}

/// The name of a codec that there is not.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown codec {0:?}; the codecs are {names}, for both streams (--codec bitpack) or each (--codec documents=raw,weights=bitpack)",
    names = CodecName::names()
)]
pub struct UnknownCodec(String);

impl FromStr for CodecName {
    type Err = UnknownCodec;

    fn from_str(name: &str) -> Result<Self, UnknownCodec> {
        let known = Self::ALL.into_iter().find(|codec| codec.text() == name);
        known.ok_or_else(|| UnknownCodec(name.to_owned()))
    }
}

impl FromStr for Codecs {
    type Err = UnknownCodec;

    /// One name for both streams, or `documents=NAME,weights=NAME` (a stream left out keeps its default).
    fn from_str(text: &str) -> Result<Self, UnknownCodec> {
        if !text.contains('=') {
            let name = text.parse()?;
            return Ok(Codecs { documents: name, weights: name });
        }
        let mut codecs = Codecs::default();
        for part in text.split(',') {
            match part.split_once('=') {
                Some(("documents", name)) => codecs.documents = name.parse()?,
                Some(("weights", name)) => codecs.weights = name.parse()?,
                _ => return Err(UnknownCodec(part.to_owned())),
            }
        }
        Ok(codecs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Values of very different sizes.
    fn values(most: usize) -> impl Strategy<Value = Vec<u32>> {
        let mixed = prop_oneof![4 => 1u32..4, 2 => 1u32..300, 1 => 1u32..];
        let small = prop_oneof![20 => 1u32..4, 1 => 1u32..300];
        prop_oneof![
            prop::collection::vec(mixed, 1..=most),
            prop::collection::vec(small, 1..=most),
            prop::collection::vec(Just(1), 1..=most),
        ]
    }

    /// Strictly increasing documents from `base`, with gaps of very different sizes.
    fn documents() -> impl Strategy<Value = (u32, Vec<u32>)> {
        let gap = prop_oneof![3 => 0u32..3, 2 => 0u32..500, 1 => 0u32..10_000_000];
        (0u32..1_000_000_000, prop::collection::vec(gap, 1..=BLOCK)).prop_map(|(base, gaps)| {
            let mut next = base;
            let documents = gaps.iter().map(|gap| {
                let document = next + gap;
                next = document + 1;
                document
            });
            (base, documents.collect())
        })
    }

    proptest! {
        #[test]
        fn every_codec_returns_the_documents_it_was_given((base, documents) in documents()) {
            for name in CodecName::ALL {
                let codec = name.codec();
                let mut bytes = vec![0xAB; 3];
                let byte = codec.encode_documents(&[], base, &documents, &mut bytes);
                let packed = Packed::alone(byte, &bytes[3..]);
                prop_assert_eq!(codec.length(packed, documents.len()), bytes.len() - 3, "{}", name);
                let mut decoded = vec![0; documents.len()];
                codec.decode_documents(packed, base, &mut decoded);
                prop_assert_eq!(&decoded, &documents, "{}", name);
            }
        }

        #[test]
        fn every_codec_returns_the_values_it_was_given(values in values(BLOCK)) {
            for name in CodecName::ALL {
                let codec = name.codec();
                let mut bytes = Vec::new();
                let byte = codec.encode_values(&[], &values, &mut bytes);
                let packed = Packed::alone(byte, &bytes);
                prop_assert_eq!(codec.length(packed, values.len()), bytes.len(), "{}", name);
                let mut decoded = vec![0; values.len()];
                codec.decode_values(packed, &mut decoded);
                prop_assert_eq!(&decoded, &values, "{}", name);
                for (index, &value) in values.iter().enumerate() {
                    prop_assert_eq!(codec.value_at(packed, values.len(), index), value, "{}", name);
                }
            }
        }

        #[test]
        fn every_codec_returns_a_list_of_many_blocks(values in values(5 * BLOCK)) {
            for name in CodecName::ALL {
                let codec = name.codec();
                let mut shared = Vec::new();
                codec.encode_shared(&mut values.iter().map(|value| value - 1), &mut shared);
                for (block, values) in values.chunks(BLOCK).enumerate() {
                    let mut bytes = Vec::new();
                    let byte = codec.encode_values(&shared, values, &mut bytes);
                    let packed = Packed { byte, bytes: &bytes, shared: &shared, block };
                    prop_assert_eq!(codec.length(packed, values.len()), bytes.len(), "{}", name);
                    let mut decoded = vec![0; values.len()];
                    codec.decode_values(packed, &mut decoded);
                    prop_assert_eq!(&decoded, &values, "{}", name);
                    for (index, &value) in values.iter().enumerate() {
                        prop_assert_eq!(codec.value_at(packed, values.len(), index), value, "{}", name);
                    }
                }
            }
        }

        #[test]
        fn no_codec_panics_on_any_bytes(
            byte in prop_oneof![any::<u8>(), 0u8..66], bytes: Vec<u8>, shared: Vec<u8>, block in 0usize..9, base: u32,
            count in prop_oneof![1 => Just(BLOCK), 2 => 1..=BLOCK],
        ) {
            for name in CodecName::ALL {
                for shared in [&shared[..], &[]] {
                    let packed = Packed { byte, bytes: &bytes, shared, block };
                    let mut numbers = vec![0; count];
                    name.codec().decode_documents(packed, base, &mut numbers);
                    name.codec().decode_values(packed, &mut numbers);
                    name.codec().value_at(packed, count, count - 1);
                    name.codec().length(packed, count);
                }
            }
        }
    }

    #[test]
    fn a_list_of_the_largest_document_alone_survives() {
        for name in CodecName::ALL {
            for documents in [vec![u32::MAX], vec![0, u32::MAX], vec![u32::MAX - 1, u32::MAX]] {
                let mut bytes = Vec::new();
                let byte = name.codec().encode_documents(&[], 0, &documents, &mut bytes);
                let mut decoded = vec![0; documents.len()];
                name.codec().decode_documents(Packed::alone(byte, &bytes), 0, &mut decoded);
                assert_eq!(decoded, documents, "{name}");
            }
        }
    }

    #[test]
    fn codecs_are_named_for_both_streams_or_for_each() {
        let both = Codecs { documents: CodecName::Raw, weights: CodecName::Raw };
        assert_eq!("raw".parse(), Ok(both));
        let each = Codecs { documents: CodecName::Raw, weights: CodecName::Bitpack };
        assert_eq!("documents=raw,weights=bitpack".parse(), Ok(each));
        assert_eq!("documents=raw".parse(), Ok(each));
        assert!("zip".parse::<Codecs>().is_err());
        assert!("lists=raw".parse::<Codecs>().is_err());
        for name in CodecName::ALL {
            assert_eq!(CodecName::from_tag(name as u8), Some(name));
            assert_eq!(name.to_string().parse(), Ok(name));
        }
    }
}
