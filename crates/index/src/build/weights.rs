//! Which weights an index stores, parsed from names.

use std::str::FromStr;

/// Which weights an index stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weights {
    /// Frequencies.
    pub frequencies: bool,
    /// Impacts of 8 bits.
    pub impacts: bool,
}

impl FromStr for Weights {
    type Err = String;

    fn from_str(text: &str) -> Result<Weights, String> {
        let mut weights = Weights::default();
        for name in text.split(',') {
            match name.trim() {
                "tf" => weights.frequencies = true,
                "impact" => weights.impacts = true,
                name => return Err(format!("unknown weight {name:?}; give tf, impact or tf,impact")),
            }
        }
        Ok(weights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_read_from_names() {
        assert_eq!("tf,impact".parse(), Ok(Weights { frequencies: true, impacts: true }));
        assert_eq!("impact".parse(), Ok(Weights { frequencies: false, impacts: true }));
        assert!("tf,idf".parse::<Weights>().is_err_and(|what| what.contains("\"idf\"")));
    }
}
