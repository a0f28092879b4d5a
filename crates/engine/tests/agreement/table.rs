//! The engines that must agree, and the tests made from them.

use crate::collection::Lists;
use crate::device;
use crate::engine::{Engine, Runs};
use crate::requirements::{needs, path_of, test};
use lanner::Algorithm;
use lanner_index::codec::CodecName;
use libtest_mimic::Trial;
use std::collections::BTreeSet;

const DENSE: Lists = Lists::Dense;
const RAW: Lists = Lists::Sparse(CodecName::Raw);
const BITPACK: Lists = Lists::Sparse(CodecName::Bitpack);
const ELIAS_FANO: Lists = Lists::Sparse(CodecName::EliasFano);
const PFOR: Lists = Lists::Sparse(CodecName::Pfor);
const RICE: Lists = Lists::Sparse(CodecName::Rice);
const QMX: Lists = Lists::Sparse(CodecName::Qmx);

/// Every algorithm, on every executor that runs it, with dense lists and with blocks. A new algorithm or executor gets
/// its rows here; a codec that is in no row gets its rows from [`engines`].
const ENGINES: [(Algorithm, Lists, Runs); 35] = [
    (Algorithm::Exhaustive, BITPACK, Runs::Threads(1)),
    (Algorithm::Exhaustive, DENSE, Runs::Threads(2)),
    (Algorithm::Conjunction, BITPACK, Runs::Threads(1)),
    (Algorithm::Conjunction, RICE, Runs::Threads(1)),
    (Algorithm::Conjunction, DENSE, Runs::Threads(1)),
    (Algorithm::Conjunction, DENSE, Runs::Threads(2)),
    (Algorithm::Maxscore, PFOR, Runs::Threads(1)),
    (Algorithm::Maxscore, QMX, Runs::Threads(1)),
    (Algorithm::Maxscore, DENSE, Runs::Threads(1)),
    (Algorithm::BlockMaxMaxscore, ELIAS_FANO, Runs::Threads(1)),
    (Algorithm::BlockMaxMaxscore, DENSE, Runs::Threads(2)),
    (Algorithm::Scatter, RAW, Runs::Threads(1)),
    (Algorithm::Scatter, BITPACK, Runs::Threads(2)),
    (Algorithm::Scatter, DENSE, Runs::Threads(1)),
    (Algorithm::Auto, DENSE, Runs::Threads(3)),
    (Algorithm::ScoreAtATime, DENSE, Runs::Threads(1)),
    (Algorithm::ScoreAtATime, QMX, Runs::Threads(2)),
    (Algorithm::Auto, DENSE, Runs::Device),
    (Algorithm::Auto, BITPACK, Runs::Device),
    (Algorithm::Auto, ELIAS_FANO, Runs::Device),
    (Algorithm::Auto, DENSE, Runs::Loading),
    (Algorithm::Auto, PFOR, Runs::Uploading),
    (Algorithm::Auto, RICE, Runs::Device),
    (Algorithm::Auto, DENSE, Runs::Host),
    (Algorithm::Auto, PFOR, Runs::Host),
    (Algorithm::Auto, DENSE, Runs::Cached),
    (Algorithm::Auto, BITPACK, Runs::Cached),
    (Algorithm::TermAtATime, DENSE, Runs::Cached),
    (Algorithm::TermAtATime, DENSE, Runs::Device),
    (Algorithm::TermAtATime, BITPACK, Runs::Uploading),
    (Algorithm::MergePath, ELIAS_FANO, Runs::Device),
    (Algorithm::SkipSearch, PFOR, Runs::Uploading),
    (Algorithm::ParallelMergeFind, RICE, Runs::Device),
    (Algorithm::Accumulators, BITPACK, Runs::Device),
    (Algorithm::Accumulators, DENSE, Runs::Uploading),
];

/// The rows of the table, and one on the CPU and one on a device for each codec that none of them tests there.
pub fn engines() -> Vec<Engine> {
    let mut rows = ENGINES.to_vec();
    for codec in CodecName::ALL {
        let lists = Lists::Sparse(codec);
        let is_tested = |on_device| ENGINES.iter().any(|row| row.1 == lists && row.2.is_on_device() == on_device);
        if !is_tested(false) {
            rows.push((Algorithm::Auto, lists, Runs::Threads(1)));
        }
        if codec.has_gpu_decoder() && !is_tested(true) {
            rows.push((Algorithm::Auto, lists, Runs::Device));
        }
    }
    rows.into_iter().map(|(algorithm, lists, runs)| Engine::new(algorithm, lists, runs)).collect()
}

pub fn trials() -> Vec<Trial> {
    vec![test(every_algorithm_and_every_codec_has_an_engine)]
}

fn every_algorithm_and_every_codec_has_an_engine() {
    let engines = engines();
    for algorithm in Algorithm::ALL {
        assert!(engines.iter().any(|engine| engine.algorithm == algorithm), "{algorithm}");
    }
    for codec in CodecName::ALL {
        let places: BTreeSet<bool> = engines
            .iter()
            .filter(|engine| engine.lists == Lists::Sparse(codec))
            .map(|engine| engine.runs.is_on_device())
            .collect();
        assert_eq!(places, BTreeSet::from([false, codec.has_gpu_decoder()]), "{codec}");
    }
    let names: BTreeSet<String> = engines.iter().map(Engine::name).collect();
    assert_eq!(names.len(), engines.len(), "two engines have the same name");
}

/// A test body that every engine must pass.
pub struct Agreement<F> {
    body: F,
    is_for: fn(&Engine) -> bool,
    is_slow: fn(&Engine) -> bool,
}

impl<F: Fn(&Engine) + Copy + Send + 'static> Agreement<F> {
    pub fn new(body: F) -> Self {
        Agreement { body, is_for: |_| true, is_slow: |_| false }
    }

    /// Restricts the test to engines that it asks something.
    pub fn only(self, is_for: fn(&Engine) -> bool) -> Self {
        Agreement { is_for, ..self }
    }

    /// Ignores engines that take minutes on the simulator; `LANNER_REQUIRE_GPU=1` runs them on a GPU.
    pub fn slow_on_a_simulator(self, is_slow: fn(&Engine) -> bool) -> Self {
        Agreement { is_slow, ..self }
    }

    /// One test for each engine. It fails if nothing was compared.
    pub fn trials(self) -> Vec<Trial> {
        let Agreement { body, is_for, is_slow } = self;
        let trial = |engine: Engine| {
            let name = format!("{}::{}", path_of::<F>(), engine.name());
            let is_slow = engine.is_simulated() && is_slow(&engine);
            let is_present = !engine.runs.is_on_device() || has_device();
            let run = move || {
                body(&engine);
                assert!(engine.compared() > 0, "no answer was compared with the oracle's");
                engine.check_places();
                Ok(())
            };
            needs(is_present, Trial::test(name, run).with_ignored_flag(is_slow))
        };
        engines().into_iter().filter(is_for).map(trial).collect()
    }
}

/// A single test that needs a device.
pub fn device_test<F: Fn() + Send + 'static>(body: F) -> Trial {
    needs(has_device(), test(body))
}

/// Whether there is a device: without a C++ compiler this build has no simulator.
fn has_device() -> bool {
    cfg!(simulator) || device::is_gpu_required()
}
