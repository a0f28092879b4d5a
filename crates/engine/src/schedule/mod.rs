//! Policies: where a plan runs. Each is one file with one pure function of a plan's features and of what the engine
//! sees of its workers, so that it can be tested from a table and run in a simulation.
//!
//! A policy is asked only where there is a choice: a plan that the GPU does not support runs on the CPU.

mod auto;
mod best;

use crate::executors::GpuLoad;
use crate::query::cost::{Costs, Features, Together, cpu_time};
use crate::query::plan::Plan;
use crate::query::{UnknownName, parse_name};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Who answers a query: the CPU or the GPU.
///
/// ```
/// use lanner::Policy;
/// assert_eq!("best".parse(), Ok(Policy::Best));
/// assert_eq!(Policy::default(), Policy::Auto);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Always the CPU.
    Cpu,
    /// The GPU, for all that it supports.
    Gpu,
    /// The one that is predicted to take less time for the query alone.
    Best,
    /// The one that is predicted to finish first, given what waits for each.
    #[default]
    Auto,
}

impl Policy {
    /// All policies.
    pub const ALL: [Policy; 4] = [Policy::Cpu, Policy::Gpu, Policy::Best, Policy::Auto];

    /// Decides where a plan runs.
    pub(crate) fn decide(self, features: &Features, view: &View<'_>) -> Decision {
        match self {
            Policy::Cpu => Decision::Cpu,
            Policy::Gpu => Decision::Gpu,
            Policy::Best => best::decide(features, view),
            Policy::Auto => auto::decide(features, view),
        }
    }

    /// Whether a plan stays on the CPU without a closer look, because no GPU would answer it sooner.
    pub(crate) fn keeps_short(self, plan: &Plan, cpu: &CpuLoad, aim: Aim) -> bool {
        let wants_soonest = matches!(self, Policy::Best | Policy::Auto) && aim == Aim::Latency;
        wants_soonest && !cpu.is_saturated() && is_surely_short(plan)
    }

    fn name(self) -> &'static str {
        match self {
            Policy::Cpu => "cpu",
            Policy::Gpu => "gpu",
            Policy::Best => "best",
            Policy::Auto => "auto",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Policy {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Policy, UnknownName> {
        parse_name("policy", name, &Policy::ALL)
    }
}

/// A plan that is coarsely predicted to take the CPU no longer than this is surely shorter there than on a GPU, which
/// takes 25 us and more for a single query. A tenth of the ORs of Terabyte-2005 over 8.8 million documents are, and none
/// of them took longer than 33 us; up to 12 us it would be a fifth, but some of these took 90 us.
const SURELY_SHORT: Duration = Duration::from_micros(5);

/// Whether a plan is so short that its costs are not worth a closer look, neither to decide nor to learn from: that reads
/// the models of both routes, which takes up to 5 us on a core whose caches are cold, as long as the plan itself.
pub fn is_surely_short(plan: &Plan) -> bool {
    cpu_time(plan) <= SURELY_SHORT
}

/// The CPU takes a plan of time t from a GPU that is busy anyway only if `CPU_SHARE_FACTOR` · t more of work waits there.
/// So it takes first the plans that cost it least, and longer ones the more the GPU falls behind.
const CPU_SHARE_FACTOR: u32 = 16;

/// With more queries than this for each thread the engine is saturated. A thread takes 16 at once, so four times as
/// many are no random burst; with a limit of one query for each thread, the p50 of delays at 80 % of capacity was 2.7
/// times as long (docs/scheduling.md).
const SATURATED_PER_THREAD: usize = 64;

/// Where a plan runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// On the thread that asks.
    Cpu,
    /// On the GPU.
    Gpu,
}

/// What a policy sees of the engine.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// Predicts the time of the plan.
    pub costs: &'a Costs,
    pub cpu: CpuLoad,
    pub gpu: GpuLoad,
    /// The share of what the plan is predicted to read that the GPU would read in host memory, or upload.
    pub missing: f64,
    pub aim: Aim,
}

/// What a thread that asks wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// This answer, soon.
    Latency,
    /// Many answers: this thread has more queries than both processors can answer at once.
    Throughput,
}

/// How busy the CPU is.
#[derive(Clone, Copy, Debug)]
pub struct CpuLoad {
    /// Cores of the machine.
    pub cores: usize,
    /// Threads of the engine.
    pub threads: usize,
    /// Queries that it is answering.
    pub running: usize,
    /// Queries that wait for a thread.
    pub queued: usize,
}

