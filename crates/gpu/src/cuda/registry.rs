//! Which host memory of the process is registered with the driver, which refuses to register a page twice. Several devices,
//! or several indexes that share a mapping, register the same ranges: these are counted.

use crate::device::Address;
use std::collections::BTreeMap;

/// Registered ranges, by their first bytes.
#[derive(Debug, Default)]
pub struct Registry {
    ranges: BTreeMap<usize, Registered>,
}

#[derive(Debug)]
struct Registered {
    bytes: usize,
    address: Address,
    count: usize,
}

impl Registry {
    /// Counts another user of a range; returns its address if it is registered already.
    pub fn count(&mut self, host: usize, bytes: usize) -> Option<Address> {
        let range = self.ranges.get_mut(&host).filter(|range| range.bytes == bytes)?;
        range.count += 1;
        Some(range.address)
    }

    /// Notes that a range is registered now, for its first user.
    pub fn add(&mut self, host: usize, bytes: usize, address: Address) {
        self.ranges.insert(host, Registered { bytes, address, count: 1 });
    }

    /// A user of a range has ended. Returns whether it was the last.
    pub fn end(&mut self, host: usize) -> bool {
        let Some(range) = self.ranges.get_mut(&host) else {
            return false;
        };
        range.count -= 1;
        let is_last = range.count == 0;
        if is_last {
            self.ranges.remove(&host);
        }
        is_last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_registered_until_its_last_user_has_ended() {
        let mut registry = Registry::default();
        assert_eq!(registry.count(4096, 8192), None);
        registry.add(4096, 8192, Address(7));
        assert_eq!((registry.count(4096, 8192), registry.count(4096, 4096)), (Some(Address(7)), None));
        assert_eq!([(); 3].map(|()| registry.end(4096)), [false, true, false]);
        assert_eq!(registry.count(4096, 8192), None);
    }
}
