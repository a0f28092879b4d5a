//! Which pieces of lists are in device memory: a cache that learns from what batches read. Pure: it decides, and
//! `transfer.rs` copies; so it can be tested from tables and replay a recorded log.
//!
//! **What a piece is worth.** Every visit of a list adds the bytes that the plan is predicted to read of each of its
//! pieces (`query/cost/traffic.rs`), times what a byte of such a piece costs (`piece.rs`): that is what crosses the bus
//! while the piece is in host memory. The sum is the piece's *heat*. It is aged, so that its half-life is [`HALF_LIFE`]
//! plans: frequencies as in TinyLFU, without its reset and without sketches, because a list that is visited has an entry
//! here anyway. What a resident piece is worth is its heat, halved again for each [`IDLE_HALF_LIFE`] plans since its last
//! visit: what was hot until a while ago gives way.
//!
//! **Admission.** Directories and bounds of chunks are wanted with their first visit, and everything is while plenty of
//! memory is free. Later, other pieces are wanted with the second visit, since most lists of a log are visited once and
//! copying them would take the bus as long as reading them. While there is free memory, what is wanted is admitted. Later
//! it has to be worth more than the pieces whose memory it would get (`arena.rs`), by a factor of [`ADVANTAGE`], which keeps
//! equals from replacing each other. Most visits of pieces that are not resident do not get as far: after a piece was not
//! admitted, those that are worth less for their length are not wanted either, for a while.
//!
//! **What a batch names stays.** A batch is numbered when its rows get addresses. A piece that is evicted is named by no
//! later batch, and its memory is written only after all earlier ones have ended. A piece that is copied is named by
//! batches from when the copy has ended.

use super::arena::{Arena, Region};
use super::entry::{Aging, Entry, Item, Items, ListKey, Lists, PieceKey, Resident, SegmentNumber, State};
use super::piece::Piece;
use super::report::CacheReport;
use super::visit::Visit;
use crate::device::rows::{DensePlacement, SparsePlacement};
use crate::query::cost::Traffic;
use lanner_gpu::device::Address;
use lanner_index::format::list::UNIT;
use lanner_index::open::{Column, ListSpan};
use std::collections::BTreeSet;
use std::ops::Range;

/// Plans after which a visit counts half.
pub const HALF_LIFE: u32 = 16384;
/// Plans without a visit after which a piece is worth half of its heat to the cache, beside that.
pub const IDLE_HALF_LIFE: u32 = 2048;
/// Heat is aged in steps of this many plans.
const EPOCH: u64 = 128;
/// How much more a piece must be worth than those that it replaces.
const ADVANTAGE: f32 = 1.2;
/// By how much the bar falls with each epoch.
const BAR_FALLS: f32 = 0.95;
/// The most pieces that are considered in one round, and the most of these for which others may be evicted, which takes
/// longer. Rounds follow each other while batches run, and none may delay the next batch.
const MOST_CONSIDERED: usize = 128;
const MOST_EVICTING: usize = 32;
/// Everything is wanted while this share of the memory is free.
const PLENTY: usize = 8;
/// A piece has at most this share of the memory; of longer ones, the first blocks are admitted.
const LARGEST_SHARE: usize = 4;
/// Entries without heat are forgotten when there are this many more lists than at the last time.
const FORGOTTEN_EVERY: usize = 1 << 16;

/// What may be in device memory, for tests and measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// Everything, and lists as a whole if all of them fit.
    #[default]
    All,
    /// Every piece, but no list as a whole, even if all fit.
    Pieces,
    /// Directories and bounds of chunks.
    Directories,
    /// Nothing: lists are read in host memory.
    Nothing,
}

/// A piece that is to be copied to the device.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    pub key: PieceKey,
    pub span: ListSpan,
    /// The bytes of the list.
    pub range: Range<usize>,
    pub region: Region,
    /// No batch with a smaller number may be in flight when the copy begins.
    after: u64,
}

