//! Codecs: how a block of up to 128 postings lies in the file, one file for each.
//!
//! A codec stores the two streams of a block. *Documents* are strictly increasing and none is below `base`, the
//! document after the last one of the block before. *Values* are frequencies or impacts, all at least 1.
//! One byte for each stream and block, kept in the list's directory, tells the decoder how the stream was packed and
//! how long it is; it means something to its codec alone.
//!
//! A decoder reads nothing but the bytes it is given, and whatever they hold, it returns: with damaged bytes the
//! numbers are wrong (`verify` tells), but nothing panics.

mod bitpack;
pub mod qmx;
#[cfg(target_arch = "x86_64")]
mod qmx_simd;
mod raw;

use std::fmt;
use std::str::FromStr;

/// Postings in a full block.
pub const BLOCK: usize = 128;

/// Packs and unpacks the streams of one block.
pub trait Codec: Send + Sync {
    /// Appends the documents, of which there are 1 to [`BLOCK`], and returns the directory byte.
    fn encode_documents(&self, base: u32, documents: &[u32], out: &mut Vec<u8>) -> u8;

    /// Fills `documents`, whose length is the number of postings, from a stream that starts at `bytes[0]`.
    fn decode_documents(&self, byte: u8, bytes: &[u8], base: u32, documents: &mut [u32]);

    /// Appends the values, of which there are 1 to [`BLOCK`], and returns the directory byte.
    fn encode_values(&self, values: &[u32], out: &mut Vec<u8>) -> u8;

    /// Fills `values`, whose length is the number of postings, from a stream that starts at `bytes[0]`.
    fn decode_values(&self, byte: u8, bytes: &[u8], values: &mut [u32]);

    /// Bytes of a stream of `count` postings with this directory byte.
    fn length(&self, byte: u8, count: usize) -> usize;
}

/// The codecs by name; the number is the tag in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum CodecName {
    /// Four bytes a number, as they are.
    Raw = 1,
    /// Gaps in as many bits as the largest of the block needs.
    Bitpack = 2,
    // 3 elias-fano, 4 pfor and 5 rice are taken: see docs/format.md.
    /// Gaps in words of 128 bits, each word with a width of its own.
    Qmx = 6,
}

impl CodecName {
    /// Every codec, in the order of their tags.
    pub const ALL: [CodecName; 3] = [CodecName::Raw, CodecName::Bitpack, CodecName::Qmx];

    /// The codec of a tag found in a file.
    pub fn from_tag(tag: u8) -> Option<CodecName> {
        Self::ALL.into_iter().find(|&name| name as u8 == tag)
    }

    /// What packs and unpacks.
    pub fn codec(self) -> &'static dyn Codec {
        match self {
            CodecName::Raw => &raw::Raw,
            CodecName::Bitpack => &bitpack::Bitpack,
            CodecName::Qmx => &qmx::Qmx,
        }
    }
}

impl fmt::Display for CodecName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CodecName::Raw => "raw",
            CodecName::Bitpack => "bitpack",
            CodecName::Qmx => "qmx",
        })
    }
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
    "unknown codec {0:?}; the codecs are raw, bitpack and qmx, for both streams (--codec bitpack) or each (--codec documents=raw,weights=bitpack)"
)]
pub struct UnknownCodec(String);

impl FromStr for CodecName {
    type Err = UnknownCodec;

    fn from_str(name: &str) -> Result<Self, UnknownCodec> {
        let known = Self::ALL.into_iter().find(|codec| codec.to_string() == name);
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
                let mut bytes = vec![0xAB; 3];
                let byte = name.codec().encode_documents(base, &documents, &mut bytes);
                prop_assert_eq!(name.codec().length(byte, documents.len()), bytes.len() - 3, "{}", name);
                let mut decoded = vec![0; documents.len()];
                name.codec().decode_documents(byte, &bytes[3..], base, &mut decoded);
                prop_assert_eq!(&decoded, &documents, "{}", name);
            }
        }

        #[test]
        fn every_codec_returns_the_values_it_was_given(values in prop::collection::vec(
            prop_oneof![4 => 1u32..4, 2 => 1u32..300, 1 => 1u32..], 1..=BLOCK,
        )) {
            for name in CodecName::ALL {
                let mut bytes = Vec::new();
                let byte = name.codec().encode_values(&values, &mut bytes);
                prop_assert_eq!(name.codec().length(byte, values.len()), bytes.len(), "{}", name);
                let mut decoded = vec![0; values.len()];
                name.codec().decode_values(byte, &bytes, &mut decoded);
                prop_assert_eq!(&decoded, &values, "{}", name);
            }
        }

        #[test]
        fn no_codec_panics_on_any_bytes(byte: u8, bytes: Vec<u8>, base: u32, count in 1..=BLOCK) {
            for name in CodecName::ALL {
                let mut numbers = vec![0; count];
                name.codec().decode_documents(byte, &bytes, base, &mut numbers);
                name.codec().decode_values(byte, &bytes, &mut numbers);
                name.codec().length(byte, count);
            }
        }
    }

    #[test]
    fn a_list_of_the_largest_document_alone_survives() {
        for name in CodecName::ALL {
            for documents in [vec![u32::MAX], vec![0, u32::MAX], vec![u32::MAX - 1, u32::MAX]] {
                let mut bytes = Vec::new();
                let byte = name.codec().encode_documents(0, &documents, &mut bytes);
                let mut decoded = vec![0; documents.len()];
                name.codec().decode_documents(byte, &bytes, 0, &mut decoded);
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
