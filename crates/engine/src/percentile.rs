//! Percentiles of measured times, for the program and the benchmarks.

/// The nearest-rank percentile of sorted values: the smallest that at least `per_mille` thousandths of all do not
/// exceed. `None` if there are no values.
pub fn percentile<T: Copy>(sorted: &[T], per_mille: usize) -> Option<T> {
    let rank = (sorted.len() * per_mille).div_ceil(1000);
    sorted.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let values: Vec<u32> = (1..=20).collect();
        let found = [0, 10, 500, 950, 990, 1000].map(|per_mille| percentile(&values, per_mille).unwrap());
        assert_eq!(found, [1, 1, 10, 19, 20, 20]);
        assert_eq!((percentile(&[7], 990), percentile::<u32>(&[], 500)), (Some(7), None));
    }
}
