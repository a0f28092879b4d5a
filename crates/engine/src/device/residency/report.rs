//! What other threads see of the lists on a device.

use super::piece::OfPieces;

/// What other threads see of the lists on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ResidencyReport {
    /// Bytes of the lists of the index; where pieces are cached, of all indexes that share the cache.
    pub list_bytes: u64,
    /// Bytes of these that are resident.
    pub resident_bytes: u64,
    /// Device memory for lists.
    pub memory_bytes: u64,
    /// Bytes of host memory that kernels can read.
    pub registered_bytes: u64,
    /// Whether all lists are resident as a whole, or are going to be.
    pub is_whole: bool,
    /// Whether lists are uploaded with the batches that read them, all or some.
    pub uploads_lists: bool,
    /// Whether nothing is on its way to the device.
    pub is_settled: bool,
    /// What the cache did; zeros if the lists are resident as a whole.
    pub cache: CacheReport,
}

/// What the cache has done, and what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CacheReport {
    /// Pieces that batches named while they were resident.
    pub hits: u64,
    /// Pieces that batches named while they were not.
    pub misses: u64,
    /// Bytes that batches were predicted to read in host memory.
    pub bytes_across_bus: f64,
    /// Pieces that became resident.
    pub admitted: u64,
    /// Their bytes.
    pub copied_bytes: u64,
    /// Pieces that were evicted.
    pub evictions: u64,
    /// Device memory of the cache.
    pub memory_bytes: u64,
    /// How much of it is in use.
    pub resident_bytes: u64,
    /// Bytes of pieces that are resident.
    pub by_piece: OfPieces<u64>,
}

impl CacheReport {
    /// Of the pieces that batches named, the share that was resident.
    pub fn hit_rate(&self) -> f64 {
        self.hits as f64 / (self.hits + self.misses).max(1) as f64
    }
}
