//! `lanner calibrate`: measures how long queries take on this machine, so that the engine can predict it.

use crate::executor_options::ExecutorOptions;
use crate::failure::Failure;
use crate::quantity::count;
use crate::terminal::{printable_path, tell};
use crate::whole_file::{stdout, write_json_line};
use lanner::eval::Topics;
use lanner::internals::calibrate::{Calibrated, Calibration, Errors, Fit, Folder};
use lanner::internals::executors::Keep;
use lanner::internals::query::cost::Route;
use lanner::{Engine, Index, Mode, Plan, Query};
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Measure how long queries take on each executor, so that the engine can predict where they finish first
#[derive(clap::Args)]
pub struct Arguments {
    /// The index folder
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    #[command(flatten)]
    executor: ExecutorOptions,
    /// The time for all measurements, in seconds
    #[arg(long, value_name = "N", default_value_t = 30)]
    seconds: u64,
    /// A query log. Every other query is used for calibration, which makes predictions better for such queries; for the
    /// rest, answered one by one with ten hits, this prints how far predictions are off
    #[arg(long, value_name = "FILE")]
    queries: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    device: &'a str,
    fits: &'a [Fit],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    queries: Vec<OnQueries>,
    file: &'a Path,
}

/// The error of predictions for queries of a log.
#[derive(Serialize)]
struct OnQueries {
    route: &'static str,
    mode: String,
    queries: usize,
    #[serde(flatten)]
    errors: Errors,
}

/// The engines that are measured.
struct Engines {
    cpu: Engine,
    resident: Option<Engine>,
    in_host_memory: Option<Engine>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let folder = Folder::of_user()?;
    let index = Arc::new(Index::open(&arguments.index)?);
    let engines = Engines::open(&arguments.index, &index, &arguments.executor)?;
    let device = engines.resident.as_ref().and_then(Engine::device_name).unwrap_or_else(|| "cpu".to_owned());
    let calibration = Calibration::new(&engines.cpu, Duration::from_secs(arguments.seconds));
    let log = arguments.queries.as_deref().map_or(Ok(Vec::new()), read_log)?;
    let (used, unused) = every_other(log);
    let calibration = Calibration {
        queries: &used,
        resident: engines.resident.as_ref().filter(|gpu| is_whole(gpu)),
        in_host_memory: engines.in_host_memory.as_ref(),
        ..calibration.simulated(arguments.executor.is_simulated())
    };
    let calibrated = calibration.run()?;
    if calibrated.fits.iter().all(|fit| fit.leaves == 0) {
        return Err(Failure::new("too little was measured; index more documents, or give more --seconds"));
    }
    let file = folder.save(&index, &device, &calibrated.costs)?;
    let queries = errors_on(&unused, &calibration, &calibrated)?;
    let report = Report { device: &device, fits: &calibrated.fits, queries, file: &file };
    let mut out = stdout();
    match arguments.json {
        true => write_json_line(&report, &mut out)?,
        false => report.write(&mut out)?,
    }
    out.flush()?;
    Ok(())
}

impl Engines {
    fn open(folder: &Path, index: &Arc<Index>, executor: &ExecutorOptions) -> Result<Engines, Failure> {
        let engine = || Engine::new(Arc::clone(index));
        let threads = cores();
        let mut resident = executor.gpu(threads)?.map(|gpu| engine().gpu(gpu));
        match resident.as_ref().map_or(Ok(()), Engine::connect) {
            Ok(()) => {}
            Err(error) if executor.names_gpu() => return Err(error.into()),
            // There is none, and nobody asked for one.
            Err(_) => resident = None,
        }
        let options = executor.gpu(threads)?.filter(|_| resident.is_some());
        // Its own mapping of the file, which is registered whatever `resident` has registered of its own.
        let in_host_memory = options.map(|gpu| Ok::<_, Failure>(Engine::open(folder)?.gpu(gpu.keep(Keep::Nothing))));
        let in_host_memory = in_host_memory.transpose()?;
        in_host_memory.as_ref().map_or(Ok(()), Engine::connect)?;
        Ok(Engines { cpu: engine(), resident, in_host_memory })
    }
}

/// Whether all lists are resident. If pieces are cached, nobody measures how long plans take with resident lists.
fn is_whole(gpu: &Engine) -> bool {
    let is_whole = gpu.residency().is_some_and(|residency| residency.is_whole);
    if !is_whole {
        tell("the lists do not fit in the memory of the GPU: the costs of resident lists are not measured");
    }
    is_whole
}

/// The texts of the queries in a file.
fn read_log(path: &Path) -> Result<Vec<String>, Failure> {
    Ok(Topics::open(path, None)?.topics.into_iter().map(|topic| topic.text).collect())
}

/// The queries at even and at odd positions.
fn every_other(queries: Vec<String>) -> (Vec<String>, Vec<String>) {
    let (even, odd): (Vec<_>, Vec<_>) = queries.into_iter().enumerate().partition(|(number, _)| number % 2 == 0);
    let texts = |queries: Vec<(usize, String)>| queries.into_iter().map(|(_, text)| text).collect();
    (texts(even), texts(odd))
}

/// Measures the error of predictions for some queries.
fn errors_on(
    queries: &[String],
    calibration: &Calibration<'_>,
    calibrated: &Calibrated,
) -> Result<Vec<OnQueries>, Failure> {
    let mut errors = Vec::new();
    if queries.is_empty() {
        return Ok(errors);
    }
    for mode in [Mode::And, Mode::Or] {
        let plan = |text: &str| calibration.cpu.plan(&Query::new(text).mode(mode));
        let plans: Vec<Plan> = queries.iter().map(|text| plan(text)).collect::<Result<_, _>>()?;
        let plans: Vec<Plan> = plans.into_iter().filter(|plan| !plan.stages.is_empty()).collect();
        let costs = &calibrated.costs;
        let mut add = |route: Route, errors_of: Errors| {
            let (mode, queries) = (mode.to_string(), plans.len());
            errors.push(OnQueries { route: route.name(), mode, queries, errors: errors_of });
        };
        add(Route::Cpu, Errors::on_cpu(costs, calibration, &plans)?);
        if let Some(gpu) = calibration.resident {
            add(Route::GpuSingle, Errors::on_gpu(costs, gpu, &plans)?);
        }
    }
    Ok(errors)
}

/// Cores of the machine.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

impl Report<'_> {
    fn write(&self, out: &mut impl Write) -> Result<(), Failure> {
        writeln!(out, "device  {}", self.device)?;
        writeln!(out, "\n{:<17}  {:<9}  {:>7}  {:>6}  {:>6}", "route", "operation", "samples", "leaves", "error")?;
        for Fit { route, operation, samples, leaves, error } in self.fits {
            let (samples, error) = (count(*samples as u64), error.map_or("-".to_owned(), percent));
            writeln!(out, "{route:<17}  {operation:<9}  {samples:>7}  {leaves:>6}  {error:>6}")?;
        }
        if !self.queries.is_empty() {
            writeln!(out, "\n{:<17}  {:<9}  {:>7}  {:>6}  {:>8}", "route", "mode", "queries", "error", "learning")?;
        }
        for OnQueries { route, mode, queries, errors } in &self.queries {
            let (queries, error, learning) = (count(*queries as u64), percent(errors.error), percent(errors.learning));
            writeln!(out, "{route:<17}  {mode:<9}  {queries:>7}  {error:>6}  {learning:>8}")?;
        }
        writeln!(out, "\nstored in {}", printable_path(self.file))?;
        Ok(())
    }
}

fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}
