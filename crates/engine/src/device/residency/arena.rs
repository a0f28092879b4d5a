//! Device memory for pieces of lists: a few large allocations, divided here, so that the driver is not asked for each
//! piece. Pure: nothing here touches a device.
//!
//! Pieces have any length, so free memory becomes fragmented. Nothing is moved: to make space for a piece, *consecutive*
//! pieces are evicted, as many as it needs. A few regions are looked at, drawn at random, and the one whose pieces are
//! worth least is taken. So a few cold pieces between hot ones are no region for a long list, and short pieces, which are
//! the hottest for their length, find one nearly anywhere.

use std::collections::{BTreeMap, BTreeSet};

/// Stretches begin at multiples of this, so that a block is not spread over more cache lines than it needs.
pub const ALIGNMENT: usize = 128;
/// Regions that are looked at for an eviction.
const LOOKED_AT: usize = 12;

/// Memory for pieces, which an `O` names.
#[derive(Debug)]
pub struct Arena<O> {
    /// The bytes of each allocation.
    extents: Vec<usize>,
    /// All stretches of all extents, without gaps between those of an extent.
    stretches: BTreeMap<Start, Stretch<O>>,
    /// The free ones, by their lengths.
    free: BTreeSet<(usize, Start)>,
    free_bytes: usize,
    /// The state of the random numbers.
    random: u64,
}

/// Where a stretch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Start {
    pub extent: usize,
    pub byte: usize,
}

#[derive(Debug)]
struct Stretch<O> {
    bytes: usize,
    owner: Owner<O>,
}

#[derive(Debug)]
enum Owner<O> {
    Nobody,
    /// A piece, which may be evicted.
    Piece(O),
    /// A piece on its way to the device, or memory that batches in flight may still read.
    Held,
}

/// Memory for a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    pub start: Start,
    pub bytes: usize,
}

/// A region that evicting these pieces would make.
#[derive(Clone, Debug, PartialEq)]
pub struct Eviction<O> {
    pub region: Region,
    pub pieces: Vec<O>,
    /// What they are worth together.
    pub worth: f32,
}

impl<O> Default for Arena<O> {
    fn default() -> Arena<O> {
        let (stretches, free) = (BTreeMap::new(), BTreeSet::new());
        Arena { extents: Vec::new(), stretches, free, free_bytes: 0, random: 0x9E37_79B9_7F4A_7C15 }
    }
}

impl<O: Clone> Arena<O> {
    /// Adds an allocation. Its number is one more than that of the last.
    pub fn add(&mut self, bytes: usize) {
        let (bytes, start) = (bytes / ALIGNMENT * ALIGNMENT, Start { extent: self.extents.len(), byte: 0 });
        self.extents.push(bytes);
        if bytes > 0 {
            self.add_free(start, bytes);
        }
    }

    /// The bytes of all allocations.
    pub fn bytes(&self) -> usize {
        self.extents.iter().sum()
    }

    /// The bytes that are not free.
    pub fn used(&self) -> usize {
        self.bytes() - self.free_bytes
    }

    /// Holds a region in the smallest free stretch that is large enough.
    pub fn take(&mut self, bytes: usize) -> Option<Region> {
        let bytes = rounded(bytes);
        let &(_, start) = self.free.range((bytes, Start { extent: 0, byte: 0 })..).next()?;
        let region = Region { start, bytes };
        self.carve(region);
        Some(region)
    }

    /// The cheapest of some regions that evictions would make; `None` if something is held in all that were looked at, or
    /// all are worth `most` or more.
    pub fn cheapest(&mut self, bytes: usize, most: f32, worth: impl Fn(&O) -> f32) -> Option<Eviction<O>> {
        let mut best = None;
        let mut most = most;
        for _ in 0..LOOKED_AT {
            if let Some(eviction) = self.look_at_random(rounded(bytes), most, &worth) {
                most = eviction.worth;
                best = Some(eviction);
            }
        }
        best
    }

