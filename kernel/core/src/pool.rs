//! Fixed pools of objects and typed indices into them.

use crate::walks::walk;
use core::marker::PhantomData;
use core::ops::{Index, IndexMut};
use diapason_costs::Round;

/// The handle of an object that does not exist. No slot has the index it would name, so looking a
/// handle up is one comparison.
pub const FREE: u64 = u64::MAX;

/// A place in the pool of `T`s, or none. Sixteen bits: links between objects stay small.
pub struct Id<T>(u16, PhantomData<fn() -> T>);

impl<T> Id<T> {
    pub const NONE: Id<T> = Id(u16::MAX, PhantomData);

    /// The object at `index`.
    #[must_use]
    pub const fn new(index: u16) -> Id<T> {
        Id(index, PhantomData)
    }

    /// Its place in the pool.
    #[must_use]
    pub const fn index(self) -> u16 {
        self.0
    }

    /// Returns whether the id names an object.
    #[must_use]
    pub const fn is_some(self) -> bool {
        self.0 != u16::MAX
    }

    /// Returns whether there is no object.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == u16::MAX
    }
}

impl<T> Clone for Id<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Id<T> {}

impl<T> PartialEq for Id<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T> Eq for Id<T> {}

impl<T> core::fmt::Debug for Id<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Id").field(&self.0).finish()
    }
}

/// All objects of one kind, in memory set aside at boot.
pub struct Pool<'a, T>(&'a mut [T]);

impl<'a, T> Pool<'a, T> {
    /// A pool of the given objects.
    pub fn new(objects: &'a mut [T]) -> Pool<'a, T> {
        Pool(objects)
    }

    /// The object at `index`, if the pool is that large.
    #[inline(always)]
    pub fn get(&self, index: u16) -> Option<&T> {
        self.0.get(index as usize)
    }

    /// The same pool, for a while: where it is stays in registers.
    #[inline(always)]
    pub fn again(&mut self) -> Pool<'_, T> {
        Pool(self.0)
    }

    /// Those of a range, in one piece; none if it goes beyond the pool.
    #[inline(always)]
    pub fn of(&mut self, range: Range) -> &mut [T] {
        let first = range.first as usize;
        self.0.get_mut(first..first + range.count as usize).unwrap_or_default()
    }

    /// The first of which that is true.
    #[inline(always)]
    pub fn find(&self, is: impl FnMut(&T) -> bool) -> Option<Id<T>> {
        let at = self.0.iter().position(is);
        walk(Round::Look, at.map_or(self.0.len(), |at| at + 1));
        at.map(|at| Id::new(at as u16))
    }

    /// The same among those of a range.
    #[inline(always)]
    pub fn find_in(&self, range: Range, is: impl FnMut(&T) -> bool) -> Option<Id<T>> {
        let first = range.first as usize;
        let objects = self.0.get(first..first + range.count as usize)?;
        let at = objects.iter().position(is);
        walk(Round::Look, at.map_or(objects.len(), |at| at + 1));
        at.map(|at| Id::new(range.first + at as u16))
    }

    /// Returns how many there are.
    #[must_use]
    pub fn len(&self) -> u16 {
        self.0.len() as u16
    }

    /// Returns whether the pool has no places.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns every id of the pool.
    pub fn ids(&self) -> impl Iterator<Item = Id<T>> + use<T> {
        (0..self.0.len() as u16).map(Id::new)
    }
}

/// An id out of range is the kernel's own bug. Out of line and without text, so that each of the
/// many index operations costs a compare and a jump.
#[cold]
#[inline(never)]
fn corrupt() -> ! {
    panic!("corrupt id")
}

impl<T> Index<Id<T>> for Pool<'_, T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, id: Id<T>) -> &T {
        match self.0.get(id.0 as usize) {
            Some(object) => object,
            None => corrupt(),
        }
    }
}

impl<T> IndexMut<Id<T>> for Pool<'_, T> {
    #[inline(always)]
    fn index_mut(&mut self, id: Id<T>) -> &mut T {
        match self.0.get_mut(id.0 as usize) {
            Some(object) => object,
            None => corrupt(),
        }
    }
}

/// A run of consecutive ids: what one process owns of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub first: u16,
    pub count: u16,
}

impl Range {
    pub const EMPTY: Range = Range { first: 0, count: 0 };

    /// Returns the ids of the range.
    pub fn ids<T>(self) -> impl Iterator<Item = Id<T>> {
        (self.first..self.first + self.count).map(Id::new)
    }
}
