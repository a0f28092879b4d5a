//! Selection of the best k of many scored documents, as the papers do it on a GPU.
//!
//! A key is a score and a document (`score << 32 | !document`): the greater is the better, and no two are the same.
//! - [`Method::Tree`]: the greatest of every 512 keys, the greatest of every 512 of these, and so on; the best is taken
//!   k times, and the branch that it came from is made anew. Ding et al., Using Graphics Processors for High
//!   Performance IR Query Processing (section 8.2).
//! - [`Method::Bitonic`]: thread blocks sort as many keys as fit into shared memory and keep k each, until one block
//!   has all that is left (Batcher 1968); a single launch where there are few keys.
//! - [`Method::RadixSort`]: sorts all keys, eight bits a pass. [`Method::BucketSelect`]: cuts the range of the keys
//!   into buckets of one width, counts them, goes on with the bucket that holds the k-th key, and in the end sorts what
//!   is not below it (Alabi et al. 2012). [`cpu`]: a partial sort. Liu et al., Griffin (section 3.1.3), compares them.
//! - [`Method::RadixSelect`]: as bucket select, with buckets by the digits of the key, from the highest on.
//!
//! Both selections stop as soon as what is not below the range fits into the final sort.

use super::compaction::{ORDER_SHARED, Order, Places, Room, THREADS, read_bytes};
use super::{
    SELECTION_BUCKET_RANGE, SELECTION_BUCKET_ROUND, SELECTION_COLLECT, SELECTION_RADIX_COUNT, SELECTION_RADIX_MOVE,
    SELECTION_RADIX_ROUND, SELECTION_RADIX_SCAN, SELECTION_SORT, SELECTION_TREE_EXTRACT, SELECTION_TREE_LEVEL,
};
use lanner_gpu::device::{Address, Command, Shape, Stream};
use lanner_gpu::error::GpuError;
use lanner_gpu::kernel::{Argument, TypedKernel};
use lanner_gpu::memory::Gpu;

/// The most keys that a selection keeps.
pub const MOST_KEPT: usize = 10_000;
/// The most keys that a thread block sorts: 128 KiB of shared memory.
const MOST_SORTED: u32 = 16_384;
/// Keys of a group of the tree.
const GROUP: u32 = 512;
/// Levels of the tree, enough for 2^32 keys.
const LEVELS: usize = 4;
/// Bytes of shared memory of `selection_tree_extract`.
const TREE_SHARED: usize = 272;
/// Buckets of a round of selection.
const BUCKETS: usize = 2048;
/// Where the digits of the rounds of a radix selection begin.
const SHIFTS: [u32; 6] = [53, 42, 31, 20, 9, 0];
/// Bytes of shared memory of a round of selection.
const ROUND_SHARED: usize = 8228;
/// Digits of a pass of the radix sort.
const DIGITS: usize = 256;
/// Keys of a tile of the radix sort.
const RADIX_TILE: u32 = 16 * THREADS;
/// Counts of a tile of its scan.
const SCAN_TILE: u32 = 8 * THREADS;
/// Bytes of shared memory of the radix sort.
const RADIX_SHARED: usize = 8192;

/// What `selection_sort` takes; `selection.cu` says what the fields mean, here and below.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct SortArguments {
    pub keys: Address,
    pub count_at: Address,
    pub best: Address,
    pub count: u32,
    pub size: u32,
    pub k: u32,
    pub reserved: u32,
}

/// What the kernels of the tree take.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct TreeArguments {
    pub levels: [Address; LEVELS],
    pub best: Address,
    pub lengths: [u32; LEVELS],
    pub top: u32,
    pub count: u32,
}

/// What the rounds of a selection know.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct SelectionState {
    pub low: u64,
    pub high: u64,
    pub above: u32,
    pub inside: u32,
    pub blocks_done: u32,
    pub collected: u32,
}

/// What the kernels of a selection take.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct SelectArguments {
    pub keys: Address,
    pub state: Address,
    pub counts: Address,
    pub collected: Address,
    pub count: u32,
    pub k: u32,
    pub room: u32,
    pub shift: u32,
}