/// Where a list was when a batch named it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Visited<P> {
    pub placement: P,
    /// Bytes that are predicted to be read in host memory.
    pub bytes: f32,
    /// Whether nothing is: all that the batch reads is in device memory.
    pub is_resident: bool,
}

/// The pieces of all lists of all indexes on a device.
#[derive(Debug)]
pub struct Cache {
    keep: Keep,
    arena: Arena<PieceKey>,
    /// The address of each extent of the arena.
    extents: Vec<Address>,
    lists: Lists,
    forget_from: usize,
    /// Plans so far.
    plans: u64,
    /// By how much heat shrinks in a number of epochs.
    aging: Aging,
    /// By how much the worth of a piece shrinks that was last visited that many epochs ago.
    idle_aging: Aging,
    /// Pieces that are worth less for each byte are not wanted.
    bar: f32,
    bar_epoch: u32,
    /// Once sorted, the hottest for their length come last.
    wanted: Vec<PieceKey>,
    sorted: usize,
    /// Moves that wait until their memory is not read any more.
    waiting: Vec<Move>,
    next_batch: u64,
    in_flight: BTreeSet<u64>,
    /// Memory that was in use may be read by batches with smaller numbers.
    evicted_before: u64,
    report: CacheReport,
}

impl Cache {
    pub fn new(keep: Keep) -> Cache {
        let halved = |plans: f32, epochs: usize| 0.5f32.powf((epochs as u64 * EPOCH) as f32 / plans);
        let aging: Aging = std::array::from_fn(|epochs| halved(HALF_LIFE as f32, epochs));
        let idle_aging = std::array::from_fn(|epochs| aging[epochs] * halved(IDLE_HALF_LIFE as f32, epochs));
        Cache {
            keep,
            arena: Arena::default(),
            extents: Vec::new(),
            lists: Lists::default(),
            forget_from: FORGOTTEN_EVERY,
            plans: 0,
            aging,
            idle_aging,
            bar: 0.0,
            bar_epoch: 0,
            wanted: Vec::new(),
            sorted: 0,
            waiting: Vec::new(),
            next_batch: 0,
            in_flight: BTreeSet::new(),
            evicted_before: 0,
            report: CacheReport::default(),
        }
    }

    /// Adds device memory, which the caller keeps until [`Cache::clear`].
    pub fn add_memory(&mut self, address: Address, bytes: usize) {
        self.arena.add(bytes);
        self.extents.push(address);
        // What was too long may not be any more.
        for item in self.lists.values_mut().flat_map(Entry::items_mut) {
            if item.state == State::Refused {
                item.state = State::Absent;
            }
        }
    }

    /// The bytes of device memory that it has.
    pub fn memory(&self) -> usize {
        self.arena.bytes()
    }

    pub fn report(&self) -> CacheReport {
        let (memory_bytes, resident_bytes) = (self.arena.bytes() as u64, self.arena.used() as u64);
        CacheReport { memory_bytes, resident_bytes, ..self.report }
    }

    /// Whether nothing is wanted, and nothing waits to be copied.
    pub fn is_settled(&self) -> bool {
        self.wanted.is_empty() && self.waiting.is_empty()
    }

    /// Begins a batch of this many plans, and returns its number.
    pub fn begin_batch(&mut self, plans: usize) -> u64 {
        let number = self.next_batch;
        self.next_batch += 1;
        self.in_flight.insert(number);
        self.plans += plans as u64;
        number
    }

    /// A batch has ended: it reads no piece any more.
    pub fn end_batch(&mut self, number: u64) {
        self.in_flight.remove(&number);
    }

    /// A batch reads a short list, which is never resident.
    pub fn visit_short(&mut self, traffic: &Traffic) {
        self.report.bytes_across_bus += f64::from(traffic.sum());
    }

