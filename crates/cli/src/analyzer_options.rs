//! The options of an analyzer, for commands that build an index.

use crate::failure::Failure;
use lanner_index::corpus::Text;
use lanner_index::text::{Analyzer, AnalyzerChanges, Stemmer, Stop, StopWords};
use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

/// How text becomes terms.
#[derive(clap::Args)]
pub struct AnalyzerOptions {
    /// english, simple, whitespace, pretokenized, or a chain such as words+lowercase+stop+porter [default: english, or
    /// simple with the stemmer of another language]
    #[arg(long, value_name = "NAME", value_parser = Analyzer::parse)]
    analyzer: Option<Analyzer>,
    /// The stemmer, in the place of the analyzer's: none, porter, or snowball:LANGUAGE as in snowball:german
    #[arg(long, value_name = "STEMMER")]
    stem: Option<Stemmer>,
    /// Stop words, in the place of the analyzer's: none, english, or a file with words, which are stored in the index
    #[arg(long, value_name = "FILE")]
    stop: Option<StopSource>,
    /// Fold accents and other characters to ASCII, so that "cafe" finds "café"
    #[arg(long)]
    fold: bool,
    /// Index Chinese, Japanese and Korean text as pairs of characters
    #[arg(long)]
    cjk_bigram: bool,
}

/// Where stop words come from.
#[derive(Clone, Debug)]
enum StopSource {
    None,
    English,
    File(PathBuf),
}

impl FromStr for StopSource {
    type Err = Infallible;

    fn from_str(name: &str) -> Result<StopSource, Infallible> {
        Ok(match name {
            "none" => StopSource::None,
            "english" => StopSource::English,
            _ => StopSource::File(name.into()),
        })
    }
}

impl StopSource {
    /// Reads the file, if it is one.
    fn read(&self) -> Result<Stop, Failure> {
        let path = match self {
            StopSource::None => return Ok(Stop::None),
            StopSource::English => return Ok(Stop::English),
            StopSource::File(path) => path,
        };
        let words = StopWords::parse(&Text::open(path)?.strict()?);
        let empty = || format!("{}: holds no stop words; to keep all words, give --stop none", path.display());
        words.map(Stop::Own).ok_or_else(|| Failure::new(empty()))
    }
}

impl AnalyzerOptions {
    /// The analyzer that the options describe; `usual` is the one without any.
    pub fn analyzer(&self, usual: Analyzer) -> Result<Analyzer, Failure> {
        let changes = AnalyzerChanges {
            stemmer: self.stem,
            stop_words: self.stop.as_ref().map(StopSource::read).transpose()?,
            fold: self.fold,
            cjk_bigram: self.cjk_bigram,
        };
        let base = match (&self.analyzer, self.stem) {
            (Some(analyzer), _) => analyzer.clone(),
            // English stop words and possessive endings are wrong there.
            (None, Some(Stemmer::Snowball(language))) if usual.name() == "english" && !language.is_english() => {
                Analyzer::parse("simple")?
            }
            (None, _) => usual,
        };
        Ok(base.with(&changes)?)
    }
}
