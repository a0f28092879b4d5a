//! Lists of an index: selected by length, decoded on the host, and uploaded as plain numbers.

use super::Setup;
use crate::error::Result;
use crate::experiments::gpu::decode::documents_of;
use crate::query_log::spread;
use crate::scale::random::Random;
use lanner::internals::papers::binary_intersection::last_documents;
use lanner::internals::papers::compaction::DeviceList;
use lanner::internals::papers::selection::Selection;
use lanner::internals::query::answer::Scored;
use lanner::{Index, Plan};
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::Memory;
use lanner_index::codec::BLOCK;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// A term whose list is long enough for a figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    pub postings: u32,
    pub number: u64,
    pub text: String,
}

/// Terms by the lengths of their lists, the shortest first.
#[derive(Debug, Default)]
pub struct Lists {
    terms: Vec<Term>,
}

/// The documents of lists, by the number of their term.
pub type Decoded = BTreeMap<u64, Arc<Vec<u32>>>;

/// A list as plain numbers on host and device.
pub struct Resident {
    pub documents: Arc<Vec<u32>>,
    /// The list in device memory.
    pub list: DeviceList,
    /// The last document of each block, in device memory.
    pub lasts: Memory,
    _memory: Memory,
}

impl Lists {
    /// Reads the terms with at least `at_least` postings, except for those that the analyzer would change.
    pub fn read(index: &Index, at_least: u32) -> Result<Lists> {
        let (segment, mut lists) = (index.segment(), Lists::default());
        let mut terms = segment.terms();
        while let Some((number, text)) = terms.read()? {
            // Short lists are not read unless they are wanted.
            let Some(span) = segment.span(number).filter(|span| span.is_long || at_least < BLOCK as u32) else {
                continue;
            };
            let postings = segment.list_at(span)?.postings();
            if postings >= at_least && index.analyzer().terms(text) == [text] {
                lists.terms.push(Term { postings, number, text: text.to_owned() });
            }
        }
        lists.terms.sort_by_key(|term| (term.postings, term.number));
        Ok(lists)
    }

    /// Returns the terms whose lists have a length in a range.
    fn within(&self, lengths: Range<u32>) -> &[Term] {
        let position = |length: u32| self.terms.partition_point(|term| term.postings < length);
        &self.terms[position(lengths.start)..position(lengths.end)]
    }

    /// Takes up to `wanted` terms with lengths in a range, spread over all.
    pub fn some(&self, lengths: Range<u32>, wanted: usize) -> Vec<Term> {
        spread(self.within(lengths), wanted)
    }

    /// Draws up to `wanted` random pairs: the length of the longer list and the ratio of both lengths are in given
    /// ranges.
    pub fn pairs(&self, longer: Range<u32>, ratio: Range<u32>, wanted: usize) -> Vec<[Term; 2]> {
        let mut random = Random::new(u64::from(longer.start), u64::from(ratio.start));
        let all = self.within(longer);
        let mut pairs = Vec::new();
        // A longer list without a matching shorter one gives no pair, hence more attempts.
        for _ in 0..4 * wanted {
            if all.is_empty() || pairs.len() == wanted {
                break;
            }
            let longer = &all[random.below(all.len() as u32) as usize];
            let most = if ratio.start <= 1 { longer.postings } else { longer.postings / ratio.start };
            let shorter = self.within(longer.postings / ratio.end + 1..most + 1);
            let Some(bound) = u32::try_from(shorter.len()).ok().filter(|&bound| bound > 0) else { continue };
            let shorter = &shorter[random.below(bound) as usize];
            if shorter.number != longer.number {
                pairs.push([shorter.clone(), longer.clone()]);
            }
        }
        pairs
    }

    /// Returns the two shortest lists with at least `length` postings.
    pub fn two_of_at_least(&self, length: u32) -> Option<[Term; 2]> {
        let first = self.terms.partition_point(|term| term.postings < length);
        self.terms.get(first..first + 2).map(|two| [two[0].clone(), two[1].clone()])
    }
}

