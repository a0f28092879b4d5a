//! Before anything is timed: our answers are the oracle's, and what each peer has in common with them is stated.

use super::contestant::Contestant;
use super::ground::Ground;
use super::{Findings, QuerySet, Race};
use crate::agreement::{self, share_in_common};
use crate::error::BenchError;
use crate::query_log::spread;
use crate::result::Measurement;
use crate::suite::RaceEngine;
use crate::table::Table;
use lanner::{Mode, Query, Searcher};
use lanner_index::weight::Bm25;
use std::collections::HashSet;

/// Checks our indexes and compares the peers' answers with ours.
pub fn run(
    race: &Race<'_>,
    ground: &Ground,
    sets: &[QuerySet],
    contestants: &mut [Contestant],
) -> Result<Findings, BenchError> {
    let mut findings = Findings::default();
    let title = format!("{}: agreement of the answers", ground.name);
    let mut table = Table::new(title, 2, &["log", "claim", "queries", "share"]);
    oracle(race, ground, sets, &mut table)?;
    for set in sets {
        for mode in race.part.modes.iter().copied().filter(|mode| race.only.keeps("mode", mode)) {
            overlaps(race, set, mode, contestants, (&ground.name, &mut findings.measurements, &mut table))?;
        }
    }
    table.notes = vec![
        "Peers keep exact lengths or other codes of them, and break ties in their own way: what is stated for them is \
         the mean share of documents that both answers hold."
            .to_owned(),
    ];
    findings.tables.push(table);
    Ok(findings)
}

fn oracle(race: &Race<'_>, ground: &Ground, sets: &[QuerySet], table: &mut Table) -> Result<(), BenchError> {
    let checked: Vec<Vec<String>> = sets.iter().map(|set| spread(&set.texts, race.part.checked)).collect();
    let wanted: HashSet<String> = checked.iter().flatten().flat_map(|text| race.analyzer.terms(text)).collect();
    let collection = &race.suite.collection;
    let bm25 = Bm25 { k1: collection.k1, b: collection.b };
    let oracle = agreement::oracle_about(&ground.input, race.analyzer, bm25, Some(&wanted))?;
    let searcher = Searcher::open(&ground.ours.lanner)?;
    let bisected = ground.ours.bisected.as_ref().map(Searcher::open).transpose()?;
    for (set, texts) in sets.iter().zip(&checked) {
        agreement::check(&searcher, &oracle, texts, &race.part.modes, &race.part.k)?;
        let queries = format!("{} of {}", texts.len(), set.texts.len());
        let claim = "lanner gives the oracle's hits, scores and order, every mode and k";
        table.row(vec![set.name.clone(), claim.to_owned(), queries.clone(), "1".to_owned()]);
        if let Some(bisected) = &bisected {
            check_scores(&searcher, bisected, texts, race)?;
            let claim = "lanner-bisected gives the same scores";
            table.row(vec![set.name.clone(), claim.to_owned(), queries, "1".to_owned()]);
        }
    }
    Ok(())
}

/// With another order of documents ties fall otherwise: the scores must be the same, rank by rank.
fn check_scores(searcher: &Searcher, bisected: &Searcher, texts: &[String], race: &Race<'_>) -> Result<(), BenchError> {
    let k = race.part.k.iter().copied().max().unwrap_or(10);
    for (text, &mode) in texts.iter().flat_map(|text| race.part.modes.iter().map(move |mode| (text, mode))) {
        let query = Query::new(text.clone()).mode(mode).k(k);
        let scores = |searcher: &Searcher| -> Result<Vec<u32>, BenchError> {
            Ok(searcher.search(&query)?.hits.iter().map(|hit| hit.units).collect())
        };
        let (found, expected) = (scores(bisected)?, scores(searcher)?);
        if found != expected {
            let place = found.iter().zip(&expected).take_while(|(found, expected)| found == expected).count();
            let difference = format!("score {:?} at rank {}", found.get(place), place + 1);
            let (engine, query, mode) = ("lanner-bisected".to_owned(), text.clone(), mode.to_string());
            return Err(BenchError::Disagreement {
                engine,
                reference: "the default index",
                query,
                mode,
                k,
                difference,
            });
        }
    }
    Ok(())
}

/// The shares of one log and mode. Fewer hits are the first of many: each engine is asked once.
fn overlaps(
    race: &Race<'_>,
    set: &QuerySet,
    mode: Mode,
    contestants: &mut [Contestant],
    (collection, measurements, table): (&str, &mut Vec<Measurement>, &mut Table),
) -> Result<(), BenchError> {
    let most = race.part.k.iter().copied().filter(|k| race.only.keeps("k", k)).max().unwrap_or(10);
    let mut answers = Vec::new();
    // Both ways to Tantivy's ids give the same answers.
    let asked = contestants.iter_mut().filter(|one| one.engine != RaceEngine::TantivyIdsInMemory);
    for contestant in asked {
        answers.push((contestant.engine, contestant.answers(set, (mode, most))?));
    }
    let ours = answers.iter().find(|(engine, _)| *engine == RaceEngine::Lanner);
    let Some((_, Some(ours))) = ours else { return Ok(()) };
    let peers = answers.iter().filter(|(engine, _)| *engine != RaceEngine::Lanner);
    for (engine, peer) in peers.filter_map(|(engine, answers)| Some((engine, answers.as_ref()?))) {
        for k in race.part.k.iter().copied().filter(|&k| k <= most && race.only.keeps("k", k)) {
            let shares = ours.iter().zip(peer).map(|(ours, peer)| {
                let [ours, peer] = [ours, peer].map(|ids| ids.iter().take(k).map(String::as_str));
                share_in_common(ours, peer)
            });
            let share = shares.sum::<f64>() / ours.len().max(1) as f64;
            let (engine, mode, k) = (engine.to_string(), mode.to_string(), k.to_string());
            let claim = format!("{engine} and lanner, {mode}, k {k}");
            table.row(vec![set.name.clone(), claim, ours.len().to_string(), format!("{share:.4}")]);
            let labels = [
                ("collection", collection),
                ("log", &set.name),
                ("engine", &engine),
                ("with", "lanner"),
                ("mode", &mode),
                ("k", &k),
            ];
            measurements.push(Measurement::new("agreement", &labels).with("share", share));
        }
    }
    Ok(())
}
