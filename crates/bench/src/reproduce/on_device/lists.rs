//! Lists of an index by their lengths: chosen, decoded on the host, and laid on the device as plain numbers.

use super::Ground;
use crate::error::BenchError;
use crate::scale::random::Random;
use lanner::Index;
use lanner::internals::papers::binary_intersection::last_documents;
use lanner::internals::papers::compaction::DeviceList;
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::Memory;
use lanner_index::codec::BLOCK;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A term with a list that is long enough for a figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// Postings of its list.
    pub postings: u32,
    /// Its number.
    pub number: u64,
    /// The term.
    pub text: String,
}

/// Terms by the lengths of their lists, the shortest first.
#[derive(Debug, Default)]
pub struct Lists {
    terms: Vec<Term>,
}

/// A list that lies on the device as plain numbers, and on the host.
pub struct Resident {
    /// Its documents.
    pub documents: Arc<Vec<u32>>,
    /// Where it lies.
    pub list: DeviceList,
    /// The last documents of its blocks.
    pub lasts: Memory,
    _memory: Memory,
}

impl Lists {
    /// The terms of an index that have at least so many postings, without those that the analyzer would change.
    pub fn read(index: &Index, at_least: u32) -> Result<Lists, BenchError> {
        let (segment, mut lists) = (index.segment(), Lists::default());
        let mut terms = segment.terms();
        while let Some((number, text)) = terms.read()? {
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

    /// The terms whose lists have a length of a range.
    pub fn within(&self, lengths: Range<u32>) -> &[Term] {
        let place = |length: u32| self.terms.partition_point(|term| term.postings < length);
        &self.terms[place(lengths.start)..place(lengths.end)]
    }

    /// Up to so many of them, spread over all.
    pub fn some(&self, lengths: Range<u32>, wanted: usize) -> Vec<Term> {
        crate::query_log::spread(self.within(lengths), wanted)
    }

    /// Up to so many pairs: a longer list of a length in a range, a shorter one by a factor in a range, drawn at random.
    pub fn pairs(&self, longer: Range<u32>, ratio: Range<u32>, wanted: usize) -> Vec<[Term; 2]> {
        let mut random = Random::new(u64::from(longer.start), u64::from(ratio.start));
        let all = self.within(longer);
        let mut pairs = Vec::new();
        // A term for which there is no shorter one is drawn in vain.
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

    /// Two different lists of at least so many postings, the shortest that there are.
    pub fn two_of_at_least(&self, length: u32) -> Option<[Term; 2]> {
        let place = self.terms.partition_point(|term| term.postings < length);
        self.terms.get(place..place + 2).map(|two| [two[0].clone(), two[1].clone()])
    }
}

impl Ground {
    /// Decodes lists on all threads.
    pub fn decode(&self, numbers: &[u64]) -> Result<Vec<Arc<Vec<u32>>>, BenchError> {
        let index = &*self.index;
        self.map(numbers, |&number| decode(index, number).map(Arc::new))
    }

    /// Does something for each on all threads.
    pub fn map<T: Sync, R: Send>(
        &self,
        things: &[T],
        work: impl Fn(&T) -> Result<R, BenchError> + Sync,
    ) -> Result<Vec<R>, BenchError> {
        let next = AtomicUsize::new(0);
        let worker = || {
            let mut done = Vec::new();
            while let Some((number, thing)) = {
                let number = next.fetch_add(1, Ordering::Relaxed);
                things.get(number).map(|thing| (number, thing))
            } {
                done.push((number, work(thing)?));
            }
            Ok::<_, BenchError>(done)
        };
        let mut all = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..self.threads.max(1)).map(|_| scope.spawn(worker)).collect();
            let mut all = Vec::new();
            for worker in workers {
                all.extend(worker.join().expect("a worker does not panic")?);
            }
            Ok::<_, BenchError>(all)
        })?;
        all.sort_by_key(|(number, _)| *number);
        Ok(all.into_iter().map(|(_, result)| result).collect())
    }

    /// Lays a list on the device.
    pub fn lay(&self, documents: Arc<Vec<u32>>) -> Result<Resident, GpuError> {
        let memory = self.upload(&bytes_of(&documents))?;
        let lasts = self.upload(&bytes_of(&last_documents(&documents)))?;
        let list = DeviceList { documents: memory.address(), length: documents.len() as u32 };
        Ok(Resident { documents, list, lasts, _memory: memory })
    }
}

/// All documents of a list.
fn decode(index: &Index, number: u64) -> Result<Vec<u32>, BenchError> {
    let list = index.segment().list(number)?;
    let mut documents = Vec::with_capacity(list.postings() as usize);
    let mut buffer = [0; BLOCK];
    for block in 0..list.blocks() {
        let count = list.decode_documents(block, &mut buffer);
        documents.extend_from_slice(&buffer[..count]);
    }
    Ok(documents)
}

/// Numbers as a device reads them.
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
    fn two_lists_are_the_shortest_that_are_long_enough() {
        let lists = lists(&[3, 10, 11, 40]);
        assert_eq!(lists.two_of_at_least(4).map(|two| two.map(|term| term.postings)), Some([10, 11]));
        assert_eq!(lists.two_of_at_least(12), None);
    }

    #[test]
    fn numbers_are_little_endian() {
        assert_eq!(bytes_of(&[1, 0x0102_0304]), [1, 0, 0, 0, 4, 3, 2, 1]);
    }
}