    /// Where the pieces of a sparse list are now: those that are not resident, in the list at `host`. Counts the visit.
    pub fn visit_sparse(
        &mut self,
        key: ListKey,
        span: ListSpan,
        traffic: &Traffic,
        host: Address,
    ) -> Visited<SparsePlacement> {
        let (lists, mut visit) = self.visit(key);
        let entry = lists.entry(key).or_insert_with(|| Entry { span, items: Items::Sparse(Default::default()) });
        let Items::Sparse([directory, blocks]) = &mut entry.items else {
            unreachable!("a list is sparse or dense for as long as its index is open");
        };
        let directory = visit.item(directory, Piece::Directory, traffic.directory);
        let blocks = visit.item(blocks, Piece::Blocks, traffic.blocks);
        let placement = SparsePlacement {
            directory: directory.map_or(host, |it| it.list),
            head: blocks.map_or(host, |it| it.list),
            tail: blocks.filter(|it| it.split == u32::MAX).map_or(host, |it| it.list),
            split: blocks.map_or(0, |it| it.split),
            is_on_host: blocks.is_none_or(|it| it.split != u32::MAX),
        };
        let is_resident = visit.is_resident && !placement.is_on_host;
        Visited { placement, bytes: visit.bytes, is_resident }
    }

    /// The same for a dense list, of which the values of a column are read.
    pub fn visit_dense(
        &mut self,
        key: ListKey,
        span: ListSpan,
        column: Column,
        traffic: &Traffic,
        host: Address,
    ) -> Visited<DensePlacement> {
        let (lists, mut visit) = self.visit(key);
        let entry = lists.entry(key).or_insert_with(|| Entry { span, items: Items::Dense(Box::default()) });
        let Items::Dense(items) = &mut entry.items else {
            unreachable!("a list is sparse or dense for as long as its index is open");
        };
        let mut place = |piece: Piece, traffic: f32| {
            visit.item(&mut items[piece as usize - Piece::SPARSE], piece, traffic).map(|it| it.list)
        };
        let [ranks, bounds, words] = [
            place(Piece::Ranks, traffic.ranks),
            place(Piece::bounds(column), traffic.bounds),
            place(Piece::Words, traffic.words),
        ];
        let placement = DensePlacement {
            is_resident: ranks.is_some() && bounds.is_some() && words.is_some(),
            ranks: ranks.unwrap_or(host),
            bounds: bounds.unwrap_or(host),
            words: words.unwrap_or(host),
            values: place(Piece::values(column), traffic.values).unwrap_or(host),
            exceptions: place(Piece::Exceptions, traffic.values / 16.0).unwrap_or(host),
        };
        Visited { placement, bytes: visit.bytes, is_resident: visit.is_resident }
    }

    /// The lists, and what a visit changes beside them.
    fn visit(&mut self, list: ListKey) -> (&mut Lists, Visit<'_>) {
        let Cache { lists, aging, wanted, report, keep, bar, plans, arena, .. } = self;
        let (now, keep, bar) = (epoch_of(*plans), *keep, *bar);
        let has_plenty = arena.bytes() - arena.used() > arena.bytes() / PLENTY;
        (lists, Visit { list, now, aging, keep, bar, has_plenty, wanted, report, bytes: 0.0, is_resident: true })
    }