    /// A region that begins with a stretch drawn at random, if its pieces are worth less than `most`.
    fn look_at_random(&mut self, bytes: usize, most: f32, worth: &impl Fn(&O) -> f32) -> Option<Eviction<O>> {
        let drawn = self.draw_start()?;
        let mut before = self.stretches.range(..=drawn).rev().take_while(|(start, _)| start.extent == drawn.extent);
        let (&first, _) = before.next()?;
        // A free stretch before it is part of the region.
        let start = before.next().filter(|(_, stretch)| stretch.is_free()).map_or(first, |(&start, _)| start);
        let (mut found, mut sum, mut pieces) = (0, 0.0, Vec::new());
        for (_, stretch) in self.stretches.range(start..).take_while(|(it, _)| it.extent == start.extent) {
            match &stretch.owner {
                Owner::Held => return None,
                Owner::Nobody => {}
                Owner::Piece(piece) => {
                    sum += worth(piece);
                    pieces.push(piece.clone());
                }
            }
            found += stretch.bytes;
            if sum >= most {
                return None;
            }
            if found >= bytes {
                return Some(Eviction { region: Region { start, bytes }, pieces, worth: sum });
            }
        }
        None
    }

    /// Makes the region of an eviction, and holds it. What its pieces have beyond it becomes free.
    pub fn evict(&mut self, region: Region) {
        let end = Start { byte: region.start.byte + region.bytes, ..region.start };
        let pieces = self.stretches.range(region.start..end).filter(|(_, stretch)| !stretch.is_free());
        let pieces: Vec<Region> = pieces.map(|(&start, stretch)| Region { start, bytes: stretch.bytes }).collect();
        pieces.into_iter().for_each(|piece| self.free(piece));
        self.carve(region);
    }

    /// A held region has a piece now, which may be evicted.
    pub fn own(&mut self, region: Region, owner: O) {
        self.stretch(region).owner = Owner::Piece(owner);
    }

    fn stretch(&mut self, region: Region) -> &mut Stretch<O> {
        let stretch = self.stretches.get_mut(&region.start).expect("a region has a stretch");
        assert_eq!(stretch.bytes, region.bytes, "of its length");
        stretch
    }

    /// A region becomes free.
    pub fn free(&mut self, region: Region) {
        self.stretch(region);
        self.stretches.remove(&region.start);
        self.add_free(region.start, region.bytes);
    }

    /// Holds a part of a free stretch.
    fn carve(&mut self, region: Region) {
        let (&start, stretch) = self.stretches.range(..=region.start).next_back().expect("a region is in an extent");
        let (before, after) = (region.start.byte - start.byte, start.byte + stretch.bytes - region.start.byte);
        self.remove_free(start);
        if before > 0 {
            self.add_free(start, before);
        }
        self.stretches.insert(region.start, Stretch { bytes: region.bytes, owner: Owner::Held });
        if after > region.bytes {
            let byte = region.start.byte + region.bytes;
            self.add_free(Start { byte, ..start }, after - region.bytes);
        }
    }

    /// Adds a free stretch, joined with its neighbours if they are free.
    fn add_free(&mut self, start: Start, bytes: usize) {
        let (mut start, mut bytes) = (start, bytes);
        let after = Start { byte: start.byte + bytes, ..start };
        if let Some(stretch) = self.stretches.get(&after).filter(|stretch| stretch.is_free()) {
            bytes += stretch.bytes;
            self.remove_free(after);
        }
        if let Some((&before, stretch)) = self.stretches.range(..start).next_back()
            && before.extent == start.extent
            && stretch.is_free()
        {
            bytes += stretch.bytes;
            start = before;
            self.remove_free(before);
        }
        self.stretches.insert(start, Stretch { bytes, owner: Owner::Nobody });
        self.free.insert((bytes, start));
        self.free_bytes += bytes;
    }

    fn remove_free(&mut self, start: Start) {
        let Stretch { bytes, .. } = self.stretches.remove(&start).expect("a free stretch is a stretch");
        assert!(self.free.remove(&(bytes, start)), "it is free");
        self.free_bytes -= bytes;
    }

    /// A random byte of all extents.
    fn draw_start(&mut self) -> Option<Start> {
        // xorshift64
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let mut byte = (self.random % self.bytes().max(1) as u64) as usize;
        for (extent, &bytes) in self.extents.iter().enumerate() {
            if byte < bytes {
                return Some(Start { extent, byte });
            }
            byte -= bytes;
        }
        None
    }
}

impl<O> Stretch<O> {
    fn is_free(&self) -> bool {
        matches!(self.owner, Owner::Nobody)
    }
}

