//! Small collections: one of real sentences, and one made by a generator as large as asked for.

use std::fmt::Write;

/// Five birds, as JSON lines.
pub const BIRDS: &str = concat!(
    r#"{"id":"lanner","title":"Lanner falcon","text":"Lanner falcons hunt in pairs over open country. "#,
    r#"One flushes the prey, the other strikes."}"#,
    "\n",
    r#"{"id":"saker","title":"Saker falcon","text":"Sakers hunt rodents close to the ground, "#,
    r#"and sometimes other birds."}"#,
    "\n",
    r#"{"id":"heron","title":"Grey heron","text":"Herons stand in shallow water and wait for fish."}"#,
    "\n",
    r#"{"id":"kite","title":"Black kite","text":"Kites soar over open country and over towns; "#,
    r#"they seldom hunt and often scavenge."}"#,
    "\n",
    r#"{"id":"owl","title":"Barn owl","text":"Barn owls hunt by hearing, at night, over open country."}"#,
    "\n",
);

/// Numbers that are the same every time (xorshift64*, Vigna 2016).
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Numbers {
        Numbers(seed | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// From 0 to 1.
    pub fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Documents as JSON lines, of words whose frequencies fall off as in real text.
pub fn documents(count: usize, words: usize, vocabulary: u32, seed: u64) -> String {
    let mut numbers = Numbers::new(seed);
    let mut lines = String::new();
    for id in 0..count {
        write!(lines, "{{\"id\":\"d{id}\",\"title\":\"Title of {id}\",\"text\":\"").unwrap();
        for _ in 0..words {
            // Ranks drawn so that their logarithm is even give Zipf's law.
            let rank = f64::from(vocabulary).powf(numbers.share()) as u32;
            write!(lines, "{} ", word(rank)).unwrap();
        }
        lines.push_str("\"}\n");
    }
    lines
}

/// The word of a rank: its digits as syllables.
fn word(mut rank: u32) -> String {
    const SYLLABLES: [&str; 16] =
        ["ba", "ke", "ti", "lo", "mu", "ra", "ze", "di", "go", "nu", "fa", "se", "wi", "po", "hu", "ya"];
    let mut word = String::new();
    loop {
        word.push_str(SYLLABLES[(rank % 16) as usize]);
        rank /= 16;
        if rank == 0 {
            return word;
        }
    }
}
