//! What the cache knows of the lists that were visited, and of their pieces.

use super::arena::Region;
use super::piece::Piece;
use lanner_gpu::device::Address;
use lanner_index::open::ListSpan;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// By how much heat shrinks in a number of epochs.
pub type Aging = [f32; 512];

/// The index that a list belongs to, as the cache numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SegmentNumber(pub u32);

/// A long list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListKey {
    pub segment: SegmentNumber,
    pub start: usize,
}

/// A piece of a list.
pub type PieceKey = (ListKey, Piece);

/// What is known of the lists that were visited.
pub type Lists = HashMap<ListKey, Entry, BuildHasherDefault<KeyHasher>>;

/// A list that was visited.
#[derive(Debug)]
pub struct Entry {
    pub span: ListSpan,
    pub items: Items,
}

/// What is known of its pieces.
#[derive(Debug)]
pub enum Items {
    Sparse([Item; Piece::SPARSE]),
    Dense(Box<[Item; Piece::DENSE]>),
}

/// A piece.
#[derive(Clone, Copy, Debug, Default)]
pub struct Item {
    pub heat: f32,
    /// When the heat was last aged.
    pub epoch: u32,
    /// How many bytes it has; 0 while that is not known.
    pub bytes: u32,
    pub state: State,
}

/// Where a piece is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum State {
    #[default]
    Absent,
    Wanted,
    Coming,
    Resident(Resident),
    /// The list has no such piece: nothing is read of it.
    Empty,
    /// It is longer than the memory allows, or cannot be read.
    Refused,
}

/// A piece in device memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resident {
    pub region: Region,
    /// The address of the first byte of a list that would lie there as a whole.
    pub list: Address,
    /// Of blocks: the units that are resident, from the first block on.
    pub split: u32,
}

impl Item {
    /// Its heat now.
    pub fn aged(&self, now: u32, aging: &Aging) -> f32 {
        self.heat * aging.get((now - self.epoch) as usize).copied().unwrap_or(0.0)
    }
}

impl Entry {
    pub fn items(&self) -> &[Item] {
        match &self.items {
            Items::Sparse(items) => items,
            Items::Dense(items) => &items[..],
        }
    }

    pub fn items_mut(&mut self) -> &mut [Item] {
        match &mut self.items {
            Items::Sparse(items) => items,
            Items::Dense(items) => &mut items[..],
        }
    }

    /// The item of a piece that its kind of list has.
    pub fn item(&self, piece: Piece) -> &Item {
        match &self.items {
            Items::Sparse(items) => &items[piece as usize],
            Items::Dense(items) => &items[piece as usize - Piece::SPARSE],
        }
    }

    pub fn item_mut(&mut self, piece: Piece) -> &mut Item {
        match &mut self.items {
            Items::Sparse(items) => &mut items[piece as usize],
            Items::Dense(items) => &mut items[piece as usize - Piece::SPARSE],
        }
    }

    pub fn pieces(&self) -> impl Iterator<Item = (Piece, &Item)> {
        let pieces = match &self.items {
            Items::Sparse(_) => &Piece::ALL[..Piece::SPARSE],
            Items::Dense(_) => &Piece::ALL[Piece::SPARSE..],
        };
        pieces.iter().copied().zip(self.items())
    }
}

/// Keys are multiples of 16 with a small number: one multiplication spreads them.
#[derive(Default)]
pub struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are numbers");
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = self.0.wrapping_add(u64::from(number)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write_usize(&mut self, number: usize) {
        let product = (self.0 ^ number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = product ^ product >> 32;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
