//! Plans on a device: rows, batches, launches, what is resident, and the session that runs them.

pub(crate) mod batch;
pub mod decode;
pub mod kernels;
pub(crate) mod layout;
pub(crate) mod resident;
pub(crate) mod rows;
pub(crate) mod session;
pub(crate) mod upload;

pub use session::SmallBatches;