/// What the kernels of the radix sort take.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct RadixArguments {
    pub keys: Address,
    pub moved: Address,
    pub counts: Address,
    pub order: Order,
    pub count: u32,
    pub tiles: u32,
    pub shift: u32,
    pub reserved: u32,
}

/// How a GPU selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// By a tree of greatest keys.
    Tree,
    /// By sorting as much as a thread block can.
    Bitonic,
    /// By digits.
    RadixSelect,
    /// By sorting all.
    RadixSort,
    /// By buckets of one width.
    BucketSelect,
}

impl Method {
    /// All of them.
    pub const ALL: [Method; 5] =
        [Method::Tree, Method::Bitonic, Method::RadixSelect, Method::RadixSort, Method::BucketSelect];
}

/// Up to so many keys the processor is faster than any launch, their copy counted: griffin's Figure 7, on an H200.
const FEW_KEYS: u32 = 4096;
/// Up to this k the best are taken one by one off the tree: for a k of 10 that takes half of the time of any other method.
const FEW_KEPT: u32 = 16;

/// Who selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The processor, from all keys.
    Cpu,
    /// The device.
    Gpu(Method),
}

/// Who selects the best k of so many keys soonest.
pub fn auto(count: u32, k: u32) -> Choice {
    if count <= FEW_KEYS || k as usize > MOST_KEPT {
        return Choice::Cpu;
    }
    Choice::Gpu(match k {
        _ if k <= FEW_KEPT => Method::Tree,
        _ if count <= MOST_SORTED => Method::Bitonic,
        // Most are kept.
        _ if k > count / 2 => Method::RadixSort,
        _ => Method::RadixSelect,
    })
}

/// The best keys: where they lie, the best first, once the stream has come there.
#[derive(Clone, Copy, Debug)]
pub struct Best {
    /// The best key, a `u64`.
    pub keys: Address,
    /// How many there are: k, or all.
    pub count: u32,
}

impl Best {
    /// Waits for the stream, and reads the keys.
    pub fn read(&self, gpu: &Gpu, stream: Stream) -> Result<Vec<u64>, GpuError> {
        let bytes = read_bytes(gpu, stream, self.keys, 8 * self.count as usize)?;
        Ok(bytes.as_chunks().0.iter().map(|key| u64::from_le_bytes(*key)).collect())
    }
}

/// The best k of so many keys, which lie on a device.
#[derive(Clone, Copy, Debug)]
pub struct Selection {
    /// The first key, a `u64`.
    pub keys: Address,
    /// How many there are.
    pub count: u32,
    /// How many are kept, at most [`MOST_KEPT`].
    pub k: u32,
}

impl Selection {
    /// The bytes of a room for the selection.
    pub fn room_bytes(&self, method: Method) -> usize {
        let mut places = Places::from(Address::NULL);
        match method {
            Method::Tree => drop(self.tree(&mut places)),
            Method::Bitonic => drop(self.sorts(&mut places)),
            Method::RadixSelect | Method::BucketSelect => drop(self.rounds(&mut places)),
            Method::RadixSort => drop(self.passes(&mut places)),
        }
        places.end()
    }

    /// Selects in a room of [`Selection::room_bytes`], which the stream uses until it was waited for.
    ///
    /// # Panics
    /// If k is more than [`MOST_KEPT`], or the room is smaller.
    pub fn gpu(&self, gpu: &Gpu, stream: Stream, method: Method, room: impl Into<Room>) -> Result<Best, GpuError> {
        let room = room.into();
        assert!(self.k as usize <= MOST_KEPT, "{} keys are to be kept, at most {MOST_KEPT} can be", self.k);
        let mut places = Places::inside(room, self.room_bytes(method));
        let count = self.kept();
        if count == 0 {
            return Ok(Best { keys: room.address, count });
        }
        let keys = match method {
            Method::Tree => self.run_tree(gpu, stream, &mut places)?,
            Method::Bitonic => self.run_sorts(gpu, stream, &mut places)?,
            Method::RadixSelect | Method::BucketSelect => self.run_rounds(gpu, stream, method, &mut places)?,
            Method::RadixSort => self.run_passes(gpu, stream, &mut places)?,
        };
        Ok(Best { keys, count })
    }

