//! Times plans, one by one and as batches.

use super::CalibrationError;
use crate::engine::Engine;
use crate::executors::Executor;
use crate::query::answer::{Answer, Scored};
use crate::query::plan::Plan;
use lanner_index::format::IndexError;
use std::sync::Arc;
use std::thread::Builder;
use std::time::{Duration, Instant};

/// How often a plan or a batch is timed; the median counts.
pub const RUNS: usize = 3;

/// The time of a plan, and its answer.
pub struct Timed {
    /// The median of its times.
    pub time: Duration,
    /// The answer of the last run.
    pub answer: Answer<Scored>,
}

impl Timed {
    /// Times each plan by itself, all in turns.
    pub fn each(engine: &Engine, plans: &[Plan]) -> Result<Vec<Timed>, IndexError> {
        let mut times = vec![[Duration::ZERO; RUNS]; plans.len()];
        let mut answers = Vec::new();
        for run in 0..RUNS {
            answers.clear();
            for (plan, times) in plans.iter().zip(&mut times) {
                let start = Instant::now();
                let answer = engine.run(std::slice::from_ref(plan))?;
                times[run] = start.elapsed();
                answers.extend(answer);
            }
        }
        let timed = answers.into_iter().zip(times);
        Ok(timed.map(|(answer, times)| Timed { time: median(times), answer }).collect())
    }

    /// As [`Timed::each`] on the CPU, on several threads at once, each with its own engine of one thread. Every thread
    /// answers all plans, from another one on, and times those of its own part: with its part alone, it would find more
    /// of its lists in the caches than one thread with all plans does.
    pub fn in_threads(engine: &Engine, threads: usize, plans: &[Plan]) -> Result<Vec<Timed>, CalibrationError> {
        let part = plans.len().div_ceil(threads.max(1)).max(1);
        let time = |first: usize| {
            let rotated = [&plans[first..], &plans[..first]].concat();
            let mut timed = Timed::each(&alone(engine), &rotated)?;
            timed.truncate(part.min(plans.len() - first));
            Ok::<_, CalibrationError>(timed)
        };
        std::thread::scope(|scope| {
            let start = |first: usize| Ok(Builder::new().spawn_scoped(scope, move || time(first))?);
            let threads: Vec<_> = (0..plans.len()).step_by(part).map(start).collect::<Result<_, CalibrationError>>()?;
            let mut all = Vec::with_capacity(plans.len());
            for thread in threads {
                all.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
            }
            Ok(all)
        })
    }
}

/// An engine of one thread over the same index. Threads that measure share no workspaces, and no lock.
pub fn alone(engine: &Engine) -> Engine {
    Engine::new(Arc::clone(engine.index()))
}

/// Times a batch: the median time and the answers.
pub fn time_batch(engine: &Engine, plans: &[Plan]) -> Result<(Vec<Answer<Scored>>, Duration), IndexError> {
    let mut answers = Vec::new();
    let mut times = [Duration::ZERO; RUNS];
    for time in &mut times {
        let start = Instant::now();
        answers = engine.run(plans)?;
        *time = start.elapsed();
    }
    Ok((answers, median(times)))
}

fn median(mut times: [Duration; RUNS]) -> Duration {
    times.sort_unstable();
    times[RUNS / 2]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::tests::index_of;
    use crate::query::Query;

    #[test]
    fn threads_time_all_plans_in_order() {
        let (_folder, index) = index_of(500);
        let engine = Engine::new(Arc::new(index));
        let plans: Vec<Plan> =
            (1..20).map(|word| engine.plan(&Query::new(format!("word{word} word3"))).unwrap()).collect();
        let expected = engine.run(&plans).unwrap();
        for threads in [0, 1, 3, 50] {
            let timed = Timed::in_threads(&engine, threads, &plans).unwrap();
            assert_eq!(timed.len(), plans.len());
            assert!(timed.iter().zip(&expected).all(|(timed, answer)| timed.answer.hits == answer.hits));
        }
        assert!(Timed::in_threads(&engine, 4, &[]).unwrap().is_empty());
    }
}
