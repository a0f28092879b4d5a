//! Which host memory of the process is registered with the driver, which refuses to register a page twice. Several devices,
//! or several indexes that share a mapping, register the same ranges: these are counted.
//!
//! All contexts read what one of them has registered, but only as long as that one lives. So the registry keeps it alive,
//! even if its device is closed before the last user of the range has ended.

use crate::device::Address;
use std::collections::BTreeMap;

/// Registered ranges, by their first bytes. `C` is a context.
#[derive(Debug)]
pub struct Registry<C> {
    ranges: BTreeMap<usize, Registered<C>>,
}

#[derive(Debug)]
struct Registered<C> {
    bytes: usize,
    address: Address,
    count: usize,
    context: C,
}

impl<C> Default for Registry<C> {
    fn default() -> Registry<C> {
        Registry { ranges: BTreeMap::new() }
    }
}

impl<C> Registry<C> {
    /// Counts another user of a range; returns its address if it is registered already.
    pub fn count(&mut self, host: usize, bytes: usize) -> Option<Address> {
        let range = self.ranges.get_mut(&host).filter(|range| range.bytes == bytes)?;
        range.count += 1;
        Some(range.address)
    }

    /// Notes that a context has registered a range, for its first user.
    pub fn add(&mut self, host: usize, bytes: usize, address: Address, context: C) {
        self.ranges.insert(host, Registered { bytes, address, count: 1, context });
    }

    /// A user of a range has ended. If it was the last, returns the context that has registered it.
    pub fn end(&mut self, host: usize) -> Option<C> {
        let range = self.ranges.get_mut(&host)?;
        range.count -= 1;
        match range.count {
            0 => self.ranges.remove(&host).map(|range| range.context),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_range_and_its_context_stay_until_the_last_user_has_ended() {
        let (mut registry, context) = (Registry::default(), Arc::new("the first device"));
        assert_eq!(registry.count(4096, 8192), None);
        registry.add(4096, 8192, Address(7), Arc::clone(&context));
        assert_eq!((registry.count(4096, 8192), registry.count(4096, 4096)), (Some(Address(7)), None));
        let alive = Arc::downgrade(&context);
        // The first device is closed.
        drop(context);
        assert_eq!(registry.end(4096), None);
        assert!(alive.upgrade().is_some(), "the second one still reads there");
        assert_eq!([(); 2].map(|()| registry.end(4096).is_some()), [true, false]);
        assert!(alive.upgrade().is_none());
        assert_eq!(registry.count(4096, 8192), None);
    }
}