fn rounded(bytes: usize) -> usize {
    bytes.max(1).next_multiple_of(ALIGNMENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// Checks that stretches have no gaps, that free neighbours are joined, and that the lists of free stretches agree.
    fn check(arena: &Arena<u32>) {
        for (extent, &bytes) in arena.extents.iter().enumerate() {
            let stretches = arena.stretches.iter().filter(|(start, _)| start.extent == extent);
            let (mut end, mut was_free) = (0, false);
            for (start, stretch) in stretches {
                assert!(start.byte == end && stretch.bytes > 0 && !(was_free && stretch.is_free()));
                assert_eq!(arena.free.contains(&(stretch.bytes, *start)), stretch.is_free());
                (end, was_free) = (end + stretch.bytes, stretch.is_free());
            }
            assert_eq!(end, bytes);
        }
        assert_eq!(arena.free.iter().map(|(bytes, _)| bytes).sum::<usize>(), arena.free_bytes);
        assert_eq!(arena.free.len(), arena.stretches.values().filter(|stretch| stretch.is_free()).count());
    }

    proptest! {
        #[test]
        fn places_never_overlap_and_nothing_is_lost(
            extents in vec(1usize..40, 1..4),
            steps in vec((0u8..5, 1usize..3000, 0usize..64), 1..120),
        ) {
            let mut arena = Arena::default();
            extents.iter().for_each(|blocks| arena.add(blocks * ALIGNMENT));
            let mut regions: HashMap<u32, Region> = HashMap::new();
            let (mut held, mut next) = (Vec::new(), 0);
            for (step, bytes, which) in steps {
                match step {
                    0 | 1 => if let Some(region) = arena.take(bytes) {
                        prop_assert!(region.bytes >= bytes && region.start.byte % ALIGNMENT == 0);
                        if step == 0 { arena.own(region, next); regions.insert(next, region); } else { held.push(region); }
                        next += 1;
                    },
                    2 => if let Some(eviction) = arena.cheapest(bytes, f32::INFINITY, |&piece| piece as f32) {
                        let worth: f32 = eviction.pieces.iter().map(|&piece| piece as f32).sum();
                        prop_assert_eq!(eviction.worth, worth);
                        regions.retain(|piece, _| !eviction.pieces.contains(piece));
                        arena.evict(eviction.region);
                        held.push(eviction.region);
                    },
                    3 => if let Some(&piece) = regions.keys().min() { arena.free(regions.remove(&piece).unwrap()) },
                    _ => if !held.is_empty() { arena.free(held.remove(which % held.len())) },
                }
                check(&arena);
                let mut all: Vec<Region> = regions.values().copied().chain(held.iter().copied()).collect();
                all.sort_by_key(|region| region.start);
                let is_apart = |two: &[Region]| {
                    let [one, other] = [two[0], two[1]];
                    one.start.extent < other.start.extent || one.start.byte + one.bytes <= other.start.byte
                };
                prop_assert!(all.windows(2).all(is_apart));
                prop_assert_eq!(all.iter().map(|region| region.bytes).sum::<usize>(), arena.used());
            }
        }
    }

    #[test]
    fn the_pieces_that_are_worth_least_make_space_and_held_ones_stay() {
        let mut arena = Arena::default();
        arena.add(8 * ALIGNMENT);
        let regions: Vec<Region> = (0..8).map(|_| arena.take(1).unwrap()).collect();
        assert_eq!((arena.take(1), arena.used()), (None, 8 * ALIGNMENT));
        for (region, piece) in regions.iter().zip(0..) {
            arena.own(*region, piece);
        }
        // worth[i] of piece i; 4 and 5 are the cheapest neighbours.
        let worth = |&piece: &u32| [9.0, 9.0, 1.0, 9.0, 2.0, 2.0, 9.0, 1.0][piece as usize];
        let found = (0..20).filter_map(|_| arena.cheapest(2 * ALIGNMENT, f32::INFINITY, worth));
        let best = found.min_by(|a, b| a.worth.total_cmp(&b.worth)).unwrap();
        assert_eq!((best.pieces, best.worth), (vec![4, 5], 4.0));
        assert_eq!((0..20).find_map(|_| arena.cheapest(2 * ALIGNMENT, 4.0, worth)), None, "nothing is worth less");
        regions.iter().for_each(|&region| arena.free(region));
        let held = arena.take(8 * ALIGNMENT).unwrap();
        assert_eq!((0..20).find_map(|_| arena.cheapest(1, f32::INFINITY, worth)), None, "all is held");
        arena.free(held);
        assert_eq!((arena.used(), arena.bytes()), (0, 8 * ALIGNMENT));
    }
}
