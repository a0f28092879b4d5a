//! Maps document numbers of the input to those of the segment.

/// Which documents are kept, and in which order.
#[derive(Clone, Copy)]
pub struct Numbering<'a> {
    /// Dropped documents, ascending; the documents after them move up.
    pub dropped: &'a [u32],
    /// The new number of each kept document, if the order changes.
    pub numbers: Option<&'a [u32]>,
}

impl Numbering<'_> {
    /// The new number of a document, if it is kept.
    #[inline]
    pub fn number(&self, document: u32) -> Option<u32> {
        let document = renumber(self.dropped, document)?;
        match self.numbers {
            Some(numbers) => numbers.get(document as usize).copied(),
            None => Some(document),
        }
    }

    /// Whether documents are kept in the order of the input.
    pub fn keeps_order(&self) -> bool {
        self.numbers.is_none()
    }
}

/// The number of a document among the kept ones, if it is kept.
#[inline]
pub fn renumber(dropped: &[u32], document: u32) -> Option<u32> {
    if dropped.is_empty() {
        return Some(document);
    }
    match dropped.binary_search(&document) {
        Ok(_) => None,
        Err(before) => Some(document - before as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_after_a_dropped_one_move_up_before_they_are_ordered() {
        let numbers = |numbering: Numbering<'_>| (0..5).map(|document| numbering.number(document)).collect::<Vec<_>>();
        let given = Numbering { dropped: &[1, 3], numbers: None };
        assert_eq!(numbers(given), [Some(0), None, Some(1), None, Some(2)]);
        assert!(given.keeps_order());
        let turned = Numbering { dropped: &[1, 3], numbers: Some(&[2, 0, 1]) };
        assert_eq!(numbers(turned), [Some(2), None, Some(0), None, Some(1)]);
        assert!(!turned.keeps_order());
    }
}
