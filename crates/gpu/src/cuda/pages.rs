//! Where host memory is divided of which only some pages are registered: the driver refuses a copy that reads both.

use crate::device::PAGE;

/// After how many bytes to divide memory of some length that begins at an address: at the border of pages that is nearest to
/// its middle, from below. What is before the first border is divided from the rest first, so that few divisions lead to
/// any border. `None` if all of it is in one page.
pub fn divide(start: usize, bytes: usize) -> Option<usize> {
    let first = PAGE - start % PAGE;
    match first {
        _ if first >= bytes => None,
        PAGE => Some((bytes / 2 / PAGE * PAGE).max(PAGE)),
        _ => Some(first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies memory as a driver that refuses what is on both sides of a border; returns how often it was asked.
    fn copy(start: usize, bytes: usize, border: usize) -> usize {
        if start >= border || start + bytes <= border {
            return 1;
        }
        let middle = divide(start, bytes).expect("a border of pages is between two pages");
        assert!((1..bytes).contains(&middle));
        1 + copy(start, middle, border) + copy(start + middle, bytes - middle, border)
    }

    #[test]
    fn a_page_and_a_half_from_the_middle_of_a_page_is_divided_at_its_border() {
        assert_eq!(divide(PAGE / 2, PAGE + PAGE / 2), Some(PAGE / 2));
        assert_eq!([divide(0, PAGE), divide(1, PAGE - 1), divide(PAGE / 2, PAGE / 2), divide(5, 0)], [None; 4]);
        assert_eq!(
            [divide(0, PAGE + 1), divide(PAGE - 1, 2), divide(0, 9 * PAGE)].map(Option::unwrap),
            [PAGE, 1, 4 * PAGE]
        );
    }

    #[test]
    fn every_border_is_found_soon() {
        for start in [0, 1, PAGE / 2, PAGE + 4095] {
            for bytes in [1, PAGE, PAGE + PAGE / 2, 3 * PAGE - 1, (64 << 20) + 5] {
                for page in (0..64).chain((64..1 << 14).step_by(331)) {
                    let calls = copy(start, bytes, page * PAGE);
                    assert!(calls <= 2 * 16, "{calls} copies of {bytes} bytes at {start}");
                }
            }
        }
    }
}
