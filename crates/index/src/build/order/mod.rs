//! The order of documents: that of the input, or one computed from the postings.

mod bisection;
mod buckets;
mod documents;
mod graph;

pub use documents::rearrange;

use super::invert::unpack_pieces;
use super::merge::{Merge, TermBatch};
use super::numbering::renumber;
use super::pipeline::Pipeline;
use super::{BuildError, Collected, Progress};
use crate::attempt::attempt;
use graph::Graph;

/// Terms in fewer documents are left out: there are many of them, and they have little effect on the order.
const MIN_DOCUMENTS: usize = 4;
/// Terms in more than one of this many documents are left out: their gaps are small in any order.
const FREQUENT_SHARE: usize = 16;

/// Orders the kept documents by recursive graph bisection: document `d` gets number `numbers[d]`.
///
/// Postings are read from disk twice, first to count and then to fill, so that the graph is allocated once at its size.
pub fn bisect(collected: &mut Collected<'_>, dropped: &[u32], progress: &dyn Progress) -> Result<Vec<u32>, BuildError> {
    collected.spill_to_read_again()?;
    let documents = collected.documents.count as usize - dropped.len();
    let graph = read_graph(collected, dropped, documents)?;
    let order = bisection::order(graph, collected.options.threads, &|done, total| progress.ordered(done, total));
    let mut numbers = vec![0; documents];
    for (number, document) in order.into_iter().enumerate() {
        numbers[document as usize] = number as u32;
    }
    Ok(numbers)
}

fn read_graph(collected: &Collected<'_>, dropped: &[u32], documents: usize) -> Result<Graph, BuildError> {
    let mut ends = vec![0usize; documents];
    let mut degrees = Vec::new();
    each_list(collected, dropped, documents, |list| {
        degrees.push(list.len() as u32);
        list.iter().for_each(|&document| ends[document as usize] += 1);
    })?;
    // From counts to the starts of rows. Filling a row moves its start to its end.
    let mut edges = 0;
    for end in &mut ends {
        edges += std::mem::replace(end, edges);
    }
    let mut terms: Vec<u32> = Vec::new();
    attempt(|| terms.try_reserve_exact(edges)).map_err(|_| BuildError::OrderMemory { bytes: 6 * edges as u64 })?;
    terms.resize(edges, 0);
    let mut term = 0;
    each_list(collected, dropped, documents, |list| {
        for &document in list {
            let end = &mut ends[document as usize];
            terms[*end] = term;
            *end += 1;
        }
        term += 1;
    })?;
    Ok(Graph::new(ends, terms, degrees))
}

/// The documents of several lists, concatenated, and the end of each list.
#[derive(Default)]
struct DocumentLists {
    documents: Vec<u32>,
    ends: Vec<usize>,
}

/// Calls `visit` with the documents of every list that counts for the order, term by term.
fn each_list(
    collected: &Collected<'_>,
    dropped: &[u32],
    documents: usize,
    mut visit: impl FnMut(&[u32]) + Send,
) -> Result<(), BuildError> {
    let taken = MIN_DOCUMENTS..=(documents / FREQUENT_SHARE).max(MIN_DOCUMENTS);
    let mut merge = Merge::new(collected.open_runs()?, None)?;
    let pipeline = Pipeline {
        threads: collected.options.workers(),
        make: || (),
        work: |(): &mut (), batch: TermBatch| {
            let mut lists = DocumentLists::default();
            for (_, pieces, count) in batch.iter().filter(|(_, _, count)| *count as usize >= MIN_DOCUMENTS) {
                let start = lists.documents.len();
                lists.documents.reserve(count as usize);
                let keep = |document, _| lists.documents.extend(renumber(dropped, document));
                unpack_pieces(pieces, keep).ok_or(BuildError::DamagedFile)?;
                if taken.contains(&(lists.documents.len() - start)) {
                    lists.ends.push(lists.documents.len());
                } else {
                    lists.documents.truncate(start);
                }
            }
            Ok::<_, BuildError>(lists)
        },
    };
    pipeline.run(
        || merge.next(),
        |lists| {
            let mut start = 0;
            for &end in &lists.ends {
                visit(&lists.documents[start..end]);
                start = end;
            }
            Ok(())
        },
    )
}
