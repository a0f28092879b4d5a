//! Selection of the best k of many scored documents, as the papers do it on a GPU.
//!
//! A key is a score and a document (`score << 32 | !document`): the greater key is better, and no two are equal.
//! - [`Method::Tree`]: the greatest of every 512 keys, the greatest of every 512 of these, and so on; the best key is
//!   taken k times, each time updating the branch that it came from. Ding et al., Using Graphics Processors for High
//!   Performance IR Query Processing (section 8.2).
//! - [`Method::Bitonic`]: thread blocks sort as many keys as fit in shared memory and keep k each, until one thread
//!   block sorts all that are left (Batcher 1968); a single launch where there are few keys.
//! - [`Method::RadixSort`]: sorts all keys, eight bits per pass. [`Method::BucketSelect`]: divides the range of keys
//!   into buckets of equal width, counts keys per bucket, continues with the bucket of the k-th key, and finally sorts
//!   the keys that are not below it (Alabi et al. 2012). [`cpu`]: a partial sort. Liu et al., Griffin (section 3.1.3),
//!   compares them.
//! - [`Method::RadixSelect`]: as bucket select, with the digits of the key as buckets, from the highest on.
//!
//! Both selections stop as soon as the keys that are not below the range fit into the final sort.

use super::compaction::{LOOKBACK_SHARED, Lookback, Scratch, ScratchLayout, THREADS, read_bytes};
use lanner_gpu::device::{Address, Command, Shape, Stream};
use lanner_gpu::error::GpuError;
use lanner_gpu::kernel::{Argument, TypedKernel};
use lanner_gpu::memory::Gpu;

/// The most keys that a selection keeps.
pub const MOST_KEPT: usize = 10_000;
/// The most keys that a thread block sorts: 128 KiB of shared memory.
const MOST_SORTED: u32 = 16_384;
/// The lowest bits of the digits that the rounds of a radix selection look at.
const SHIFTS: [u32; 6] = [53, 42, 31, 20, 9, 0];

lanner_gpu::shared! {
    mod header = "src/ptx/selection.h", includes "ptx/compaction.h", in papers;

    /// The most threads of a thread block of `selection_sort`.
    const SORT_THREADS: u32 = 1024;
    /// Keys of a group of the tree.
    const GROUP: u32 = 512;
    /// Levels of the tree, enough for 2^32 keys.
    const LEVELS: usize = 4;
    /// Bytes of shared memory of `selection_tree_extract`.
    const TREE_SHARED: usize = 272;
    /// Buckets of a round of selection.
    const BUCKETS: usize = 2048;
    /// Bytes of shared memory of a round of selection.
    const ROUND_SHARED: usize = 8228;
    /// Digits of a pass of the radix sort.
    const DIGITS: usize = 256;
    /// Keys of a thread in a tile of the radix sort.
    const RADIX_ROWS: u32 = 16;
    /// Keys of a tile of the radix sort.
    const RADIX_TILE: u32 = RADIX_ROWS * THREADS;
    /// Counts of a thread in a tile of its scan.
    const SCANNED: u32 = 8;
    /// Bytes of shared memory of the radix sort.
    const RADIX_SHARED: usize = 8192;

    /// The argument of `selection_sort`.
    struct SortArguments {
        /// The keys.
        keys: Address to "const unsigned long long",
        /// How many keys there are; null: `count`.
        count_at: Address to "const unsigned",
        /// The k best keys of each thread block, or all that it has.
        best: Address to "unsigned long long",
        /// How many keys there are.
        count: u32,
        /// Keys that a thread block sorts, a power of two.
        size: u32,
        /// Keys that a thread block keeps.
        k: u32,
        /// Unused.
        reserved: u32,
    }

    /// The argument of the kernels of the tree.
    struct TreeArguments {
        /// The keys, the greatest key of each group of them, the greatest of each group of those, and so on.
        levels: [Address; LEVELS] to "unsigned long long",
        /// The best keys.
        best: Address to "unsigned long long",
        /// How many keys each level has.
        lengths: [u32; LEVELS],
        /// The level that is a single group.
        top: u32,
        /// How many keys are taken, or which level is built.
        count: u32,
    }

    /// The state of a selection between its rounds.
    struct SelectionState {
        /// The lower end of the range that has the k-th key.
        low: u64,
        /// Its upper end.
        high: u64,
        /// Keys above the range.
        above: u32,
        /// Keys inside the range.
        inside: u32,
        /// Thread blocks that are done with the round.
        blocks_done: u32,
        /// Keys collected for the final sort.
        collected: u32,
    }

    /// The argument of the kernels of a selection.
    struct SelectArguments {
        /// The keys.
        keys: Address to "const unsigned long long",
        /// The state.
        state: Address to "SelectionState",
        /// Keys of each bucket.
        counts: Address to "unsigned",
        /// The keys for the final sort.
        collected: Address to "unsigned long long",
        /// How many keys there are.
        count: u32,
        /// How many are selected.
        k: u32,
        /// The most keys that the final sort takes.
        capacity: u32,
        /// The lowest bit of the digit that a radix selection looks at.
        shift: u32,
    }

    /// The argument of the kernels of the radix sort.
    struct RadixArguments {
        /// The keys.
        keys: Address to "const unsigned long long",
        /// The keys sorted by the digit.
        moved: Address to "unsigned long long",
        /// Keys by digit, the greatest first, and tile; after the scan, where the tile's keys of the digit go.
        counts: Address to "unsigned",
        /// The state that the tiles of the scan share.
        lookback: Lookback,
        /// How many keys there are.
        count: u32,
        /// How many tiles there are.
        tiles: u32,
        /// The lowest bit of the digit.
        shift: u32,
        /// Unused.
        reserved: u32,
    }
}