impl Setup {
    /// Decodes lists, each of them once.
    pub fn decode(&self, numbers: impl IntoIterator<Item = u64>) -> Result<Decoded> {
        let numbers: BTreeSet<u64> = numbers.into_iter().collect();
        let index = &*self.index;
        let decode = |number| Ok((number, Arc::new(documents_of(index, number, usize::MAX)?)));
        numbers.into_par_iter().map(decode).collect()
    }

    /// Uploads a list as plain numbers.
    pub fn upload_list(&self, documents: Arc<Vec<u32>>) -> Result<Resident, GpuError> {
        let memory = self.upload(&bytes_of(&documents))?;
        let lasts = self.upload(&bytes_of(&last_documents(&documents)))?;
        let list = DeviceList { documents: memory.address(), length: documents.len() as u32 };
        Ok(Resident { documents, list, lasts, _memory: memory })
    }
}

/// The hits of a query as keys, on host and device.
pub struct Ranked {
    /// Keys in the order of documents, as an intersection produces them.
    pub keys: Vec<u64>,
    /// The best k keys, best first.
    pub best: Vec<u64>,
    k: usize,
    uploaded: Memory,
}

impl Ranked {
    /// Uploads the keys of all hits, which are given best first.
    pub fn upload(setup: &Setup, hits: &[Scored], k: usize) -> Result<Ranked, GpuError> {
        let key = |hit: &Scored| u64::from(hit.units) << 32 | u64::from(!hit.document.0);
        let mut keys: Vec<u64> = hits.iter().map(key).collect();
        let best = keys[..keys.len().min(k)].to_vec();
        keys.sort_unstable_by_key(|key| !(*key as u32));
        // One more key, since a query may have no hits.
        let bytes: Vec<u8> = keys.iter().chain([&0]).flat_map(|key| key.to_le_bytes()).collect();
        Ok(Ranked { keys, best, k, uploaded: setup.upload(&bytes)? })
    }

    /// The selection of the best k keys on the device.
    pub fn selection(&self) -> Selection {
        Selection { keys: self.uploaded.address(), count: self.keys.len() as u32, k: self.k as u32 }
    }
}

/// Returns the numbers of the lists of a plan.
pub fn list_numbers(plan: &Plan) -> impl Iterator<Item = u64> {
    plan.lists.iter().map(|list| list.id.0)
}

/// Returns numbers as little-endian bytes.
pub fn bytes_of(numbers: &[u32]) -> Vec<u8> {
    let mut bytes = vec![0; 4 * numbers.len()];
    let (words, _) = bytes.as_chunks_mut();
    words.iter_mut().zip(numbers).for_each(|(word, number)| *word = number.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(lengths: &[u32]) -> Lists {
        let term = |(number, &postings): (usize, &u32)| Term { postings, number: number as u64, text: String::new() };
        Lists { terms: lengths.iter().enumerate().map(term).collect() }
    }

    #[test]
    fn pairs_have_the_lengths_and_ratios_that_are_asked_for() {
        let lists = lists(&[3, 10, 11, 40, 90, 100, 150, 199, 200]);
        let pairs = lists.pairs(100..200, 8..16, 20);
        assert_eq!(pairs.len(), 20);
        for [shorter, longer] in pairs {
            assert!((100..200).contains(&longer.postings));
            let ratio = f64::from(longer.postings) / f64::from(shorter.postings);
            assert!((8.0..16.0).contains(&ratio), "{ratio}");
        }
        assert!(lists.pairs(100..200, 1..16, 50).iter().all(|[one, other]| one.number != other.number));
        assert!(lists.pairs(300..400, 1..16, 5).is_empty());
    }

    #[test]
    fn the_two_shortest_lists_that_are_long_enough_are_returned() {
        let lists = lists(&[3, 10, 11, 40]);
        assert_eq!(lists.two_of_at_least(4).map(|two| two.map(|term| term.postings)), Some([10, 11]));
        assert_eq!(lists.two_of_at_least(12), None);
    }

    #[test]
    fn numbers_are_little_endian() {
        assert_eq!(bytes_of(&[1, 0x0102_0304]), [1, 0, 0, 0, 4, 3, 2, 1]);
    }
}
