//! Well-known policies of caches, over pieces of lists: LRU, CLOCK, S3-FIFO and TinyLFU. Every piece that is read and is
//! not resident is copied, unless the policy does not admit it. For comparison with the engine's own.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

/// A piece: where its list begins, and its number among the pieces of a list.
pub type Key = (usize, u8);

/// A policy with its state.
pub trait CachePolicy {
    /// A piece of this many bytes is read; returns whether it was resident.
    fn visit(&mut self, key: Key, bytes: u64) -> bool;
    /// Bytes that were copied so far.
    fn copied(&self) -> u64;
}

/// The policies by their names.
pub fn policies(capacity: u64) -> [(&'static str, Box<dyn CachePolicy>); 4] {
    [
        ("lru", Box::new(Lru::new(capacity))),
        ("clock", Box::new(Clock::new(capacity))),
        ("s3-fifo", Box::new(S3Fifo::new(capacity))),
        ("tiny-lfu", Box::new(TinyLfu::new(capacity))),
    ]
}

/// Pieces in the order of their last visits.
#[derive(Default)]
struct Recency {
    visits: u64,
    by_visit: BTreeMap<u64, Key>,
    pieces: HashMap<Key, (u64, u64)>,
    bytes: u64,
}

impl Recency {
    /// Makes a piece the most recent; returns whether it was there.
    fn touch(&mut self, key: Key) -> bool {
        let Some((last, _)) = self.pieces.get_mut(&key) else {
            return false;
        };
        self.visits += 1;
        self.by_visit.remove(last);
        *last = self.visits;
        self.by_visit.insert(self.visits, key);
        true
    }

    fn insert(&mut self, key: Key, bytes: u64) {
        self.visits += 1;
        self.by_visit.insert(self.visits, key);
        self.pieces.insert(key, (self.visits, bytes));
        self.bytes += bytes;
    }

    fn remove_oldest(&mut self) {
        if let Some((_, key)) = self.by_visit.pop_first() {
            self.bytes -= self.pieces.remove(&key).map_or(0, |(_, bytes)| bytes);
        }
    }

    /// The oldest pieces that have to go so that this many bytes are free.
    fn victims(&self, capacity: u64, bytes: u64) -> impl Iterator<Item = Key> {
        let mut freed = 0;
        let needed = (self.bytes + bytes).saturating_sub(capacity);
        self.by_visit.values().copied().take_while(move |key| {
            let is_needed = freed < needed;
            freed += self.pieces[key].1;
            is_needed
        })
    }
}

/// Evicts what was read longest ago.
struct Lru {
    capacity: u64,
    pieces: Recency,
    copied: u64,
}

impl Lru {
    fn new(capacity: u64) -> Lru {
        Lru { capacity, pieces: Recency::default(), copied: 0 }
    }
}

impl CachePolicy for Lru {
    fn visit(&mut self, key: Key, bytes: u64) -> bool {
        if self.pieces.touch(key) {
            return true;
        }
        if bytes <= self.capacity {
            while self.pieces.bytes + bytes > self.capacity {
                self.pieces.remove_oldest();
            }
            self.pieces.insert(key, bytes);
            self.copied += bytes;
        }
        false
    }

    fn copied(&self) -> u64 {
        self.copied
    }
}

/// A piece in a queue.
struct Queued {
    key: Key,
    bytes: u64,
}

/// First in, first out; but a piece that was read since it came, or since the last look at it, gets another turn.
struct Clock {
    capacity: u64,
    queue: VecDeque<Queued>,
    is_read: HashMap<Key, bool>,
    bytes: u64,
    copied: u64,
}

impl Clock {
    fn new(capacity: u64) -> Clock {
        Clock { capacity, queue: VecDeque::new(), is_read: HashMap::new(), bytes: 0, copied: 0 }
    }

    fn evict(&mut self) {
        while let Some(piece) = self.queue.pop_front() {
            if std::mem::take(self.is_read.entry(piece.key).or_default()) {
                self.queue.push_back(piece);
                continue;
            }
            self.is_read.remove(&piece.key);
            self.bytes -= piece.bytes;
            return;
        }
    }
}

impl CachePolicy for Clock {
    fn visit(&mut self, key: Key, bytes: u64) -> bool {
        if let Some(is_read) = self.is_read.get_mut(&key) {
            *is_read = true;
            return true;
        }
        if bytes <= self.capacity {
            while self.bytes + bytes > self.capacity {
                self.evict();
            }
            self.queue.push_back(Queued { key, bytes });
            self.is_read.insert(key, false);
            self.bytes += bytes;
            self.copied += bytes;
        }
        false
    }

    fn copied(&self) -> u64 {
        self.copied
    }
}

/// S3-FIFO (Yang et al., SOSP 2023): a small queue for newcomers, a main queue for those read again, and the keys of those
/// that left the small one.
struct S3Fifo {
    capacity: u64,
    small: VecDeque<Queued>,
    main: VecDeque<Queued>,
    small_bytes: u64,
    main_bytes: u64,
    ghosts: VecDeque<Key>,
    is_ghost: HashSet<Key>,
    /// Visits since the last look, up to 3.
    visits: HashMap<Key, u8>,
    copied: u64,
}

impl S3Fifo {
    fn new(capacity: u64) -> S3Fifo {
        let (small, main, ghosts) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        let (is_ghost, visits) = (HashSet::new(), HashMap::new());
        S3Fifo { capacity, small, main, small_bytes: 0, main_bytes: 0, ghosts, is_ghost, visits, copied: 0 }
    }

    fn evict(&mut self) {
        match self.small_bytes > self.capacity / 10 || self.main.is_empty() {
            true => self.evict_small(),
            false => self.evict_main(),
        }
    }

    fn evict_small(&mut self) {
        let Some(piece) = self.small.pop_front() else {
            return;
        };
        self.small_bytes -= piece.bytes;
        if self.visits.get(&piece.key).is_some_and(|&visits| visits > 1) {
            self.visits.insert(piece.key, 0);
            self.main_bytes += piece.bytes;
            self.main.push_back(piece);
            return;
        }
        self.visits.remove(&piece.key);
        self.is_ghost.insert(piece.key);
        self.ghosts.push_back(piece.key);
        // As many as there are pieces.
        if self.ghosts.len() > self.main.len() + self.small.len()
            && let Some(oldest) = self.ghosts.pop_front()
        {
            self.is_ghost.remove(&oldest);
        }
    }

    fn evict_main(&mut self) {
        while let Some(piece) = self.main.pop_front() {
            match self.visits.get_mut(&piece.key).filter(|visits| **visits > 0) {
                Some(visits) => {
                    *visits -= 1;
                    self.main.push_back(piece);
                }
                None => {
                    self.visits.remove(&piece.key);
                    self.main_bytes -= piece.bytes;
                    return;
                }
            }
        }
    }
}

impl CachePolicy for S3Fifo {
    fn visit(&mut self, key: Key, bytes: u64) -> bool {
        if let Some(visits) = self.visits.get_mut(&key) {
            *visits = (*visits + 1).min(3);
            return true;
        }
        if bytes > self.capacity {
            return false;
        }
        while self.small_bytes + self.main_bytes + bytes > self.capacity {
            self.evict();
        }
        self.visits.insert(key, 0);
        self.copied += bytes;
        let piece = Queued { key, bytes };
        if self.is_ghost.remove(&key) {
            self.ghosts.retain(|ghost| *ghost != key);
            self.main_bytes += bytes;
            self.main.push_back(piece);
        } else {
            self.small_bytes += bytes;
            self.small.push_back(piece);
        }
        false
    }

    fn copied(&self) -> u64 {
        self.copied
    }
}

/// LRU with TinyLFU's admission (Einziger et al., ACM TOS 2017): a newcomer must have been read more often than all those
/// together that it would replace. Frequencies are exact here, and halved regularly.
struct TinyLfu {
    capacity: u64,
    pieces: Recency,
    frequencies: HashMap<Key, u32>,
    until_halved: u64,
    copied: u64,
}

/// Visits after which frequencies are halved.
const VISITS_PER_HALVING: u64 = 1 << 17;

impl TinyLfu {
    fn new(capacity: u64) -> TinyLfu {
        let (pieces, frequencies) = (Recency::default(), HashMap::new());
        TinyLfu { capacity, pieces, frequencies, until_halved: VISITS_PER_HALVING, copied: 0 }
    }

    fn count(&mut self, key: Key) -> u32 {
        self.until_halved -= 1;
        if self.until_halved == 0 {
            self.until_halved = VISITS_PER_HALVING;
            self.frequencies.values_mut().for_each(|frequency| *frequency /= 2);
            self.frequencies.retain(|_, frequency| *frequency > 0);
        }
        let frequency = self.frequencies.entry(key).or_default();
        *frequency += 1;
        *frequency
    }
}

impl CachePolicy for TinyLfu {
    fn visit(&mut self, key: Key, bytes: u64) -> bool {
        let frequency = self.count(key);
        if self.pieces.touch(key) {
            return true;
        }
        if bytes > self.capacity {
            return false;
        }
        let frequency_of = |key: &Key| self.frequencies.get(key).copied().unwrap_or(0);
        let mut others = 0;
        for victim in self.pieces.victims(self.capacity, bytes) {
            others += frequency_of(&victim);
            if others >= frequency {
                return false;
            }
        }
        while self.pieces.bytes + bytes > self.capacity {
            self.pieces.remove_oldest();
        }
        self.pieces.insert(key, bytes);
        self.copied += bytes;
        false
    }

    fn copied(&self) -> u64 {
        self.copied
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(policy: &mut dyn CachePolicy, keys: impl IntoIterator<Item = usize>) -> usize {
        keys.into_iter().filter(|&key| policy.visit((key, 0), 10)).count()
    }

    #[test]
    fn no_policy_holds_more_than_its_capacity_and_all_hold_what_fits() {
        for (name, mut policy) in policies(100) {
            assert_eq!(hits(&mut *policy, (0..10).chain(0..10)), 10, "{name}");
            // Ten of twenty in turns: at most half of the visits can find their piece.
            assert!(hits(&mut *policy, (0..20).cycle().take(400)) <= 200, "{name}");
        }
    }

    #[test]
    fn lru_forgets_what_a_scan_pushes_out_and_the_others_keep_what_is_read_often() {
        let often = || (0..5).cycle().take(100);
        let kept = policies(100).map(|(name, mut policy)| {
            hits(&mut *policy, often());
            hits(&mut *policy, 100..200);
            (name, hits(&mut *policy, 0..5))
        });
        assert_eq!(kept, [("lru", 0), ("clock", 0), ("s3-fifo", 5), ("tiny-lfu", 5)]);
    }

    #[test]
    fn what_is_too_large_is_never_resident() {
        for (name, mut policy) in policies(100) {
            assert!(!policy.visit((1, 0), 101) && !policy.visit((1, 0), 101) && policy.copied() == 0, "{name}");
        }
    }
}
