//! What belongs to an [`Answer`](crate::Answer): its trace and the work done for it, the ids, snippets and explanations
//! of its hits, and the answers of an [`Engine`](crate::Engine) that are still to come, as a future or a stream.

pub use crate::engine::{Pending, Stream};
pub use crate::explain::Explanation;
pub use crate::query::answer::{Place, Step, Trace, Work};
pub use crate::snippet::Snippet;
pub use lanner_index::open::Ids;