lanner_gpu::kernels! {
    super::MODULE;
    /// Sorts keys in thread blocks.
    SELECTION_SORT = "selection_sort": SortArguments;
    /// Builds a level of the tree.
    SELECTION_TREE_LEVEL = "selection_tree_level": TreeArguments;
    /// Takes the best keys from the tree.
    SELECTION_TREE_EXTRACT = "selection_tree_extract": TreeArguments;
    /// Finds the least and the greatest key.
    SELECTION_BUCKET_RANGE = "selection_bucket_range": SelectArguments;
    /// Chooses a bucket of equal width.
    SELECTION_BUCKET_ROUND = "selection_bucket_round": SelectArguments;
    /// Chooses a digit.
    SELECTION_RADIX_ROUND = "selection_radix_round": SelectArguments;
    /// Collects the keys that are not below the chosen range.
    SELECTION_COLLECT = "selection_collect": SelectArguments;
    /// Counts digits by tile.
    SELECTION_RADIX_COUNT = "selection_radix_count": RadixArguments;
    /// Scans the counts.
    SELECTION_RADIX_SCAN = "selection_radix_scan": RadixArguments;
    /// Moves keys to where their digits belong.
    SELECTION_RADIX_MOVE = "selection_radix_move": RadixArguments;
}

/// How a GPU selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// By a tree of the greatest keys.
    Tree,
    /// By sorting in thread blocks.
    Bitonic,
    /// By digits.
    RadixSelect,
    /// By sorting all.
    RadixSort,
    /// By buckets of equal width.
    BucketSelect,
}

impl Method {
    /// All of them.
    pub const ALL: [Method; 5] =
        [Method::Tree, Method::Bitonic, Method::RadixSelect, Method::RadixSort, Method::BucketSelect];
}

/// With up to this many keys the CPU is faster than any launch, the copy included: griffin's Figure 7, on an H200.
const FEW_KEYS: u32 = 4096;
/// Up to this k, keys are taken one by one from the tree: for k = 10 that takes half the time of any other method.
const FEW_KEPT: u32 = 16;

/// Where keys are selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// On the CPU, from all keys.
    Cpu,
    /// On the device.
    Gpu(Method),
}

/// The fastest way to select the best k of `count` keys.
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

/// The best keys, best first; valid once the stream has executed the launch.
#[derive(Clone, Copy, Debug)]
pub struct Best {
    /// The best key, a `u64`.
    pub keys: Address,
    /// How many there are: k, or all.
    pub count: u32,
}

impl Best {
    /// Waits for the stream and reads the keys.
    pub fn read(&self, gpu: &Gpu, stream: Stream) -> Result<Vec<u64>, GpuError> {
        let bytes = read_bytes(gpu, stream, self.keys, 8 * self.count as usize)?;
        Ok(bytes.as_chunks().0.iter().map(|key| u64::from_le_bytes(*key)).collect())
    }
}

