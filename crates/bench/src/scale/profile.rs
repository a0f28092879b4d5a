//! Statistics of a collection from its index: vocabulary, list lengths, bits per posting.

use crate::error::Result;
use crate::table::{Table, count, number};
use lanner_index::TermId;
use lanner_index::format::segment::Section;
use lanner_index::open::Index;

/// List lengths are counted in classes of powers of four.
const CLASSES: usize = 16;

/// Statistics of a collection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    pub documents: u64,
    pub tokens: u64,
    pub terms: u64,
    pub postings: u64,
    pub list_bytes: u64,
    /// `terms_by_length[c]`: terms with 4^c up to 4^(c+1) - 1 postings.
    pub terms_by_length: [u64; CLASSES],
    /// `postings_by_share[c]`: postings of terms that occur in 1/4^(c+1) to 1/4^c of the documents.
    pub postings_by_share: [u64; CLASSES],
}

impl Profile {
    /// Reads the lengths of all lists of an index.
    pub fn of(index: &Index) -> Result<Profile> {
        let segment = index.segment();
        let header = segment.header();
        let lists = [Section::LongLists, Section::ShortLists];
        let mut profile = Profile {
            documents: u64::from(header.documents),
            tokens: header.tokens,
            terms: header.terms,
            postings: header.postings,
            list_bytes: lists.iter().map(|&section| segment.section(section).len() as u64).sum(),
            ..Profile::default()
        };
        for term in 0..header.terms {
            let length = index.list(TermId(term))?.postings().max(1);
            let share = header.documents / length;
            profile.terms_by_length[class(length)] += 1;
            profile.postings_by_share[class(share)] += u64::from(length);
        }
        Ok(profile)
    }

    /// Bits of the lists per posting, with directories.
    fn bits_per_posting(&self) -> f64 {
        self.list_bytes as f64 * 8.0 / self.postings as f64
    }

    /// Mean number of tokens of a document.
    fn mean_length(&self) -> f64 {
        self.tokens as f64 / self.documents as f64
    }
}

/// Returns the logarithm to base 4, rounded down.
fn class(number: u32) -> usize {
    (number.max(1).ilog2() / 2) as usize
}

/// Returns tables that compare a source with its scaled collection.
pub fn compare(source: &Profile, scaled: &Profile, heaps_exponent: f64) -> Vec<Table> {
    let expected = source.terms as f64 * (scaled.tokens as f64 / source.tokens as f64).powf(heaps_exponent);
    let mut whole = Table::new("The collections", 1, &["", "source", "scaled"]);
    let mut row = |name: &str, of: &dyn Fn(&Profile) -> String| {
        whole.row([name.to_owned(), of(source), of(scaled)]);
    };
    row("documents", &|profile| count(profile.documents));
    row("tokens per document", &|profile| number(profile.mean_length()));
    row("postings", &|profile| count(profile.postings));
    row("postings per document", &|profile| number(profile.postings as f64 / profile.documents as f64));
    row("distinct terms", &|profile| count(profile.terms));
    row("bits per posting", &|profile| number(profile.bits_per_posting()));
    whole.notes = vec![format!(
        "Heaps' law of the source, words ~ tokens^{heaps_exponent:.3}, predicts {} terms for this size.",
        count(expected as u64)
    )];

    let mut lengths = Table::new("Terms by the length of their lists", 1, &["postings", "source", "scaled"]);
    let mut shares =
        Table::new("Postings by the share of documents that contain the term", 1, &["documents", "source", "scaled"]);
    let percent = |part: u64, whole: u64| format!("{:.1} %", 100.0 * part as f64 / whole as f64);
    for class in 0..CLASSES {
        let power = 4u64.pow(class as u32);
        if source.terms_by_length[class] + scaled.terms_by_length[class] > 0 {
            let of = |profile: &Profile| {
                let terms = profile.terms_by_length[class];
                format!("{} ({})", count(terms), percent(terms, profile.terms))
            };
            lengths.row([format!("{} – {}", count(power), count(4 * power - 1)), of(source), of(scaled)]);
        }
        if source.postings_by_share[class] + scaled.postings_by_share[class] > 0 {
            let of = |profile: &Profile| percent(profile.postings_by_share[class], profile.postings);
            shares.row([format!("1/{} – 1/{}", 4 * power, power), of(source), of(scaled)]);
        }
    }
    vec![whole, lengths, shares]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_fall_into_classes_of_powers_of_four() {
        assert_eq!([1, 3, 4, 15, 16, u32::MAX].map(class), [0, 0, 1, 1, 2, 15]);
    }

    #[test]
    fn two_profiles_are_shown_side_by_side() {
        let mut source = Profile { documents: 10, tokens: 100, terms: 20, postings: 80, ..Profile::default() };
        source.list_bytes = 100;
        source.terms_by_length[0] = 20;
        source.postings_by_share[1] = 80;
        let scaled = Profile { documents: 40, tokens: 400, terms: 40, ..source.clone() };
        let tables = compare(&source, &scaled, 0.5);
        assert!(tables[0].notes[0].contains("predicts 40 terms"), "{}", tables[0].notes[0]);
        assert_eq!(tables[0].rows[5], ["bits per posting", "10.0", "10.0"]);
        assert_eq!((tables[1].rows.len(), tables[2].rows.len()), (1, 1));
    }
}