    fn kept(&self) -> u32 {
        self.count.min(self.k)
    }

    fn tree(&self, places: &mut Places) -> TreeArguments {
        let (mut levels, mut lengths) = ([self.keys; LEVELS], [self.count; LEVELS]);
        let mut top = 0;
        while lengths[top] > GROUP {
            lengths[top + 1] = lengths[top].div_ceil(GROUP);
            levels[top + 1] = places.take(8 * lengths[top + 1] as usize);
            top += 1;
        }
        let best = places.take(8 * self.kept() as usize);
        TreeArguments { levels, best, lengths, top: top as u32, count: self.kept() }
    }

    fn run_tree(&self, gpu: &Gpu, stream: Stream, places: &mut Places) -> Result<Address, GpuError> {
        let tree = self.tree(places);
        for level in 1..=tree.top {
            let grid = tree.lengths[level as usize].div_ceil(THREADS / 32);
            let shape = Shape { grid, block: THREADS, shared: 0 };
            gpu.launch(stream, &SELECTION_TREE_LEVEL, shape, &TreeArguments { count: level, ..tree })?;
        }
        let shape = Shape { grid: 1, block: GROUP, shared: TREE_SHARED };
        gpu.launch(stream, &SELECTION_TREE_EXTRACT, shape, &tree)?;
        Ok(tree.best)
    }

    /// The sorts that follow each other, each of what the one before has kept.
    fn sorts(&self, places: &mut Places) -> Vec<SortArguments> {
        let mut sorts = Vec::new();
        let (mut keys, mut count) = (self.keys, self.count);
        let kept = self.kept();
        loop {
            let size = if count <= MOST_SORTED { sort_size(count) } else { sort_size(4 * kept) };
            let blocks = count.div_ceil(size).max(1);
            let last = (count - (blocks - 1) * size).min(kept);
            let left = (blocks - 1) * kept + last;
            let best = places.take(8 * left as usize);
            sorts.push(SortArguments { keys, count_at: Address::NULL, best, count, size, k: kept, reserved: 0 });
            if blocks == 1 {
                return sorts;
            }
            (keys, count) = (best, left);
        }
    }

    fn run_sorts(&self, gpu: &Gpu, stream: Stream, places: &mut Places) -> Result<Address, GpuError> {
        let mut best = Address::NULL;
        for sort in self.sorts(places) {
            launch_sort(gpu, stream, &sort)?;
            best = sort.best;
        }
        Ok(best)
    }

    /// The rounds of a selection, and the sort behind them.
    fn rounds(&self, places: &mut Places) -> (SelectArguments, SortArguments) {
        let room = sort_size(2 * self.kept());
        let arguments = SelectArguments {
            keys: self.keys,
            state: places.take(size_of::<SelectionState>()),
            counts: places.take(4 * BUCKETS),
            collected: places.take(8 * room as usize),
            count: self.count,
            k: self.k,
            room,
            shift: 0,
        };
        let sort = SortArguments {
            keys: arguments.collected,
            // The last field of the state.
            count_at: arguments.state.plus(size_of::<SelectionState>() - 4),
            best: places.take(8 * self.kept() as usize),
            count: 0,
            size: room,
            k: self.kept(),
            reserved: 0,
        };
        (arguments, sort)
    }

    fn run_rounds(&self, gpu: &Gpu, stream: Stream, method: Method, places: &mut Places) -> Result<Address, GpuError> {
        let (arguments, sort) = self.rounds(places);
        let is_radix = method == Method::RadixSelect;
        let (low, high) = if is_radix { (0, u64::MAX) } else { (u64::MAX, 0) };
        let state = SelectionState { low, high, above: 0, inside: self.count, blocks_done: 0, collected: 0 };
        gpu.submit(stream, Command::Write { from: state.bytes(), to: arguments.state })?;
        gpu.submit(stream, Command::Clear { at: arguments.counts, bytes: 4 * BUCKETS })?;
        // Every thread has several keys.
        let grid = self.count.div_ceil(4 * THREADS).min(8 * gpu.limits().multiprocessors);
        let launch = |kernel: &TypedKernel<SelectArguments>, shift, shared| {
            gpu.launch(stream, kernel, Shape { grid, block: THREADS, shared }, &SelectArguments { shift, ..arguments })
        };
        if !is_radix {
            launch(&SELECTION_BUCKET_RANGE, 0, 0)?;
        }
        if self.count > arguments.room {
            let round = if is_radix { &SELECTION_RADIX_ROUND } else { &SELECTION_BUCKET_ROUND };
            SHIFTS.iter().try_for_each(|&shift| launch(round, shift, ROUND_SHARED))?;
        }
        launch(&SELECTION_COLLECT, 0, 0)?;
        launch_sort(gpu, stream, &sort)?;
        Ok(sort.best)
    }

