//! Intersection of a short list with a long one: a binary search for each document of the shorter one.
//!
//! Each thread searches on its own. The direct variant searches the longer list itself: the papers' baseline. With skip
//! pointers, the last documents of its blocks of 128 are searched first, which are few enough to stay in the cache, and
//! then only the block that can have the document.
//!
//! Ding et al., Using Graphics Processors for High Performance IR Query Processing (section 7.1, the direct algorithm,
//! and 8.1); Liu et al., Griffin (section 3.1.2).

use super::compaction::{
    DeviceList, Found, LOOKBACK_SHARED, Lookback, Operands, Origins, SEARCHED, ScratchLayout, THREADS,
};
use lanner_gpu::device::{Address, Stream};
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::Gpu;

lanner_gpu::shared! {
    mod header = "src/ptx/binary_intersection.h", includes "ptx/compaction.h", in papers;

    /// Documents of a block of the longer list, which has one skip pointer.
    const SKIPPED: usize = 128;

    /// The argument of the kernel.
    struct BinaryArguments {
        /// The shorter list.
        shorter: Address to "const unsigned",
        /// The longer list.
        longer: Address to "const unsigned",
        /// The last document of each block of the longer list; null to search the list itself.
        lasts: Address to "const unsigned",
        /// Space for as many documents as the shorter list has.
        results: Address to "unsigned",
        /// Positions in both lists.
        origins: Origins,
        /// The state that the tiles share.
        lookback: Lookback,
        /// Documents of the shorter list.
        shorter_length: u32,
        /// Documents of the longer list.
        longer_length: u32,
    }
}

lanner_gpu::kernels! {
    super::MODULE;
    /// Searches a longer list for the documents of a shorter one.
    BINARY_INTERSECTION = "binary_intersection": BinaryArguments;
}

/// Scratch for the tiles of a shorter list, and for the results.
pub(super) fn lay_out(layout: &mut ScratchLayout, shorter: DeviceList) -> (Lookback, Address) {
    Lookback::with_results(layout, shorter.length.div_ceil(SEARCHED * THREADS), shorter.length)
}

/// The bytes of scratch that [`gpu`] needs for a shorter list.
pub fn scratch_bytes(shorter: DeviceList) -> usize {
    ScratchLayout::bytes_of(|layout| lay_out(layout, shorter))
}

/// Intersects a shorter list with a longer one. `lasts` are the longer list's [`last_documents`] on the device; without
/// them the list itself is searched.
pub fn gpu(gpu: &Gpu, stream: Stream, operands: Operands, lasts: Option<Address>) -> Result<Found, GpuError> {
    let Operands { lists: [shorter, longer], origins, scratch } = operands;
    let mut layout = ScratchLayout::inside(scratch, scratch_bytes(shorter));
    let (lookback, results) = lay_out(&mut layout, shorter);
    let arguments = BinaryArguments {
        shorter: shorter.documents,
        longer: longer.documents,
        lasts: lasts.unwrap_or(Address::NULL),
        results,
        origins,
        lookback,
        shorter_length: shorter.length,
        longer_length: longer.length,
    };
    lookback.clear(gpu, stream)?;
    if lookback.tiles > 0 {
        gpu.launch(stream, &BINARY_INTERSECTION, lookback.shape(LOOKBACK_SHARED), &arguments)?;
    }
    Ok(Found { documents: results, count: lookback.total })
}

/// The skip pointers of a list: the last document of each block.
pub fn last_documents(list: &[u32]) -> Vec<u32> {
    list.chunks(SKIPPED).filter_map(|block| block.last().copied()).collect()
}

/// Intersects a shorter list with a longer one, which itself is searched.
pub fn cpu(shorter: &[u32], longer: &[u32]) -> Vec<u32> {
    shorter.iter().copied().filter(|document| longer.binary_search(document).is_ok()).collect()
}

/// Intersects a shorter list with a longer one over the longer one's [`last_documents`].
pub fn cpu_by_skips(shorter: &[u32], longer: &[u32], lasts: &[u32]) -> Vec<u32> {
    let is_in_longer = |document: &u32| {
        let first = SKIPPED * lasts.partition_point(|last| last < document);
        let block = longer.get(first..longer.len().min(first + SKIPPED)).unwrap_or_default();
        block.binary_search(document).is_ok()
    };
    shorter.iter().copied().filter(is_in_longer).collect()
}
