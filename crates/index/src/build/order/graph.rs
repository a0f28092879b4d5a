//! The bipartite graph of documents and terms that bisection divides: a row of term numbers for each document.

/// Marks a term that a half does not need.
const GONE: u32 = u32::MAX;

/// Documents and the terms that matter for their order.
///
/// Terms are numbered from 0 without gaps. A term that only one of the documents has, or that all of them have, is left
/// out: its list costs the same in any order.
pub struct Graph {
    /// The documents, ascending.
    documents: Vec<u32>,
    /// `ends[i]`: the end of the row of `documents[i]` in `terms`.
    ends: Vec<usize>,
    terms: Vec<u32>,
    /// `degrees[term]`: the number of documents with the term.
    degrees: Vec<u32>,
}

impl Graph {
    /// The graph of the documents `0..ends.len()` and their rows.
    pub fn new(ends: Vec<usize>, terms: Vec<u32>, degrees: Vec<u32>) -> Graph {
        Graph { documents: (0..ends.len() as u32).collect(), ends, terms, degrees }
    }

    /// The documents, ascending.
    pub fn documents(&self) -> &[u32] {
        &self.documents
    }

    /// The number of documents with each term.
    pub fn degrees(&self) -> &[u32] {
        &self.degrees
    }

    /// The number of pairs of document and term.
    pub fn edges(&self) -> usize {
        self.terms.len()
    }

    /// The rows of the documents from position `first` on.
    pub fn rows(&self, first: usize) -> impl Iterator<Item = &[u32]> {
        let mut start = if first == 0 { 0 } else { self.ends[first - 1] };
        self.ends[first..].iter().map(move |&end| {
            let row = &self.terms[start..end];
            start = end;
            row
        })
    }

    /// Splits the documents by `is_right`; `left_degrees` are the degrees within the left half.
    ///
    /// The right half reuses the memory of the whole, so that splitting needs half as much again instead of twice as
    /// much.
    pub fn split(mut self, is_right: &[bool], left_degrees: &[u32]) -> (Graph, Graph) {
        let right_count = is_right.iter().filter(|&&right| right).count();
        let left_count = self.documents.len() - right_count;
        let right_degrees = self.degrees.iter().zip(left_degrees).map(|(all, left)| all - left);
        let right_terms = Renumbering::new(right_degrees, right_count as u32);
        let left_terms = Renumbering::new(left_degrees.iter().copied(), left_count as u32);
        let mut left = Graph {
            documents: Vec::with_capacity(left_count),
            ends: Vec::with_capacity(left_count),
            // One more, since an edge is written before it is known to be kept.
            terms: vec![0; left_terms.edges + 1],
            degrees: left_terms.degrees,
        };
        let (mut start, mut left_end, mut right_end, mut right_position) = (0, 0, 0, 0);
        for (position, &right) in is_right.iter().enumerate() {
            let end = self.ends[position];
            if right {
                for at in start..end {
                    let term = right_terms.numbers[self.terms[at] as usize];
                    self.terms[right_end] = term;
                    right_end += usize::from(term != GONE);
                }
                self.documents[right_position] = self.documents[position];
                self.ends[right_position] = right_end;
                right_position += 1;
            } else {
                for &term in &self.terms[start..end] {
                    let term = left_terms.numbers[term as usize];
                    left.terms[left_end] = term;
                    left_end += usize::from(term != GONE);
                }
                left.documents.push(self.documents[position]);
                left.ends.push(left_end);
            }
            start = end;
        }
        left.terms.truncate(left_end);
        self.terms.truncate(right_end);
        self.terms.shrink_to_fit();
        self.documents.truncate(right_position);
        self.documents.shrink_to_fit();
        self.ends.truncate(right_position);
        self.ends.shrink_to_fit();
        self.degrees = right_terms.degrees;
        (left, self)
    }
}

/// The numbers of terms in a half.
struct Renumbering {
    /// `numbers[term]`: its number in the half, or `GONE`.
    numbers: Vec<u32>,
    degrees: Vec<u32>,
    edges: usize,
}

impl Renumbering {
    fn new(in_half: impl Iterator<Item = u32>, documents: u32) -> Renumbering {
        let mut degrees = Vec::new();
        let mut edges = 0;
        let numbers = in_half.map(|degree| {
            if degree < 2 || degree == documents {
                return GONE;
            }
            degrees.push(degree);
            edges += degree as usize;
            degrees.len() as u32 - 1
        });
        let numbers = numbers.collect();
        Renumbering { numbers, degrees, edges }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows(graph: &Graph) -> Vec<(u32, Vec<u32>)> {
        graph.documents.iter().copied().zip(graph.rows(0).map(<[u32]>::to_vec)).collect()
    }

    proptest! {
        #[test]
        fn halves_hold_their_documents_and_the_terms_that_tell_them_apart(
            sets in prop::collection::vec(prop::collection::btree_set(0u32..12, 0..9), 2..40),
            sides in prop::collection::vec(any::<bool>(), 40),
        ) {
            let is_right = &sides[..sets.len()];
            let (mut ends, mut terms, mut degrees, mut left_degrees) = (vec![], vec![], vec![0; 12], vec![0; 12]);
            for (set, &right) in sets.iter().zip(is_right) {
                for &term in set {
                    degrees[term as usize] += 1;
                    left_degrees[term as usize] += u32::from(!right);
                }
                terms.extend(set);
                ends.push(terms.len());
            }
            let (left, right) = Graph::new(ends, terms, degrees).split(is_right, &left_degrees);
            for (half, side) in [(left, false), (right, true)] {
                let own: Vec<u32> = (0..sets.len() as u32).filter(|&d| is_right[d as usize] == side).collect();
                let degree = |term: u32| own.iter().filter(|&&d| sets[d as usize].contains(&term)).count();
                let kept: Vec<u32> = (0..12).filter(|&t| (2..own.len()).contains(&degree(t))).collect();
                let expected: Vec<(u32, Vec<u32>)> = own.iter().map(|&document| {
                    let row = sets[document as usize].iter().filter_map(|term| kept.binary_search(term).ok());
                    (document, row.map(|number| number as u32).collect())
                }).collect();
                prop_assert_eq!(rows(&half), expected);
                prop_assert_eq!(half.degrees(), kept.iter().map(|&t| degree(t) as u32).collect::<Vec<_>>());
            }
        }
    }
}
