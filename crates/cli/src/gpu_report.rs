//! `lanner stats --gpu`: where the lists of an index lie on a GPU.

use crate::failure::Failure;
use crate::quantity::{bytes, count};
use lanner::Engine;
use lanner::internals::executors::{OfPieces, Piece, ResidencyReport, bytes_of_pieces};
use lanner_index::format::segment::Section;
use serde::Serialize;
use std::io::Write;

/// Where lists lie.
#[derive(Serialize)]
pub struct GpuReport {
    device: String,
    /// `resident`: all lists in device memory; `cached`: those that are read most, the others in host memory;
    /// `uploaded`: lists travel with the queries that read them.
    lists: &'static str,
    /// Whether lists that are not resident are uploaded, all or some, since the GPU cannot read them in host memory.
    uploads: bool,
    /// Device memory for lists.
    memory_bytes: u64,
    /// Host memory in which the GPU reads lists.
    host_bytes: u64,
    pieces: Vec<PieceRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queries: Option<OnQueries>,
}

/// The pieces of one kind of all lists.
#[derive(Serialize)]
struct PieceRow {
    name: &'static str,
    bytes: u64,
    /// Bytes of these in device memory.
    resident: u64,
}

/// What the queries of a log read, since the device was opened.
#[derive(Serialize)]
struct OnQueries {
    answered: u64,
    /// Of the pieces that were read, the share that was in device memory.
    hit_rate: f64,
    /// Predicted bytes that a query reads in host memory.
    host_bytes_per_query: f64,
    copied: u64,
    evicted: u64,
}

impl GpuReport {
    /// Of an engine whose device is open, after it has answered this many queries.
    pub fn new(engine: &Engine, answered: u64) -> Result<GpuReport, Failure> {
        let report = engine.residency().ok_or_else(|| Failure::new("the GPU was lost; try again"))?;
        let (index, of_lists) = (engine.index(), bytes_of_pieces(engine.index())?);
        let short = index.segment().section(Section::ShortLists).len() as u64;
        let is_whole = report.is_whole;
        let resident = if is_whole { of_lists } else { report.cache.by_piece };
        let mut pieces = rows(&of_lists, &resident);
        // Too short to be copied one by one.
        pieces.push(PieceRow { name: "short lists", bytes: short, resident: if is_whole { short } else { 0 } });
        Ok(GpuReport {
            device: engine.device_name().unwrap_or_default(),
            lists: state(&report),
            uploads: report.uploads_lists,
            memory_bytes: report.memory_bytes,
            host_bytes: report.registered_bytes,
            pieces,
            queries: (answered > 0 && !is_whole).then(|| OnQueries::new(&report, answered)),
        })
    }

    /// Writes it as a table.
    pub fn write(&self, out: &mut impl Write) -> Result<(), Failure> {
        let (memory, host) = (bytes(self.memory_bytes), bytes(self.host_bytes));
        writeln!(out, "device          {}", self.device)?;
        writeln!(out, "lists           {}", self.explained())?;
        writeln!(out, "device memory   {memory} for lists")?;
        writeln!(out, "host memory     {host} that the GPU can read")?;
        writeln!(out, "\n{:<22}  {:>16}  {:>6}  {:>16}  {:>6}", "lists", "bytes", "share", "on the GPU", "share")?;
        let all = PieceRow {
            name: "all",
            bytes: self.pieces.iter().map(|row| row.bytes).sum(),
            resident: self.pieces.iter().map(|row| row.resident).sum(),
        };
        for PieceRow { name, bytes, resident } in self.pieces.iter().chain([&all]) {
            let [of_all, on_gpu] = [percent(*bytes, all.bytes), percent(*resident, *bytes)];
            writeln!(
                out,
                "{name:<22}  {:>16}  {of_all:>5.1}%  {:>16}  {on_gpu:>5.1}%",
                count(*bytes),
                count(*resident)
            )?;
        }
        if let Some(OnQueries { answered, hit_rate, host_bytes_per_query, copied, evicted }) = &self.queries {
            let (hits, host) = (100.0 * hit_rate, bytes(*host_bytes_per_query as u64));
            writeln!(
                out,
                "\nAfter {} queries: {hits:.1}% of the pieces that they read were on the GPU; about {host} a query came from host \
                 memory",
                count(*answered)
            )?;
            writeln!(out, "{} pieces of lists were copied to the GPU, {} evicted", count(*copied), count(*evicted))?;
        }
        Ok(())
    }

    fn explained(&self) -> &'static str {
        match (self.lists, self.uploads, self.host_bytes) {
            ("resident", ..) => "all in device memory",
            ("cached", false, _) => "those that are read most in device memory, the others read in host memory",
            ("cached", true, 0) => "those that are read most in device memory, the others uploaded with each query",
            ("cached", true, _) => {
                "those that are read most in device memory, the others read in host memory or uploaded"
            }
            _ => "uploaded with the queries that read them",
        }
    }
}

impl OnQueries {
    fn new(report: &ResidencyReport, answered: u64) -> OnQueries {
        let cache = report.cache;
        OnQueries {
            answered,
            hit_rate: cache.hit_rate(),
            host_bytes_per_query: cache.bytes_across_bus / answered as f64,
            copied: cache.admitted,
            evicted: cache.evictions,
        }
    }
}

fn rows(bytes: &OfPieces<u64>, resident: &OfPieces<u64>) -> Vec<PieceRow> {
    let row = |piece: Piece| {
        let (bytes, resident) = (bytes[piece as usize], resident[piece as usize]);
        PieceRow { name: piece.name(), bytes, resident }
    };
    Piece::ALL.into_iter().map(row).filter(|row| row.bytes > 0).collect()
}

fn state(report: &ResidencyReport) -> &'static str {
    match (report.is_whole, report.registered_bytes, report.memory_bytes) {
        (true, ..) => "resident",
        (false, 0, 0) => "uploaded",
        _ => "cached",
    }
}

fn percent(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { 100.0 * part as f64 / all as f64 }
}