    /// Decides which of the wanted pieces are copied, and returns those that are evicted for them. `range_of` says which
    /// bytes of its list a piece has, of a long one no more than it is told; `None` if it cannot be kept.
    pub fn decide(&mut self, range_of: impl Fn(&PieceKey, ListSpan, usize) -> Option<Range<usize>>) -> Vec<PieceKey> {
        let mut evicted = Vec::new();
        if self.wanted.is_empty() {
            return evicted;
        }
        self.lower_bar();
        let mut wanted = std::mem::take(&mut self.wanted);
        if wanted.len() > self.sorted {
            // Numbers of at least 0 are ordered as their bits.
            wanted.sort_by_cached_key(|key| self.density(key).to_bits());
        }
        let first = wanted.len().saturating_sub(MOST_CONSIDERED);
        let mut looked_for = 0;
        for key in wanted.drain(first..).rev() {
            let Some(span) = self.lists.get(&key.0).map(|entry| entry.span) else {
                continue;
            };
            let state = match range_of(&key, span, self.arena.bytes() / LARGEST_SHARE) {
                None => State::Refused,
                Some(range) if range.is_empty() => State::Empty,
                Some(range) => {
                    if let Some(item) = self.item_mut(&key) {
                        item.bytes = range.len() as u32;
                    }
                    let region = self.arena.take(range.len()).or_else(|| {
                        looked_for += 1;
                        let may_evict = looked_for <= MOST_EVICTING;
                        may_evict.then(|| self.make_space(&key, range.len(), &mut evicted)).flatten()
                    });
                    match region {
                        Some(region) => {
                            // Free memory may have been in use a moment ago.
                            self.waiting.push(Move { key, span, range, region, after: self.evicted_before });
                            State::Coming
                        }
                        None => State::Absent,
                    }
                }
            };
            self.set_state(&key, state);
        }
        self.sorted = wanted.len();
        self.wanted = wanted;
        self.forget_cold();
        evicted
    }

    /// What a piece is worth for each byte.
    fn density(&self, key: &PieceKey) -> f32 {
        let bytes = self.lists.get(&key.0).map_or(0, |entry| match entry.item(key.1).bytes {
            0 => entry.span.bytes(),
            known => known as usize,
        });
        self.heat(key) / bytes.max(1) as f32
    }

    /// Evicts pieces that are worth less than a new one, if there are any whose memory is enough for it.
    fn make_space(&mut self, key: &PieceKey, bytes: usize, evicted: &mut Vec<PieceKey>) -> Option<Region> {
        let heat = self.heat(key);
        let Cache { arena, lists, idle_aging, plans, .. } = self;
        let now = epoch_of(*plans);
        let worth = |key: &PieceKey| lists.get(&key.0).map_or(0.0, |entry| entry.item(key.1).aged(now, idle_aging));
        let Some(eviction) = arena.cheapest(bytes, heat / ADVANTAGE, worth) else {
            self.bar = self.bar.max(heat / bytes as f32);
            return None;
        };
        arena.evict(eviction.region);
        self.evicted_before = self.next_batch;
        self.report.evictions += eviction.pieces.len() as u64;
        for (list, piece) in &eviction.pieces {
            if let Some(item) = self.lists.get_mut(list).map(|entry| entry.item_mut(*piece)) {
                item.state = State::Absent;
                self.report.by_piece[*piece as usize] -= u64::from(item.bytes);
            }
        }
        evicted.extend(eviction.pieces);
        Some(eviction.region)
    }

    /// The moves whose memory no batch in flight reads, of at most this many bytes unless the first has more.
    pub fn take_moves(&mut self, most_bytes: usize) -> Vec<Move> {
        let oldest = self.in_flight.first().copied().unwrap_or(u64::MAX);
        let (mut bytes, mut taken) = (0, Vec::new());
        self.waiting.retain(|it| {
            let is_taken = it.after <= oldest && (bytes == 0 || bytes + it.range.len() <= most_bytes);
            if is_taken {
                bytes += it.range.len();
                taken.push(it.clone());
            }
            !is_taken
        });
        taken
    }

    /// Where a piece is copied to.
    pub fn address(&self, region: &Region) -> Address {
        self.extents[region.start.extent].plus(region.start.byte)
    }

    /// A piece was copied: batches from now on read it in device memory.
    pub fn publish(&mut self, it: &Move) {
        let list = Address(self.address(&it.region).0.wrapping_sub(it.range.start as u64));
        let has_end = it.range.end >= it.span.bytes();
        let split = if has_end || it.key.1 != Piece::Blocks { u32::MAX } else { (it.range.len() / UNIT) as u32 };
        let Some(item) = self.item_mut(&it.key) else {
            return self.arena.free(it.region);
        };
        item.state = State::Resident(Resident { region: it.region, list, split });
        self.report.by_piece[it.key.1 as usize] += it.range.len() as u64;
        self.arena.own(it.region, it.key);
        self.report.admitted += 1;
        self.report.copied_bytes += it.range.len() as u64;
    }

