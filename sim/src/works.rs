//! Declared work: how long what a program does under a name takes.

use diapason_abi::{Key, Nanos};
use std::collections::BTreeMap;

/// The declared works of a system. What is not declared takes no time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Works(BTreeMap<u64, Nanos>);

impl Works {
    /// Work called `name` takes `worst` from now on.
    pub fn declare(&mut self, name: &str, worst: Nanos) {
        self.0.insert(Key::new(name).0, worst);
    }

    /// How long the work with this key takes.
    pub(crate) fn time(&self, key: u64) -> Nanos {
        self.0.get(&key).copied().unwrap_or_default()
    }
}
