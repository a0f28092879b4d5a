//! Checks before timing: Lanner's answers must equal the oracle's; the overlap of the peers' answers is reported.

use super::contestant::Contestant;
use super::queries::QuerySet;
use super::setup::Setup;
use super::{Findings, Race};
use crate::agreement::{self, Asked, Check, EQUALS_ORACLE, share_in_common};
use crate::error::Result;
use crate::query_log::spread;
use crate::result::{Label, Measurement};
use crate::statistics::mean;
use crate::suite::RaceEngine;
use crate::table::Table;
use lanner::{Mode, Query, Searcher};
use std::collections::HashSet;

/// Checks Lanner's indexes, and compares the answers of the peers with Lanner's.
pub fn run(race: &Race<'_>, setup: &Setup, sets: &[QuerySet], contestants: &mut [Contestant]) -> Result<Findings> {
    let mut rows = Vec::new();
    let mut table = agreement::table(&format!("{}: agreement of the answers", setup.name));
    check_lanner(race, setup, sets, &mut table)?;
    for (set, mode) in sets.iter().flat_map(|set| race.modes().into_iter().map(move |mode| (set, mode))) {
        let overlaps = overlaps(race, &setup.name, (set, mode), contestants)?;
        overlaps.iter().for_each(|row| agreement::peer_row(&mut table, row, set.texts.len()));
        rows.extend(overlaps);
    }
    Ok(Findings::new(rows).table(table))
}

fn check_lanner(race: &Race<'_>, setup: &Setup, sets: &[QuerySet], table: &mut Table) -> Result<()> {
    let checked: Vec<Vec<String>> = sets.iter().map(|set| spread(&set.texts, race.part.checked)).collect();
    let wanted: HashSet<String> = checked.iter().flatten().flat_map(|text| race.analyzer.terms(text)).collect();
    let bm25 = race.context.suite.collection.bm25();
    // On a thread of its own, which has a heap of its own: the millions of terms of the oracle would leave the heap of
    // this thread fragmented, and queries of a hundred terms would be timed with slower allocations.
    let (input, analyzer) = (&setup.input, &race.analyzer);
    let make = || agreement::oracle_of(input, analyzer, bm25, Some(&wanted));
    let oracle = std::thread::scope(|scope| scope.spawn(make).join().expect("the oracle does not panic"))?;
    let searcher = Searcher::open(&setup.lanner.default)?;
    let bisected = setup.lanner.bisected.as_ref().map(Searcher::open).transpose()?;
    let check = Check { searcher: &searcher, oracle: &oracle, modes: &race.part.modes, k: &race.part.k };
    for (set, texts) in sets.iter().zip(&checked) {
        let counts = (texts.len(), set.texts.len());
        check.run(texts)?;
        agreement::equal_row(table, &set.name, EQUALS_ORACLE, counts);
        if let Some(bisected) = &bisected {
            check_scores(&searcher, bisected, texts, race)?;
            agreement::equal_row(table, &set.name, "lanner-bisected gives the same scores", counts);
        }
    }
    Ok(())
}

/// In another document order, ties are broken differently, but the scores must be the same rank by rank.
fn check_scores(searcher: &Searcher, bisected: &Searcher, texts: &[String], race: &Race<'_>) -> Result<()> {
    let k = race.part.k.iter().copied().max().unwrap_or(10);
    for (text, &mode) in texts.iter().flat_map(|text| race.part.modes.iter().map(move |mode| (text, mode))) {
        let query = Query::new(text.clone()).mode(mode).k(k);
        let scores = |searcher: &Searcher| -> Result<Vec<u32>> {
            Ok(searcher.search(&query)?.hits.iter().map(|hit| hit.units).collect())
        };
        let (engine, reference) = ("lanner-bisected", "the default index");
        let asked = Asked { engine, reference, query: text, mode: mode.to_string(), k };
        asked.compare(&scores(bisected)?, &scores(searcher)?)?;
    }
    Ok(())
}

/// Returns the overlap of each peer with Lanner for one log and mode. The top k are the first k of a longer answer, so
/// each engine answers once.
fn overlaps(
    race: &Race<'_>,
    collection: &str,
    (set, mode): (&QuerySet, Mode),
    contestants: &mut [Contestant],
) -> Result<Vec<Measurement>> {
    let largest_k = race.k().into_iter().max().unwrap_or(10);
    let mut answers = Vec::new();
    // Tantivy gives the same answers with both sources of ids.
    for contestant in contestants.iter_mut().filter(|one| one.engine != RaceEngine::TantivyIdsInMemory) {
        answers.push((contestant.engine, contestant.answers(set, (mode, largest_k))?));
    }
    let lanner = answers.iter().find(|(engine, _)| *engine == RaceEngine::Lanner);
    let Some((_, Some(lanner))) = lanner else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    let peers = answers.iter().filter(|(engine, _)| *engine != RaceEngine::Lanner);
    for (engine, peer) in peers.filter_map(|(engine, answers)| Some((engine, answers.as_ref()?))) {
        for k in race.k() {
            let shares = lanner.iter().zip(peer).map(|answers| {
                let [one, other] = [answers.0, answers.1].map(|ids| ids.iter().take(k).map(String::as_str));
                share_in_common(one, other)
            });
            let cell: [Label<'_>; 3] = [("collection", &collection), ("mode", &mode), ("k", &k)];
            let engines: [Label<'_>; 3] = [("log", &set.name), ("engine", engine), ("with", &"lanner")];
            rows.push(Measurement::new("agreement", &[cell, engines].concat()).with("share", mean(shares)));
        }
    }
    Ok(rows)
}