    /// The passes of the radix sort.
    fn passes(&self, places: &mut Places) -> Vec<RadixArguments> {
        let tiles = self.count.div_ceil(RADIX_TILE);
        let counts = places.take(4 * DIGITS * tiles as usize);
        let order = Order::place(places, (DIGITS as u32 * tiles).div_ceil(SCAN_TILE));
        let halves = [0, 1].map(|_| places.take(8 * self.count as usize));
        let pass = |number: usize| RadixArguments {
            keys: if number == 0 { self.keys } else { halves[(number + 1) % 2] },
            moved: halves[number % 2],
            counts,
            order,
            count: self.count,
            tiles,
            shift: 8 * number as u32,
            reserved: 0,
        };
        (0..8).map(pass).collect()
    }

    fn run_passes(&self, gpu: &Gpu, stream: Stream, places: &mut Places) -> Result<Address, GpuError> {
        let mut sorted = Address::NULL;
        for pass in self.passes(places) {
            let tiles = Shape { grid: pass.tiles, block: THREADS, shared: RADIX_SHARED };
            pass.order.clear(gpu, stream)?;
            gpu.launch(stream, &SELECTION_RADIX_COUNT, tiles, &pass)?;
            gpu.launch(stream, &SELECTION_RADIX_SCAN, pass.order.shape(ORDER_SHARED), &pass)?;
            gpu.launch(stream, &SELECTION_RADIX_MOVE, tiles, &pass)?;
            sorted = pass.moved;
        }
        Ok(sorted)
    }
}

/// The keys that a block sorts where so many are there, or are kept with some to spare.
fn sort_size(count: u32) -> u32 {
    count.next_power_of_two().clamp(64, MOST_SORTED)
}

fn launch_sort(gpu: &Gpu, stream: Stream, sort: &SortArguments) -> Result<(), GpuError> {
    // Where the count lies on the device it is at most the size.
    let grid = sort.count.div_ceil(sort.size).max(1);
    let shape = Shape { grid, block: (sort.size / 2).min(1024), shared: 8 * sort.size as usize };
    gpu.launch(stream, &SELECTION_SORT, shape, sort)
}

/// Leaves the best k keys, the best first: the partial sort of the CPU.
pub fn cpu(keys: &mut Vec<u64>, k: usize) {
    let is_better = |a: &u64, b: &u64| b.cmp(a);
    if k < keys.len() {
        keys.select_nth_unstable_by(k, is_better);
        keys.truncate(k);
    }
    keys.sort_unstable_by(is_better);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_keys_choose_who_selects() {
        for (count, k, expected) in [
            (0, 10, Choice::Cpu),
            (4096, 10, Choice::Cpu),
            (4097, 16, Choice::Gpu(Method::Tree)),
            (4097, 17, Choice::Gpu(Method::Bitonic)),
            (16_384, 10_000, Choice::Gpu(Method::Bitonic)),
            (16_385, 16, Choice::Gpu(Method::Tree)),
            (16_385, 17, Choice::Gpu(Method::RadixSelect)),
            (16_385, 10_000, Choice::Gpu(Method::RadixSort)),
            (20_000, 10_000, Choice::Gpu(Method::RadixSelect)),
            (u32::MAX, 10_000, Choice::Gpu(Method::RadixSelect)),
            (u32::MAX, 10_001, Choice::Cpu),
        ] {
            assert_eq!(auto(count, k), expected, "{k} of {count}");
        }
    }
}
