//! The terms of a segment: lookup by hash, comparison within a group, and iteration in order.
//!
//! Every read stays inside the sections. In a damaged file a term may not be found, or be found with a span that holds
//! no list.

use super::map::{CACHE_LINE, prefetch};
use super::segment::Segment;
use crate::format::lexicon::{GROUP_ROW_BYTES, GroupRow, LONG_TERM, TERMS_IN_GROUP, hash};
use crate::format::list::UNIT;
use crate::format::segment::{Section, u32_at};
use crate::format::{IndexError, varint};

/// Terms that are looked up together.
const LOOKED_UP_TOGETHER: usize = 16;
/// Cache lines of a list that are prefetched once it is found.
const PREFETCHED_LINES: usize = 2;

/// A term on its way through the lexicon.
#[derive(Clone, Copy, Default)]
struct Lookup<'t, 'a> {
    term: &'t [u8],
    hash: u64,
    /// The entries of its bucket, and the first whose bits of the hash match.
    bucket: &'a [[u8; 4]],
    candidate: Option<u64>,
}

/// Where a list lies: a range of bytes in one of the two sections of lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ListSpan {
    /// Whether it lies in the section of long lists or in that of short ones.
    pub is_long: bool,
    /// Its first byte within the section.
    pub start: usize,
    /// The byte after its last.
    pub end: usize,
}

impl ListSpan {
    /// The section that holds the list.
    pub fn section(&self) -> Section {
        if self.is_long { Section::LongLists } else { Section::ShortLists }
    }

    /// Its length in bytes, including the directory.
    pub fn bytes(&self) -> usize {
        self.end.saturating_sub(self.start)
    }
}

/// The parts of a group of terms.
#[derive(Clone, Copy)]
struct Group<'a> {
    lengths: &'a [u8],
    /// The sizes of their lists, followed by their texts.
    sizes: &'a [u8],
    /// The start of the first short list, in bytes.
    short: u64,
    /// The start of the first long list, in units.
    long: u64,
}

impl<'a> Group<'a> {
    /// The span of the list of a term, and the texts of all terms.
    #[inline]
    fn span(&self, term: usize) -> Option<(ListSpan, &'a [u8])> {
        let (mut starts, mut rest) = ([self.short, self.long], self.sizes);
        for _ in 0..term {
            let size = varint::read(&mut rest)?;
            let start = &mut starts[(size & 1) as usize];
            *start = start.checked_add(size >> 1)?;
        }
        let size = varint::read(&mut rest)?;
        let (is_long, start) = (size & 1 == 1, starts[(size & 1) as usize]);
        let unit = if is_long { UNIT as u64 } else { 1 };
        let bytes = |at: u64| at.checked_mul(unit).and_then(|at| usize::try_from(at).ok());
        let span = ListSpan { is_long, start: bytes(start)?, end: bytes(start.checked_add(size >> 1)?)? };
        varint::skip(&mut rest, self.lengths.len().checked_sub(term + 1)?)?;
        Some((span, rest))
    }

    /// The text of a term: the prefix that it shares with the first term, and the rest.
    #[inline]
    fn text(&self, term: usize, texts: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        let (mut rest, mut first) = (texts, None);
        for &lengths in self.lengths.get(..term)? {
            let (_, others) = read_text(lengths, &mut rest)?;
            first = first.or(Some(others));
        }
        let (shared, others) = read_text(*self.lengths.get(term)?, &mut rest)?;
        Some((first.unwrap_or(&[]).get(..shared)?, others))
    }
}

/// Reads a term from the front of `rest`: the length of its shared prefix, and its other bytes.
#[inline]
fn read_text<'a>(lengths: u8, rest: &mut &'a [u8]) -> Option<(usize, &'a [u8])> {
    let (shared, others) = match lengths {
        LONG_TERM => (varint::read(rest)? as usize, varint::read(rest)? as usize),
        lengths => (usize::from(lengths >> 4), usize::from(lengths & 15)),
    };
    Some((shared, varint::take(rest, others)?))
}

impl Segment {
    /// The number of a term and the span of its list, if the term occurs.
    pub fn find_term(&self, term: &[u8]) -> Result<Option<(u64, ListSpan)>, IndexError> {
        let hash = hash(term);
        self.find_in_bucket(self.bucket(hash)?, hash, term)
    }

