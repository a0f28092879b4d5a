//! Generates one document of a scaled collection from its number and the seed.

use super::names::{Names, push_suffix};
use super::random::{Random, mix};
use super::source::{DocumentView, Source};
use std::fmt::Write;

/// Consecutive documents that stay together in every copy, because neighbours share topics.
const GROUP: u32 = 16;
/// Probability, times 2^32, that a term is swapped with one of a neighbour.
const SWAPPED: u64 = (1 << 32) / 10;
/// Words in more than 1/16 of the documents are never swapped; otherwise long lists would become shorter.
const COMMON_SHARE: u32 = 16;

/// Generates the documents of a scaled collection.
#[derive(Clone, Debug)]
pub struct Generator {
    source: Source,
    names: Names,
    seed: u64,
    documents: u64,
    /// The order in which each copy visits the full groups of the source.
    walks: Vec<Walk>,
}

/// Visits each of `groups` groups once: starts at `start` and advances by `stride`, which is coprime to `groups`.
#[derive(Clone, Copy, Debug)]
struct Walk {
    start: u64,
    stride: u64,
    groups: u64,
}

impl Walk {
    fn group(&self, position: u64) -> u64 {
        (self.start + self.stride * position) % self.groups
    }
}

/// A generated document, with buffers for the next one.
#[derive(Clone, Debug, Default)]
pub struct Made {
    /// The external id.
    pub id: String,
    /// Words of the title, separated by spaces.
    pub title: Vec<u8>,
    /// Words of the text, separated by spaces.
    pub text: Vec<u8>,
    /// For each term of the source document: the word that replaces it, and its new frequency.
    drawn: Vec<(u32, u32)>,
    /// For each term of the source document: its tokens so far.
    seen: Vec<u32>,
}

impl Generator {
    /// Prepares to generate `documents` documents from a source.
    pub fn new(source: Source, documents: u64, seed: u64) -> Generator {
        let copies = documents.div_ceil(u64::from(source.documents()));
        let names = Names::new(&source, copies as usize, seed);
        let walks = walks(u64::from(source.documents() / GROUP), copies, seed);
        Generator { names, seed, documents, walks, source }
    }

    /// The number of documents to generate.
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// The exponent of Heaps' law in the source.
    pub fn heaps_exponent(&self) -> f64 {
        self.names.exponent
    }

    /// Returns the copy that a document belongs to, and its source document.
    pub fn source_of(&self, number: u64) -> (u32, u32) {
        let documents = u64::from(self.source.documents());
        let (copy, within) = (number / documents, number % documents);
        let (position, offset) = (within / u64::from(GROUP), within % u64::from(GROUP));
        let walk = &self.walks[copy as usize];
        // The last group of the source may be smaller; it stays at the end of every copy.
        let group = if position < walk.groups { walk.group(position) } else { position };
        (copy as u32, (group * u64::from(GROUP) + offset) as u32)
    }

    /// Generates a document.
    pub fn make(&self, number: u64, made: &mut Made) {
        let (copy, source_number) = self.source_of(number);
        let document = self.source.document(source_number);
        let mut random = Random::new(self.seed, number);
        self.draw(source_number, document, &mut random, made);
        made.id.clear();
        write!(made.id, "{}_{copy}", document.id).expect("writing to a string does not fail");
        made.title.clear();
        made.text.clear();
        made.seen.clear();
        made.seen.resize(document.terms.len(), 0);
        let Made { title, text, drawn, seen, .. } = made;
        for (at, &term) in document.tokens.iter().enumerate() {
            let term = usize::from(term);
            let (word, frequency) = drawn[term];
            let before = document.terms[term].1;
            seen[term] += 1;
            // Drop tokens beyond the new frequency; if it is higher than before, repeat the last token.
            let times = if seen[term] < before {
                u32::from(seen[term] <= frequency)
            } else {
                (frequency + 1).saturating_sub(before)
            };
            let out = if at < document.title_tokens { &mut *title } else { &mut *text };
            for _ in 0..times {
                self.push_word(word, copy, out);
            }
        }
    }