/// A selection of the best k of keys in device memory.
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
    /// The bytes of scratch that the selection needs.
    pub fn scratch_bytes(&self, method: Method) -> usize {
        let mut layout = ScratchLayout::from(Address::NULL);
        match method {
            Method::Tree => drop(self.tree(&mut layout)),
            Method::Bitonic => drop(self.sorts(&mut layout)),
            Method::RadixSelect | Method::BucketSelect => drop(self.rounds(&mut layout)),
            Method::RadixSort => drop(self.passes(&mut layout)),
        }
        layout.end()
    }

    /// Selects with scratch of [`Selection::scratch_bytes`], which the stream uses until it has been waited for.
    ///
    /// # Panics
    /// If k is more than [`MOST_KEPT`], or there is less scratch.
    pub fn gpu(
        &self,
        gpu: &Gpu,
        stream: Stream,
        method: Method,
        scratch: impl Into<Scratch>,
    ) -> Result<Best, GpuError> {
        let scratch = scratch.into();
        assert!(self.k as usize <= MOST_KEPT, "cannot keep {} keys, only up to {MOST_KEPT}", self.k);
        let mut layout = ScratchLayout::inside(scratch, self.scratch_bytes(method));
        let count = self.kept();
        if count == 0 {
            return Ok(Best { keys: scratch.address, count });
        }
        let keys = match method {
            Method::Tree => self.run_tree(gpu, stream, &mut layout)?,
            Method::Bitonic => self.run_sorts(gpu, stream, &mut layout)?,
            Method::RadixSelect | Method::BucketSelect => self.run_rounds(gpu, stream, method, &mut layout)?,
            Method::RadixSort => self.run_passes(gpu, stream, &mut layout)?,
        };
        Ok(Best { keys, count })
    }

    fn kept(&self) -> u32 {
        self.count.min(self.k)
    }

    fn tree(&self, layout: &mut ScratchLayout) -> TreeArguments {
        let (mut levels, mut lengths) = ([self.keys; LEVELS], [self.count; LEVELS]);
        let mut top = 0;
        while lengths[top] > GROUP {
            lengths[top + 1] = lengths[top].div_ceil(GROUP);
            levels[top + 1] = layout.take(8 * lengths[top + 1] as usize);
            top += 1;
        }
        let best = layout.take(8 * self.kept() as usize);
        TreeArguments { levels, best, lengths, top: top as u32, count: self.kept() }
    }

    fn run_tree(&self, gpu: &Gpu, stream: Stream, layout: &mut ScratchLayout) -> Result<Address, GpuError> {
        let tree = self.tree(layout);
        for level in 1..=tree.top {
            let grid = tree.lengths[level as usize].div_ceil(THREADS / 32);
            let shape = Shape { grid, block: THREADS, shared: 0 };
            gpu.launch(stream, &SELECTION_TREE_LEVEL, shape, &TreeArguments { count: level, ..tree })?;
        }
        let shape = Shape { grid: 1, block: GROUP, shared: TREE_SHARED };
        gpu.launch(stream, &SELECTION_TREE_EXTRACT, shape, &tree)?;
        Ok(tree.best)
    }

    /// The successive sorts, each over the keys that the one before has kept.
    fn sorts(&self, layout: &mut ScratchLayout) -> Vec<SortArguments> {
        let mut sorts = Vec::new();
        let (mut keys, mut count) = (self.keys, self.count);
        let kept = self.kept();
        loop {
            let size = if count <= MOST_SORTED { sort_size(count) } else { sort_size(4 * kept) };
            let blocks = count.div_ceil(size).max(1);
            let last = (count - (blocks - 1) * size).min(kept);
            let left = (blocks - 1) * kept + last;
            let best = layout.take(8 * left as usize);
            sorts.push(SortArguments { keys, count_at: Address::NULL, best, count, size, k: kept, reserved: 0 });
            if blocks == 1 {
                return sorts;
            }
            (keys, count) = (best, left);
        }
    }

    fn run_sorts(&self, gpu: &Gpu, stream: Stream, layout: &mut ScratchLayout) -> Result<Address, GpuError> {
        let mut best = Address::NULL;
        for sort in self.sorts(layout) {
            launch_sort(gpu, stream, &sort)?;
            best = sort.best;
        }
        Ok(best)
    }

    /// The rounds of a selection, and the final sort.
    fn rounds(&self, layout: &mut ScratchLayout) -> (SelectArguments, SortArguments) {
        let capacity = sort_size(2 * self.kept());
        let arguments = SelectArguments {
            keys: self.keys,
            state: layout.take(size_of::<SelectionState>()),
            counts: layout.take(4 * BUCKETS),
            collected: layout.take(8 * capacity as usize),
            count: self.count,
            k: self.k,
            capacity,
            shift: 0,
        };
        let sort = SortArguments {
            keys: arguments.collected,
            // The last field of the state.
            count_at: arguments.state.plus(size_of::<SelectionState>() - 4),
            best: layout.take(8 * self.kept() as usize),
            count: 0,
            size: capacity,
            k: self.kept(),
            reserved: 0,
        };
        (arguments, sort)
    }

    fn run_rounds(
        &self,
        gpu: &Gpu,
        stream: Stream,
        method: Method,
        layout: &mut ScratchLayout,
    ) -> Result<Address, GpuError> {
        let (arguments, sort) = self.rounds(layout);
        let is_radix = method == Method::RadixSelect;
        let (low, high) = if is_radix { (0, u64::MAX) } else { (u64::MAX, 0) };
        let state = SelectionState { low, high, above: 0, inside: self.count, blocks_done: 0, collected: 0 };
        gpu.submit(stream, Command::Write { from: state.bytes(), to: arguments.state })?;
        gpu.submit(stream, Command::Clear { at: arguments.counts, bytes: 4 * BUCKETS })?;
        // Several keys per thread.
        let grid = self.count.div_ceil(4 * THREADS).min(8 * gpu.properties().multiprocessors);
        let launch = |kernel: &TypedKernel<SelectArguments>, shift, shared| {
            gpu.launch(stream, kernel, Shape { grid, block: THREADS, shared }, &SelectArguments { shift, ..arguments })
        };
        if !is_radix {
            launch(&SELECTION_BUCKET_RANGE, 0, 0)?;
        }
        if self.count > arguments.capacity {
            let round = if is_radix { &SELECTION_RADIX_ROUND } else { &SELECTION_BUCKET_ROUND };
            SHIFTS.iter().try_for_each(|&shift| launch(round, shift, ROUND_SHARED))?;
        }
        launch(&SELECTION_COLLECT, 0, 0)?;
        launch_sort(gpu, stream, &sort)?;
        Ok(sort.best)
    }

    /// The passes of the radix sort.
    fn passes(&self, layout: &mut ScratchLayout) -> Vec<RadixArguments> {
        let tiles = self.count.div_ceil(RADIX_TILE);
        let counts = layout.take(4 * DIGITS * tiles as usize);
        let lookback = Lookback::reserve(layout, (DIGITS as u32 * tiles).div_ceil(SCANNED * THREADS));
        let halves = [0, 1].map(|_| layout.take(8 * self.count as usize));
        let pass = |number: usize| RadixArguments {
            keys: if number == 0 { self.keys } else { halves[(number + 1) % 2] },
            moved: halves[number % 2],
            counts,
            lookback,
            count: self.count,
            tiles,
            shift: 8 * number as u32,
            reserved: 0,
        };
        (0..8).map(pass).collect()
    }

    fn run_passes(&self, gpu: &Gpu, stream: Stream, layout: &mut ScratchLayout) -> Result<Address, GpuError> {
        let mut sorted = Address::NULL;
        for pass in self.passes(layout) {
            let tiles = Shape { grid: pass.tiles, block: THREADS, shared: RADIX_SHARED };
            pass.lookback.clear(gpu, stream)?;
            gpu.launch(stream, &SELECTION_RADIX_COUNT, tiles, &pass)?;
            gpu.launch(stream, &SELECTION_RADIX_SCAN, pass.lookback.shape(LOOKBACK_SHARED), &pass)?;
            gpu.launch(stream, &SELECTION_RADIX_MOVE, tiles, &pass)?;
            sorted = pass.moved;
        }
        Ok(sorted)
    }
}

/// Keys that a thread block sorts, given how many there are.
fn sort_size(count: u32) -> u32 {
    count.next_power_of_two().clamp(64, MOST_SORTED)
}

fn launch_sort(gpu: &Gpu, stream: Stream, sort: &SortArguments) -> Result<(), GpuError> {
    // A count in device memory is at most the size.
    let grid = sort.count.div_ceil(sort.size).max(1);
    let shape = Shape { grid, block: (sort.size / 2).min(SORT_THREADS), shared: 8 * sort.size as usize };
    gpu.launch(stream, &SELECTION_SORT, shape, sort)
}

/// Keeps the best k keys, best first: the partial sort of the CPU.
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
