//! Arrays whose length boot fixes, looked up by numbers the kernel itself made.

use core::ops::{Index, IndexMut};

/// An array of `T`. A number beyond its end is the kernel's own bug; saying so takes no number
/// formatting, which a slice would bring along.
pub struct Table<T: 'static>(&'static mut [T]);

impl<T> Table<T> {
    /// A table of these.
    pub fn new(places: &'static mut [T]) -> Table<T> {
        Table(places)
    }

    /// Returns every place in order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut()
    }
}

#[cold]
#[inline(never)]
fn beyond() -> ! {
    panic!("beyond the end of a table")
}

impl<T> Index<usize> for Table<T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, index: usize) -> &T {
        match self.0.get(index) {
            Some(place) => place,
            None => beyond(),
        }
    }
}

impl<T> IndexMut<usize> for Table<T> {
    #[inline(always)]
    fn index_mut(&mut self, index: usize) -> &mut T {
        match self.0.get_mut(index) {
            Some(place) => place,
            None => beyond(),
        }
    }
}