    /// Draws a word and a frequency for each term of a document.
    fn draw(&self, number: u32, document: DocumentView<'_>, random: &mut Random, made: &mut Made) {
        let neighbour = self.source.document(neighbour(number, self.source.documents(), random));
        made.drawn.clear();
        for &(word, frequency) in document.terms {
            let (mut word, mut frequency) = (word, frequency);
            if random.happens(SWAPPED) && !self.is_common(word) && !neighbour.terms.is_empty() {
                let other = neighbour.terms[random.below(neighbour.terms.len() as u32) as usize];
                let is_there = |terms: &[(u32, u32)]| terms.iter().any(|term| term.0 == other.0);
                if !self.is_common(other.0) && !is_there(document.terms) && !is_there(&made.drawn) {
                    (word, frequency) = other;
                }
            }
            made.drawn.push((word, redrawn(frequency, random)));
        }
    }

    #[inline]
    fn is_common(&self, word: u32) -> bool {
        self.source.frequency(word) > self.source.documents() / COMMON_SHARE
    }

    #[inline]
    fn push_word(&self, word: u32, copy: u32, out: &mut Vec<u8>) {
        if !out.is_empty() {
            out.push(b' ');
        }
        out.extend_from_slice(self.source.word(word).as_bytes());
        let origin = self.names.origin(word, copy);
        if origin > 0 {
            push_suffix(origin, out);
        }
    }
}

/// Returns a walk for each copy. It starts half a round after the end of the previous walk, so that a document is never
/// next to its own copy.
fn walks(groups: u64, copies: u64, seed: u64) -> Vec<Walk> {
    let mut last = mix(seed, 0) >> 32;
    let mut next_walk = |copy| {
        let first = mix(seed, copy) % groups.max(1);
        let stride = (first..).find(|&stride| greatest_common_divisor(stride, groups.max(1)) == 1).unwrap_or(1);
        let walk = Walk { start: (last + groups / 2) % groups.max(1), stride, groups };
        last = if groups > 0 { walk.group(groups - 1) } else { 0 };
        walk
    };
    (0..copies).map(&mut next_walk).collect()
}

/// Returns the document before or after a document.
fn neighbour(number: u32, documents: u32, random: &mut Random) -> u32 {
    let forward = random.next() & 1 == 0;
    if (forward && number + 1 < documents) || number == 0 { (number + 1) % documents } else { number - 1 }
}

/// Draws a frequency of at least 1 with the given mean: 1 plus the heads of `2 * (frequency - 1)` coins.
#[inline]
fn redrawn(frequency: u32, random: &mut Random) -> u32 {
    let mut coins = u64::from(frequency - 1) * 2;
    let mut heads = 0;
    while coins > 0 {
        let now = coins.min(64);
        heads += (random.next() >> (64 - now)).count_ones();
        coins -= now;
    }
    1 + heads
}

fn greatest_common_divisor(first: u64, second: u64) -> u64 {
    if second == 0 { first } else { greatest_common_divisor(second, first % second) }
}

#[cfg(test)]
mod tests {
    use super::super::source::tests::source;
    use super::*;
    use std::collections::HashMap;

    fn texts(generator: &Generator, numbers: impl Iterator<Item = u64>) -> Vec<(String, String)> {
        let mut made = Made::default();
        let mut text_of = |number| {
            generator.make(number, &mut made);
            (made.id.clone(), String::from_utf8([&made.title[..], b" ", &made.text[..]].concat()).unwrap())
        };
        numbers.map(&mut text_of).collect()
    }

    #[test]
    fn a_document_depends_on_its_number_and_the_seed_single() {
        let generator = Generator::new(source(400), 2000, 5);
        let forward = texts(&generator, 0..2000);
        let mut backward = texts(&generator, (0..2000).rev());
        backward.reverse();
        assert_eq!(forward, backward);
        assert_ne!(forward, texts(&Generator::new(source(400), 2000, 6), 0..2000));
        let ids: std::collections::HashSet<&String> = forward.iter().map(|(id, _)| id).collect();
        assert_eq!(ids.len(), 2000);
    }