impl View<'_> {
    /// The predicted time of a plan on the thread that asks.
    fn on_cpu(&self, features: &Features) -> Duration {
        self.costs.predict_on_cpu(features, self.cpu.is_busy())
    }

    /// The predicted time of a plan on the GPU if it is alone.
    fn alone_on_gpu(&self, features: &Features) -> Duration {
        let (modelled, route) = self.costs.modelled_on_gpu(features, self.missing, Together::Alone);
        self.costs.corrected(modelled, route)
    }

    /// When a plan is predicted to be answered there: after everything that waits, and with the excess of the last ones.
    /// The sum of predicted times alone is too little, because batches wait for a slot, and each has its own costs: with
    /// it the mean delay of ORs at medium load was 134 us, and with what was learnt 93 us (docs/scheduling.md).
    fn gpu_finishes_after(&self, features: &Features) -> Duration {
        let GpuLoad { waiting, waiting_jobs, excess, .. } = self.gpu;
        let alone = self.alone_on_gpu(features);
        waiting + if waiting_jobs == 0 { alone } else { alone.max(excess) }
    }
}

impl CpuLoad {
    /// Whether more than half of the cores are busy. Calibration uses half of them; with more, each becomes slower.
    pub fn is_busy(&self) -> bool {
        2 * self.running > self.cores
    }

    /// Whether more queries arrive than are answered: a random burst does not let as many wait for a thread.
    fn is_saturated(&self) -> bool {
        self.queued > SATURATED_PER_THREAD * self.threads
    }

    /// How much longer a query takes because threads share cores, and how much more it costs because others may have to
    /// wait for its thread. The probability that a query waits for one of c threads, of which a share u is busy, is
    /// about u to the power of sqrt(2 (c + 1)) (Sakasegawa 1977): with 14 threads 2 % if half of them are busy, and
    /// 56 % if nine tenths are. If it waits, a thread's time is worth [`CPU_SHARE_FACTOR`] times as much, as for a
    /// stream. With a factor of 1, queries piled up at half of the engine's capacity (docs/scheduling.md).
    fn slowdown(&self) -> f64 {
        let sharing = ((self.running + 1) as f64 / self.cores.max(1) as f64).max(1.0);
        let (threads, busy) = (self.threads.max(1) as f64, (self.running + self.queued) as f64);
        let waits = (busy / threads).min(1.0).powf((2.0 * (threads + 1.0)).sqrt());
        sharing * (1.0 + f64::from(CPU_SHARE_FACTOR) * waits)
    }

    /// Whether so few threads answer queries that copying lists, which takes all cores for a while, hardly delays them.
    fn may_copy(&self) -> bool {
        4 * self.running <= self.threads
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::query::plan::tests::plan_of_lists;

    /// A row of a policy's table: what the engine sees, and what is expected for a plan.
    pub(super) struct Row {
        pub plan: Plan,
        pub aim: Aim,
        pub running: usize,
        pub queued: usize,
        pub is_open: bool,
        pub waiting_us: u64,
        pub waiting_jobs: usize,
        pub excess_us: u64,
        pub expected: Decision,
    }

    pub(super) fn check(policy: Policy, rows: &[Row]) {
        let costs = Costs::default();
        for (number, row) in rows.iter().enumerate() {
            let cpu = CpuLoad { cores: 4, threads: 4, running: row.running, queued: row.queued };
            let gpu = GpuLoad {
                is_open: row.is_open,
                uploads_lists: false,
                waiting: Duration::from_micros(row.waiting_us),
                waiting_jobs: row.waiting_jobs,
                excess: Duration::from_micros(row.excess_us),
            };
            let view = View { costs: &costs, cpu, gpu, missing: 0.0, aim: row.aim };
            assert_eq!(policy.decide(&Features::of(&row.plan), &view), row.expected, "row {number}");
        }
    }

    #[test]
    fn short_plans_stay_on_the_cpu_unless_the_policy_or_the_load_says_otherwise() {
        let (short, long) = (plan_of_lists(&[200, 300]), plan_of_lists(&[200, 30_000]));
        let idle = CpuLoad { cores: 4, threads: 4, running: 0, queued: 0 };
        let saturated = CpuLoad { queued: 100_000, ..idle };
        for policy in [Policy::Best, Policy::Auto] {
            assert!(policy.keeps_short(&short, &idle, Aim::Latency));
            assert!(!policy.keeps_short(&long, &idle, Aim::Latency));
            assert!(!policy.keeps_short(&short, &saturated, Aim::Latency));
            assert!(!policy.keeps_short(&short, &idle, Aim::Throughput));
        }
        assert!(!Policy::Gpu.keeps_short(&short, &idle, Aim::Latency));
    }

    #[test]
    fn names_are_parsed_from_what_they_print() {
        for policy in Policy::ALL {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        let error = "fastest".parse::<Policy>().unwrap_err().to_string();
        assert_eq!(error, "unknown policy \"fastest\"; give one of cpu, gpu, best, auto");
    }
}