    /// A piece was not copied.
    pub fn abandon(&mut self, it: &Move) {
        self.arena.free(it.region);
        self.set_state(&it.key, State::Absent);
    }

    /// Whether a batch that may read pieces is in flight.
    pub fn is_read(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// Forgets all lists and all memory. No batch is in flight, and nothing is being copied.
    pub fn clear(&mut self) {
        let Cache { keep, plans, next_batch, report, .. } = *self;
        let report = CacheReport { by_piece: Default::default(), ..report };
        *self = Cache { plans, next_batch, report, ..Cache::new(keep) };
    }

    /// Forgets an index. None of its batches is in flight.
    pub fn forget(&mut self, segment: SegmentNumber) {
        let Cache { arena, lists, wanted, sorted, waiting, report, .. } = self;
        lists.retain(|key, entry| {
            let is_kept = key.segment != segment;
            if !is_kept {
                for (piece, item) in entry.pieces() {
                    if let State::Resident(resident) = item.state {
                        arena.free(resident.region);
                        report.by_piece[piece as usize] -= u64::from(item.bytes);
                    }
                }
            }
            is_kept
        });
        wanted.retain(|key| key.0.segment != segment);
        *sorted = 0;
        waiting.retain(|it| {
            let is_kept = it.key.0.segment != segment;
            if !is_kept {
                arena.free(it.region);
            }
            is_kept
        });
    }

    /// Where the pieces of a list are.
    #[cfg(test)]
    pub fn pieces_of(&self, list: &ListKey) -> Vec<(Piece, State)> {
        self.lists
            .get(list)
            .map_or(Vec::new(), |entry| entry.pieces().map(|(piece, item)| (piece, item.state)).collect())
    }

    /// Whether a piece is resident.
    #[cfg(test)]
    fn is_resident(&self, key: &PieceKey) -> bool {
        self.lists.get(&key.0).is_some_and(|entry| matches!(entry.item(key.1).state, State::Resident(_)))
    }

    fn heat(&self, key: &PieceKey) -> f32 {
        self.lists.get(&key.0).map_or(0.0, |entry| entry.item(key.1).aged(epoch_of(self.plans), &self.aging))
    }

    fn item_mut(&mut self, (list, piece): &PieceKey) -> Option<&mut Item> {
        self.lists.get_mut(list).map(|entry| entry.item_mut(*piece))
    }

    fn set_state(&mut self, key: &PieceKey, state: State) {
        if let Some(item) = self.item_mut(key) {
            item.state = state;
        }
    }

    fn lower_bar(&mut self) {
        let now = epoch_of(self.plans);
        self.bar *= BAR_FALLS.powi(now.saturating_sub(self.bar_epoch).min(1000) as i32);
        self.bar_epoch = now;
    }

    /// Forgets lists that were not visited for long, once there are many more than before.
    fn forget_cold(&mut self) {
        if self.lists.len() < self.forget_from {
            return;
        }
        let (now, aging) = (epoch_of(self.plans), self.aging);
        let is_kept = |item: &Item| {
            !matches!(item.state, State::Absent | State::Empty | State::Refused) || item.aged(now, &aging) > 0.0
        };
        self.lists.retain(|_, entry| entry.items().iter().any(is_kept));
        self.forget_from = self.lists.len() + FORGOTTEN_EVERY;
    }
}

fn epoch_of(plans: u64) -> u32 {
    (plans / EPOCH) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 1 << 20;

    fn key(list: usize) -> ListKey {
        ListKey { segment: SegmentNumber(0), start: 16 * list }
    }

    /// A list of 4,096 bytes, of which 128 are the directory.
    fn span(list: usize) -> ListSpan {
        ListSpan { is_long: true, start: 16 * list, end: 16 * list + 4096 }
    }

    fn range_of(key: &PieceKey, _: ListSpan, most: usize) -> Option<Range<usize>> {
        Some(match key.1 {
            Piece::Directory => 0..128,
            _ => 128..4096.min(128 + most),
        })
    }

    fn cache(bytes: usize) -> Cache {
        let mut cache = Cache::new(Keep::All);
        cache.add_memory(Address(1 << 40), bytes);
        cache
    }

    /// A batch of one plan that reads a list as a whole; then all that was decided is copied.
    fn visit(cache: &mut Cache, list: usize) -> (SparsePlacement, f32) {
        let number = cache.begin_batch(1);
        let traffic = Traffic { directory: 128.0, blocks: 3968.0, ..Traffic::default() };
        let visited = cache.visit_sparse(key(list), span(list), &traffic, Address(4096 + 16 * list as u64));
        cache.end_batch(number);
        settle(cache);
        (visited.placement, visited.bytes)
    }

    fn visit_times(cache: &mut Cache, list: usize, times: usize) {
        for _ in 0..times {
            visit(cache, list);
        }
    }

    fn settle(cache: &mut Cache) {
        cache.decide(range_of);
        cache.take_moves(usize::MAX).iter().for_each(|it| cache.publish(it));
    }

    #[test]
    fn a_directory_becomes_resident_with_the_first_visit_and_blocks_with_the_second_if_little_memory_is_free() {
        let mut cache = cache(9 * 4096);
        (10..18).for_each(|list| visit_times(&mut cache, list, 1));
        let before = cache.report();
        assert_eq!((before.misses, before.admitted, before.resident_bytes), (16, 16, 8 * 4096), "plenty was free");
        let host = Address(4096 + 16);
        let absent = SparsePlacement { directory: host, head: host, tail: host, split: 0, is_on_host: true };
        assert_eq!(visit(&mut cache, 1), (absent, 4096.0));
        let (second, bytes) = visit(&mut cache, 1);
        assert!(second.directory != host && second.head == host && second.split == 0 && bytes == 3968.0);
        let (third, bytes) = visit(&mut cache, 1);
        assert!(third.head != host && third.tail == third.head && third.split == u32::MAX && bytes == 0.0);
        let report = cache.report();
        assert_eq!((report.hits, report.misses, report.admitted, report.resident_bytes), (3, 19, 18, 9 * 4096));
        assert_eq!((report.by_piece[Piece::Directory as usize], report.by_piece.iter().sum()), (9 * 128, 9 * 4096));
        assert_eq!(report.bytes_across_bus - before.bytes_across_bus, 4096.0 + 3968.0);
        // A piece lies where its list would.
        assert_eq!(third.head.plus(128).0 % 128, 0);
    }

    #[test]
    fn what_is_read_most_replaces_what_is_read_least_and_nothing_replaces_its_equal() {
        // Memory for the blocks of eight lists, and directories.
        let mut cache = cache(9 * 4096);
        for round in 0..40 {
            (0..8).for_each(|list| visit_times(&mut cache, list, 1));
            if round > 2 {
                assert_eq!(cache.report().evictions, 0, "all fit");
            }
        }
        // Another one that is read as often comes and goes; the eight stay.
        let resident = |cache: &Cache, list: usize| cache.is_resident(&(key(list), Piece::Blocks));
        for _ in 0..3 {
            (0..9).for_each(|list| visit_times(&mut cache, list, 1));
        }
        assert_eq!((0..8).filter(|&list| resident(&cache, list)).count(), 8);
        // One that is read far more often comes in.
        for _ in 0..200 {
            visit(&mut cache, 20);
            visit(&mut cache, 3);
        }
        assert!(resident(&cache, 20) && resident(&cache, 3));
    }

    #[test]
    fn after_the_hot_lists_change_the_new_ones_are_resident_within_two_half_lives() {
        let mut cache = cache(64 * 4096);
        let read = |cache: &mut Cache, from: usize| {
            let before = cache.report();
            for number in 0..HALF_LIFE as usize {
                visit(cache, from + number * 7919 % 56);
            }
            let after = cache.report();
            (after.hits - before.hits) as f64 / (after.hits + after.misses - before.hits - before.misses) as f64
        };
        assert!((read(&mut cache, 0), read(&mut cache, 0)).1 > 0.99);
        read(&mut cache, 1000);
        read(&mut cache, 1000);
        assert!(read(&mut cache, 1000) > 0.95);
    }

    #[test]
    fn memory_that_a_batch_in_flight_may_read_is_not_written() {
        let mut cache = cache(9 * 4096);
        (0..9).for_each(|list| visit_times(&mut cache, list, 3));
        let batch = cache.begin_batch(1);
        // While it runs, another list becomes much hotter.
        let traffic = Traffic { directory: 128.0, blocks: 40_000.0, ..Traffic::default() };
        for _ in 0..3 {
            let number = cache.begin_batch(1);
            cache.visit_sparse(key(20), span(20), &traffic, Address(1));
            cache.end_batch(number);
        }
        let evicted = cache.decide(range_of);
        let (list, _) = evicted[0];
        let read = cache.visit_sparse(list, span(list.start / 16), &Traffic::default(), Address(2)).placement;
        assert!(read.directory == Address(2) || read.head == Address(2), "later batches read it in host memory");
        assert!(cache.take_moves(usize::MAX).is_empty());
        cache.end_batch(batch);
        let moves = cache.take_moves(usize::MAX);
        assert!(moves.iter().any(|it| it.key == (key(20), Piece::Blocks)));
        moves.iter().for_each(|it| cache.abandon(it));
        assert!(!cache.is_resident(&(key(20), Piece::Blocks)));
    }

    #[test]
    fn of_a_piece_that_is_too_long_the_first_blocks_are_resident() {
        let mut cache = cache(4 * 1024);
        visit_times(&mut cache, 1, 3);
        let (placement, _) = visit(&mut cache, 1);
        assert_eq!((placement.split, placement.tail), (1024 / 16, Address(4096 + 16)));
        assert!(placement.head != placement.tail);
    }

    #[test]
    fn an_index_that_is_forgotten_leaves_its_memory() {
        let mut cache = cache(BYTES);
        (0..9).for_each(|list| visit_times(&mut cache, list, 3));
        assert!(cache.report().resident_bytes > 9 * 4000);
        cache.forget(SegmentNumber(1));
        assert!(cache.report().resident_bytes > 0);
        let number = cache.begin_batch(1);
        cache.visit_sparse(key(10), span(10), &Traffic { directory: 1.0, ..Traffic::default() }, Address(0));
        cache.end_batch(number);
        cache.decide(range_of);
        cache.forget(SegmentNumber(0));
        assert_eq!((cache.report().resident_bytes, cache.is_settled()), (0, true));
        assert_eq!((cache.report().by_piece, cache.memory()), ([0; Piece::ALL.len()], BYTES));
        visit_times(&mut cache, 1, 3);
        let before = cache.report();
        cache.clear();
        let after = CacheReport { memory_bytes: 0, resident_bytes: 0, by_piece: Default::default(), ..before };
        assert_eq!((cache.report(), cache.memory()), (after, 0), "what it did is not forgotten");
    }

    #[test]
    fn pieces_of_the_other_kinds_are_kept_only_if_they_may_be() {
        for (keep, expected) in [(Keep::All, 2), (Keep::Directories, 1), (Keep::Nothing, 0)] {
            let mut cache = Cache { keep, ..cache(BYTES) };
            visit_times(&mut cache, 1, 4);
            assert_eq!(cache.report().admitted, expected, "{keep:?}");
        }
    }
}
