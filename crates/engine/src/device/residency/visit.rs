//! A visit of a list: a batch is about to read it.

use super::cache::Keep;
use super::entry::{Aging, Item, ListKey, PieceKey, Resident, State};
use super::piece::Piece;
use super::report::CacheReport;

/// A piece that had this share of a visit's cost as heat before was visited not long ago.
const SECOND_VISIT: f32 = 0.2;
/// The most pieces that are wanted at a time.
const MOST_WANTED: usize = 1024;

/// A visit of a list: what it changes beside the entry of the list.
pub struct Visit<'a> {
    pub list: ListKey,
    pub now: u32,
    pub aging: &'a Aging,
    pub keep: Keep,
    pub bar: f32,
    /// Whether plenty of memory is free.
    pub has_plenty: bool,
    pub wanted: &'a mut Vec<PieceKey>,
    pub report: &'a mut CacheReport,
    /// Bytes that are predicted to be read in host memory.
    pub bytes: f32,
    /// Whether all pieces so far are in device memory.
    pub is_resident: bool,
}

impl Visit<'_> {
    /// Counts a visit of a piece of which this many bytes are read; returns where it is resident, if it is.
    pub fn item(&mut self, item: &mut Item, piece: Piece, traffic: f32) -> Option<Resident> {
        let before = item.aged(self.now, self.aging);
        let cost = traffic * piece.cost();
        (item.heat, item.epoch) = (before + cost, self.now);
        if let State::Resident(resident) = item.state {
            self.report.hits += 1;
            return Some(resident);
        }
        if item.state == State::Empty {
            return None;
        }
        self.is_resident = false;
        self.report.misses += 1;
        self.bytes += traffic;
        self.report.bytes_across_bus += f64::from(traffic);
        let may_be_kept = match self.keep {
            Keep::All | Keep::Pieces => true,
            Keep::Directories => piece.is_directory(),
            Keep::Nothing => false,
        };
        let is_known = self.has_plenty || piece.is_directory() || before >= SECOND_VISIT * cost;
        let is_worth_it = is_known && item.heat > self.bar * item.bytes as f32;
        let may_be_wanted = traffic > 0.0 && item.state == State::Absent && self.wanted.len() < MOST_WANTED;
        if may_be_kept && may_be_wanted && is_worth_it {
            item.state = State::Wanted;
            self.wanted.push((self.list, piece));
        }
        None
    }
}
