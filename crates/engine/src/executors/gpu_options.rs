//! How a GPU is opened and used: part of the public interface.

use crate::device::SmallBatches;
use crate::device::residency::Holding;
use crate::device::residency::cache::Keep;
use crate::device::session::Usage;
use lanner_gpu::cuda::Cuda;
use lanner_gpu::device::Device;
use lanner_gpu::error::GpuError;
use lanner_gpu::simulator::Simulator;
use std::sync::Arc;
use std::time::Duration;

/// A device that failed is opened again after this; the pause doubles with each further failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The default of [`GpuOptions::upload_limit`].
const UPLOAD_LIMIT: usize = 512 << 20;
/// The seed from which the simulator draws the interleaving of threads.
const SEED: u64 = 1;

/// Opens a device: when the first plan comes, and again after a failure.
pub type Open = Box<dyn Fn() -> Result<Arc<dyn Device>, GpuError> + Send + Sync>;
/// Receives one line about each failure.
pub type Report = Box<dyn Fn(&str) + Send + Sync>;

/// How a GPU is opened and used.
///
/// ```
/// use lanner::GpuOptions;
/// let gpu = GpuOptions::driver().memory(8 << 30).report(Box::new(|line| eprintln!("{line}")));
/// ```
pub struct GpuOptions {
    pub(super) open: Open,
    pub(super) memory: Option<u64>,
    pub(super) usage: Usage,
    pub(super) report: Report,
    pub(super) pause: Duration,
}

impl GpuOptions {
    /// The device that `open` opens when the first plan comes.
    #[doc(hidden)]
    pub fn new(open: Open) -> GpuOptions {
        let small_batches = SmallBatches::default();
        let holding =
            Holding { uploads_lists: false, keep: Keep::All, cached: usize::MAX, registered: half_of_memory() };
        let usage = Usage { holding, small_batches, threads: 1, upload_limit: UPLOAD_LIMIT };
        GpuOptions { open, memory: None, usage, report: Box::new(|_| {}), pause: FIRST_PAUSE }
    }

    /// The first GPU of NVIDIA's driver.
    pub fn driver() -> GpuOptions {
        GpuOptions::new(Box::new(|| Ok(Arc::new(Cuda::open(0)?))))
    }

    /// The simulator, which is for tests and learning; `None` in a build without it.
    pub fn simulator() -> Option<GpuOptions> {
        cfg!(simulator).then(|| GpuOptions::new(Box::new(|| Ok(Arc::new(Simulator::new(SEED))))))
    }

    /// Limits the device memory that is used, in bytes; the default is all that is free. If an index does not fit, its lists stay
    /// in host memory, where the GPU reads them, and the parts that are read most are kept in device memory.
    pub fn memory(self, bytes: u64) -> GpuOptions {
        GpuOptions { memory: Some(bytes), ..self }
    }

    /// Limits the host memory that the GPU may read lists in, in bytes for all indexes: these pages of the files cannot be
    /// swapped out. Other lists are copied through pinned memory with the queries that need them. The default is half of
    /// the memory of the machine.
    pub fn registered(self, bytes: u64) -> GpuOptions {
        self.holding(|holding| Holding { registered: bytes.try_into().unwrap_or(usize::MAX), ..holding })
    }

    /// Uploads the lists of each batch with it, as if the GPU could not read host memory; for tests and measurements.
    #[doc(hidden)]
    pub fn upload_lists(self) -> GpuOptions {
        self.holding(|holding| Holding { uploads_lists: true, ..holding })
    }

    /// Restricts what is kept in device memory, for tests and measurements.
    #[doc(hidden)]
    pub fn keep(self, keep: Keep) -> GpuOptions {
        self.holding(|holding| Holding { keep, ..holding })
    }

    /// Limits the device memory for pieces of lists, in bytes, for tests and measurements. Lists are never resident as a
    /// whole then.
    #[doc(hidden)]
    pub fn cached(self, bytes: usize) -> GpuOptions {
        self.holding(|holding| Holding { keep: Keep::Pieces, cached: bytes, ..holding })
    }

    fn holding(self, change: impl FnOnce(Holding) -> Holding) -> GpuOptions {
        GpuOptions { usage: Usage { holding: change(self.usage.holding), ..self.usage }, ..self }
    }

    /// Limits the bytes of lists that a batch uploads, unless a single plan needs more. Twice as many bytes of host
    /// memory are pinned. The default is 512 MiB.
    pub fn upload_limit(self, bytes: usize) -> GpuOptions {
        GpuOptions { usage: Usage { upload_limit: bytes, ..self.usage }, ..self }
    }

    /// Chooses how the commands of small batches are submitted; for measurements.
    #[doc(hidden)]
    pub fn small_batches(self, small_batches: SmallBatches) -> GpuOptions {
        GpuOptions { usage: Usage { small_batches, ..self.usage }, ..self }
    }

    /// Uses this many threads of the CPU for copying lists to upload.
    pub fn threads(self, threads: usize) -> GpuOptions {
        GpuOptions { usage: Usage { threads, ..self.usage }, ..self }
    }

    /// Reports failures, one line each. The report is made on the thread of the device: it must not ask the engine.
    pub fn report(self, report: Report) -> GpuOptions {
        GpuOptions { report, ..self }
    }

    /// Sets how long to wait before a failed device is opened again; the wait doubles with each further failure.
    pub fn pause(self, pause: Duration) -> GpuOptions {
        GpuOptions { pause, ..self }
    }
}

/// Half of the memory of the machine, in bytes.
fn half_of_memory() -> usize {
    // As Linux says it, in kilobytes; elsewhere there is no driver to register anything.
    let kilobytes = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().trim_end_matches("kB").trim().parse::<usize>().ok()
    });
    kilobytes.map_or(usize::MAX, |kilobytes| (kilobytes / 2) << 10)
}