    #[test]
    fn copies_are_never_adjacent_and_every_copy_is_complete() {
        for documents in [2, 15, 16, 17, 32, 33, 64, 400, 1001] {
            let generator = Generator::new(source(documents), 7 * documents as u64, 3);
            let made_of: Vec<(u32, u32)> = (0..generator.documents()).map(|n| generator.source_of(n)).collect();
            assert!(made_of.windows(2).all(|pair| pair[0].1 != pair[1].1), "{documents} documents");
            for copy in made_of.chunks(documents) {
                let mut numbers: Vec<u32> = copy.iter().map(|&(_, number)| number).collect();
                numbers.sort_unstable();
                assert!(numbers.into_iter().eq(0..documents as u32), "{documents} documents");
            }
        }
    }

    #[test]
    fn the_mean_length_is_kept() {
        let generator = Generator::new(source(1000), 8000, 1);
        let tokens: usize = texts(&generator, 0..8000).iter().map(|(_, text)| text.split_whitespace().count()).sum();
        let source_tokens: usize = (0..1000).map(|number| generator.source.document(number).tokens.len()).sum();
        let (before, after) = (source_tokens as f64 / 1000.0, tokens as f64 / 8000.0);
        assert!((after / before - 1.0).abs() < 0.02, "{before} became {after}");
    }

    #[test]
    fn the_vocabulary_grows_by_heaps_law() {
        let generator = Generator::new(source(2000), 16_000, 1);
        let words: std::collections::HashSet<String> = texts(&generator, 0..16_000)
            .iter()
            .flat_map(|(_, text)| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
            .collect();
        let expected = f64::from(generator.source.words()) * 8f64.powf(generator.heaps_exponent());
        let ratio = words.len() as f64 / expected;
        assert!((0.9..1.1).contains(&ratio), "{} words, the law says {expected:.0}", words.len());
    }

    #[test]
    fn long_lists_keep_their_share_of_the_documents() {
        let generator = Generator::new(source(2000), 6000, 1);
        let mut lists: HashMap<String, u32> = HashMap::new();
        for (_, text) in texts(&generator, 0..6000) {
            let words: std::collections::HashSet<&str> = text.split_whitespace().collect();
            for word in words {
                *lists.entry(word.to_owned()).or_default() += 1;
            }
        }
        let source = &generator.source;
        for word in (0..source.words()).filter(|&word| source.frequency(word) >= 200) {
            let before = f64::from(source.frequency(word)) / 2000.0;
            let after = f64::from(lists[source.word(word)]) / 6000.0;
            assert!((after / before - 1.0).abs() < 0.15, "{}: {before} became {after}", source.word(word));
        }
    }

    #[test]
    fn most_terms_are_kept_and_some_are_swapped() {
        let generator = Generator::new(source(500), 500, 9);
        let (mut kept, mut total) = (0, 0);
        let mut made = Made::default();
        for number in 0..500 {
            generator.make(number, &mut made);
            let document = generator.source.document(generator.source_of(number).1);
            total += document.terms.len();
            kept += document.terms.iter().zip(&made.drawn).filter(|(before, after)| before.0 == after.0).count();
        }
        let share = kept as f64 / total as f64;
        assert!((0.85..0.99).contains(&share), "{share} kept");
    }

    #[test]
    fn redrawn_frequencies_keep_their_mean_and_are_at_least_one() {
        let mut random = Random::new(1, 1);
        assert!((0..100).all(|_| redrawn(1, &mut random) == 1));
        for frequency in [2, 5, 40, 100] {
            let sum: u32 = (0..10_000).map(|_| redrawn(frequency, &mut random)).sum();
            assert!((f64::from(sum) / 10_000.0 / f64::from(frequency) - 1.0).abs() < 0.02);
        }
    }
}