    /// [`Segment::find_term`] for several terms. A lookup is a chain of dependent reads; here some terms go through each
    /// link of the chain together, with prefetches, so that their cache misses overlap.
    pub fn find_terms<'t>(
        &self,
        terms: impl IntoIterator<Item = &'t [u8]>,
    ) -> Result<Vec<Option<(u64, ListSpan)>>, IndexError> {
        let mut terms = terms.into_iter();
        let mut found = Vec::with_capacity(terms.size_hint().0);
        // Not in memory of their own: an allocation takes as long as a cache miss.
        let mut lookups = [Lookup::default(); LOOKED_UP_TOGETHER];
        loop {
            let mut count = 0;
            for (lookup, term) in lookups.iter_mut().zip(&mut terms) {
                *lookup = Lookup { term, hash: hash(term), bucket: &[], candidate: None };
                count += 1;
            }
            self.find_together(&mut lookups[..count], &mut found)?;
            if count < LOOKED_UP_TOGETHER {
                return Ok(found);
            }
        }
    }

    /// Appends what some terms are found to be.
    fn find_together<'a>(
        &'a self,
        lookups: &mut [Lookup<'_, 'a>],
        found: &mut Vec<Option<(u64, ListSpan)>>,
    ) -> Result<(), IndexError> {
        let lexicon = self.section(Section::Lexicon);
        for lookup in &*lookups {
            prefetch(lexicon, 4 * self.lexicon().bucket(lookup.hash));
        }
        for lookup in &mut *lookups {
            lookup.bucket = self.bucket(lookup.hash)?;
            prefetch(lookup.bucket.as_flattened(), 0);
        }
        for lookup in &mut *lookups {
            lookup.candidate = self.numbers(lookup.bucket, lookup.hash).next();
            if let Some(number) = lookup.candidate {
                prefetch(self.section(Section::Terms), (number / TERMS_IN_GROUP) as usize * GROUP_ROW_BYTES);
            }
        }
        for (group, _) in lookups.iter().filter_map(|lookup| self.group(lookup.candidate?)) {
            prefetch(group.lengths, 0);
            prefetch(group.sizes, CACHE_LINE);
        }
        for Lookup { term, hash, bucket, candidate } in &*lookups {
            let term = match candidate {
                Some(_) => self.find_in_bucket(bucket, *hash, term)?,
                None => None,
            };
            if let Some((_, span)) = term {
                // The header, and the first entries of the directory or most of a short list.
                let list = self.section(span.section());
                (0..PREFETCHED_LINES).for_each(|line| prefetch(list, span.start + line * CACHE_LINE));
            }
            found.push(term);
        }
        Ok(())
    }

    /// Finds a term in its bucket.
    fn find_in_bucket(
        &self,
        bucket: &[[u8; 4]],
        hash: u64,
        term: &[u8],
    ) -> Result<Option<(u64, ListSpan)>, IndexError> {
        for number in self.numbers(bucket, hash) {
            self.check_term(number)?;
            let compared = self.compare(number, term);
            let damaged = || self.damaged(Section::Terms, format!("term {number} cannot be read"));
            if let Some(span) = compared.ok_or_else(damaged)? {
                return Ok(Some((number, span)));
            }
        }
        Ok(None)
    }

    /// The numbers of the terms in a bucket whose bits of the hash match.
    fn numbers<'a>(&self, bucket: &'a [[u8; 4]], hash: u64) -> impl Iterator<Item = u64> + use<'a> {
        let layout = *self.lexicon();
        bucket.iter().filter_map(move |entry| layout.number(u32::from_le_bytes(*entry), hash))
    }

    /// The entries of the bucket of a hash.
    fn bucket(&self, hash: u64) -> Result<&[[u8; 4]], IndexError> {
        let (bytes, layout) = (self.section(Section::Lexicon), self.lexicon());
        // Opening has checked the size of the section: every bucket has a start, and there is one more for the end.
        let start = 4 * layout.bucket(hash);
        self.check(Section::Lexicon, start..start + 8)?;
        let at = |start: usize| layout.entries() + 4 * u32_at(bytes, start) as usize;
        let range = at(start)..at(start + 4);
        self.check(Section::Lexicon, range.clone())?;
        let entries = bytes.get(range).map(|entries| entries.as_chunks().0);
        entries.ok_or_else(|| self.damaged(Section::Lexicon, "a bucket lies outside the section"))
    }

    /// Checks the row and the group of a term, unless they were checked before.
    pub fn check_term(&self, number: u64) -> Result<(), IndexError> {
        let rows = self.header().terms.div_ceil(TERMS_IN_GROUP) as usize;
        let row = (number / TERMS_IN_GROUP) as usize;
        if row >= rows {
            return Ok(());
        }
        // This row, and the next one, where the group ends.
        let (start, next) = (row * GROUP_ROW_BYTES, (row + 1) * GROUP_ROW_BYTES);
        let has_next = row + 1 < rows;
        self.check(Section::Terms, start..if has_next { next + GROUP_ROW_BYTES } else { next })?;
        let bytes = self.section(Section::Terms);
        let groups = rows * GROUP_ROW_BYTES;
        let group = |at: usize| {
            let row = bytes.get(at..)?.first_chunk()?;
            usize::try_from(GroupRow::decode(*row).group).ok()?.checked_add(groups)
        };
        let end = if has_next { group(next) } else { None };
        let start = group(start).unwrap_or(usize::MAX);
        self.check(Section::Terms, start..end.unwrap_or(bytes.len()))
    }

    /// `Some(None)` if term `number` is not `term`, else the span of its list; `None` if its group cannot be read.
    fn compare(&self, number: u64, term: &[u8]) -> Option<Option<ListSpan>> {
        let (group, at) = self.group(number)?;
        let (span, texts) = group.span(at)?;
        let (shared, others) = group.text(at, texts)?;
        Some((term.strip_prefix(shared) == Some(others)).then_some(span))
    }

    /// The span of the list of term `number`.
    pub fn span(&self, number: u64) -> Option<ListSpan> {
        let (group, at) = self.group(number)?;
        Some(group.span(at)?.0)
    }

    /// The group of term `number`, and its position in the group.
    fn group(&self, number: u64) -> Option<(Group<'_>, usize)> {
        let all = self.header().terms;
        let terms = all.checked_sub(number / TERMS_IN_GROUP * TERMS_IN_GROUP)?.min(TERMS_IN_GROUP) as usize;
        let bytes = self.section(Section::Terms);
        let (rows, groups) = bytes.split_at_checked(GROUP_ROW_BYTES * all.div_ceil(TERMS_IN_GROUP) as usize)?;
        let row = rows.as_chunks::<GROUP_ROW_BYTES>().0.get((number / TERMS_IN_GROUP) as usize)?;
        let GroupRow { group, short, long } = GroupRow::decode(*row);
        let (lengths, sizes) = groups.get(usize::try_from(group).ok()?..)?.split_at_checked(terms)?;
        let group = Group { lengths, sizes, short, long };
        Some((group, (number % TERMS_IN_GROUP) as usize)).filter(|_| number < all)
    }

    /// All terms by number, that is, sorted by their bytes.
    pub fn terms(&self) -> Terms<'_> {
        Terms { segment: self, number: 0, text: Vec::new() }
    }

    /// The text of term `number`: shared prefix and rest.
    fn text(&self, number: u64) -> Option<(&[u8], &[u8])> {
        let (group, at) = self.group(number)?;
        group.text(at, group.span(at)?.1)
    }
}

/// Iterates over the terms of a segment.
pub struct Terms<'a> {
    segment: &'a Segment,
    number: u64,
    text: Vec<u8>,
}

impl Terms<'_> {
    /// The next term and its number; `None` after the last.
    pub fn read(&mut self) -> Result<Option<(u64, &str)>, IndexError> {
        let number = self.number;
        if number == self.segment.header().terms {
            return Ok(None);
        }
        let damaged = || self.segment.damaged(Section::Terms, format!("term {number} cannot be read"));
        self.segment.check_term(number)?;
        let (shared, others) = self.segment.text(number).ok_or_else(damaged)?;
        self.text.clear();
        self.text.extend_from_slice(shared);
        self.text.extend_from_slice(others);
        self.number += 1;
        Ok(Some((number, str::from_utf8(&self.text).map_err(|_| damaged())?)))
    }
}
