//! Fixed pools of objects and typed indices into them. A pool knows which kind of id names its
//! objects; so an object can hold the id of another one without knowing that one's type.

use crate::served::Tag;
use crate::walks::walk;
use core::marker::PhantomData;
use core::ops::{Index, IndexMut};
use diapason_costs::Round;

/// The handle of an object that does not exist. No slot has the index it would name, so looking a
/// handle up is one comparison.
pub const FREE: u64 = u64::MAX;

/// A place in the pool of objects whose ids carry the tag `G`, or none. Sixteen bits: links between
/// objects stay small.
pub struct Id<G>(u16, PhantomData<fn() -> G>);

/// An object that has its place in a pool.
pub trait Pooled {
    /// Tells its ids apart from those of others.
    type Tag: Tag;
}

impl<G> Id<G> {
    pub const NONE: Id<G> = Id(u16::MAX, PhantomData);

    /// The object at `index`.
    #[must_use]
    pub const fn new(index: u16) -> Id<G> {
        Id(index, PhantomData)
    }

    /// Returns the place in the pool.
    #[must_use]
    pub const fn index(self) -> u16 {
        self.0
    }
}

impl<G> Clone for Id<G> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<G> Copy for Id<G> {}

impl<G: Tag> PartialEq for Id<G> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || !G::EXISTS
    }
}

impl<G: Tag> Eq for Id<G> {}

impl<G> core::fmt::Debug for Id<G> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Id").field(&self.0).finish()
    }
}

/// All objects of one kind, in memory set aside at boot.
pub struct Pool<'a, T>(&'a mut [T]);

impl<'a, T: Pooled> Pool<'a, T> {
    /// A pool of the given objects.
    pub fn new(objects: &'a mut [T]) -> Pool<'a, T> {
        Pool(objects)
    }

    /// All objects; none of a kind that this kernel does not serve.
    #[inline(always)]
    fn all(&self) -> &[T] {
        if T::Tag::EXISTS { self.0 } else { &[] }
    }

    #[inline(always)]
    fn all_mut(&mut self) -> &mut [T] {
        if T::Tag::EXISTS { self.0 } else { &mut [] }
    }

    /// The object at `index`, if the pool is that large.
    #[inline(always)]
    pub fn get(&self, index: u16) -> Option<&T> {
        self.all().get(index as usize)
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
        self.all_mut().get_mut(first..first + range.count as usize).unwrap_or_default()
    }

    /// The first of which that is true.
    #[inline(always)]
    pub fn find(&self, is: impl FnMut(&T) -> bool) -> Option<Id<T::Tag>> {
        let at = self.all().iter().position(is);
        walk(Round::Look, at.map_or(self.all().len(), |at| at + 1));
        at.map(|at| Id::new(at as u16))
    }

    /// The first of a range of which that is true.
    #[inline(always)]
    pub fn find_in(&self, range: Range, is: impl FnMut(&T) -> bool) -> Option<Id<T::Tag>> {
        let first = range.first as usize;
        let objects = self.all().get(first..first + range.count as usize)?;
        let at = objects.iter().position(is);
        walk(Round::Look, at.map_or(objects.len(), |at| at + 1));
        at.map(|at| Id::new(range.first + at as u16))
    }

    /// Returns how many there are.
    #[must_use]
    pub fn len(&self) -> u16 {
        self.all().len() as u16
    }

    /// Returns whether the pool has no places.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// Returns every id of the pool.
    pub fn ids(&self) -> impl Iterator<Item = Id<T::Tag>> + use<T> {
        (0..self.all().len() as u16).map(Id::new)
    }
}

/// An id out of range is the kernel's own bug. Out of line and without text, so that each of the
/// many index operations costs a compare and a jump.
#[cold]
#[inline(never)]
fn corrupt() -> ! {
    panic!("corrupt id")
}

impl<G: Tag> Id<G> {
    /// This kernel can have objects of the kind.
    pub const EXIST: bool = G::EXISTS;

    /// Returns whether the id names an object.
    #[must_use]
    pub const fn is_some(self) -> bool {
        self.0 < G::END
    }

    /// Returns whether there is no object.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 >= G::END
    }
}

impl<T: Pooled> Index<Id<T::Tag>> for Pool<'_, T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, id: Id<T::Tag>) -> &T {
        match self.all().get(id.0 as usize) {
            Some(object) => object,
            None => corrupt(),
        }
    }
}

impl<T: Pooled> IndexMut<Id<T::Tag>> for Pool<'_, T> {
    #[inline(always)]
    fn index_mut(&mut self, id: Id<T::Tag>) -> &mut T {
        match self.all_mut().get_mut(id.0 as usize) {
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
    pub fn ids<G>(self) -> impl Iterator<Item = Id<G>> {
        (self.first..self.first + self.count).map(Id::new)
    }
}

/// An object of which each process has places of its own.
pub(crate) trait Private: Pooled + Sized {
    /// Returns whether a new object may use this place.
    fn is_spare(&self) -> bool;

    /// The next free place of the process, while this one is free.
    fn link(&mut self) -> &mut Id<Self::Tag>;
}

/// The places of one process in a pool. A place is found, and given back, in one step.
pub(crate) struct Places<G> {
    range: Range,
    /// Places, from the first on, that had an object in this life of the process.
    used: u16,
    /// The one of them that was given back last.
    free: Id<G>,
}

impl<G: Tag> Places<G> {
    pub const EMPTY: Places<G> = Places::of(Range::EMPTY);

    /// All places of this range, free.
    pub const fn of(range: Range) -> Places<G> {
        Places { range, used: 0, free: Id::NONE }
    }

    /// Takes a free place: the one that was given back last, or the first that nobody used. A place
    /// that is worn out is lost until the process ends, and there is none in this call.
    #[inline(always)]
    pub fn take<T: Private<Tag = G>>(&mut self, pool: &mut Pool<'_, T>) -> Option<Id<G>> {
        let place = self.free;
        if place.is_some() {
            self.free = *pool[place].link();
            return Some(place);
        }
        if self.used >= self.range.count {
            return None;
        }
        let place = Id::new(self.range.first + self.used);
        self.used += 1;
        pool[place].is_spare().then_some(place)
    }

    /// Gives a place back whose object has ended.
    #[inline(always)]
    pub fn give_back<T: Private<Tag = G>>(&mut self, pool: &mut Pool<'_, T>, place: Id<G>) {
        if pool[place].is_spare() {
            *pool[place].link() = core::mem::replace(&mut self.free, place);
        }
    }

    /// The places that may have an object.
    pub const fn used(&self) -> Range {
        Range { first: self.range.first, count: self.used }
    }

    /// All places are free.
    pub fn clear(&mut self) {
        (self.used, self.free) = (0, Id::NONE);
    }

    /// Checks that only free places are given out. Returns how many were given back.
    pub fn check<T: Private<Tag = G>>(
        &self,
        pool: &Pool<'_, T>,
        link: impl Fn(&T) -> Id<G>,
    ) -> usize {
        let (mut count, mut at) = (0, self.free);
        while at.is_some() {
            assert!(pool[at].is_spare(), "a place that is free has no object");
            let place = at.index().wrapping_sub(self.range.first);
            assert!(place < self.used, "a place of the process that was used");
            (count, at) = (count + 1, link(&pool[at]));
        }
        count
    }

    /// Returns the ids of all places.
    pub fn ids(&self) -> impl Iterator<Item = Id<G>> + use<G> {
        self.range.ids()
    }
}
