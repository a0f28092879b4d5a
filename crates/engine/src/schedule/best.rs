//! `best`: the worker that is predicted to take less time for the query alone, whatever waits there. It is the
//! choice of gpu-ir (Ding et al., section 9) before any load balancing.

use super::{Decision, View};
use crate::query::cost::Features;

pub fn decide(features: &Features, view: &View<'_>) -> Decision {
    match view.on_cpu(features) <= view.alone_on_gpu(features) {
        true => Decision::Cpu,
        false => Decision::Gpu,
    }
}
