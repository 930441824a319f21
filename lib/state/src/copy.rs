//! A slot of the buffer and the copies into and out of it, word by word.
//!
//! A plain `memcpy` that races with a writer is undefined behaviour even if the torn result is
//! thrown away. Copies made of relaxed atomic accesses are not: the worst a race can do is mix
//! words of two values. On the machines we know a relaxed access is an ordinary load or store.

use core::cell::UnsafeCell;
use core::mem::{MaybeUninit, size_of};
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::{Plain, Step};

/// Room for one value. Aligned to 8 bytes so that it can be copied in machine words; only the
/// bytes of `T` are ever touched, the last ones in halves, quarters and bytes.
#[repr(C, align(8))]
pub(crate) struct Slot<T>(UnsafeCell<MaybeUninit<T>>);

// SAFETY: after construction the bytes are reached through the atomic accesses below only.
unsafe impl<T: Plain> Sync for Slot<T> {}

/// Copies the unit of type `$int` at `$offset` out of the slot at `$slot` into `$value`.
macro_rules! load_unit {
    ($atomic:ty, $int:ty, $slot:expr, $value:expr, $offset:expr) => {{
        S::step();
        // SAFETY: the unit lies inside the slot, aligned because the slot is aligned to 8 and the
        // offset is a multiple of the unit; nobody accesses these bytes in another way.
        let unit = unsafe { <$atomic>::from_ptr($slot.add($offset).cast()) }.load(Relaxed);
        // SAFETY: the same offset inside the local value, which may be less aligned.
        unsafe { $value.add($offset).cast::<$int>().write_unaligned(unit) };
    }};
}

/// Copies the unit of type `$int` at `$offset` out of `$value` into the slot at `$slot`.
macro_rules! store_unit {
    ($atomic:ty, $int:ty, $slot:expr, $value:expr, $offset:expr) => {{
        S::step();
        // SAFETY: the unit lies inside the value, whose bytes are all initialised (`Plain`).
        let unit = unsafe { $value.add($offset).cast::<$int>().read_unaligned() };
        // SAFETY: as in `load_unit`.
        unsafe { <$atomic>::from_ptr($slot.add($offset).cast()) }.store(unit, Relaxed);
    }};
}

/// Runs `$unit` over all of `T`: words first, then what is left of the last word.
macro_rules! for_all_units {
    ($unit:ident, $slot:expr, $value:expr) => {
        let size = size_of::<T>();
        for word in 0..size / 8 {
            $unit!(AtomicU64, u64, $slot, $value, word * 8);
        }
        if size & 4 != 0 {
            $unit!(AtomicU32, u32, $slot, $value, size & !7);
        }
        if size & 2 != 0 {
            $unit!(AtomicU16, u16, $slot, $value, size & !3);
        }
        if size & 1 != 0 {
            $unit!(AtomicU8, u8, $slot, $value, size & !1);
        }
    };
}

impl<T: Plain> Slot<T> {
    /// Returns all bytes zero, like fresh memory.
    pub(crate) const fn zeroed() -> Slot<T> {
        Slot(UnsafeCell::new(MaybeUninit::zeroed()))
    }

    /// Returns a slot that already holds `value`.
    pub(crate) const fn holding(value: T) -> Slot<T> {
        Slot(UnsafeCell::new(MaybeUninit::new(value)))
    }

    #[inline(always)]
    pub(crate) fn load<S: Step>(&self) -> T {
        let slot: *mut u8 = self.0.get().cast();
        let mut copy = MaybeUninit::<T>::uninit();
        let value: *mut u8 = copy.as_mut_ptr().cast();
        for_all_units!(load_unit, slot, value);
        // SAFETY: every byte was written, and every pattern is a value of a `Plain` type.
        unsafe { copy.assume_init() }
    }

    #[inline(always)]
    pub(crate) fn store<S: Step>(&self, value: &T) {
        let slot: *mut u8 = self.0.get().cast();
        let value: *const u8 = core::ptr::from_ref(value).cast();
        for_all_units!(store_unit, slot, value);
    }
}

#[cfg(test)]
mod tests {
    use super::Slot;
    use crate::NoStep;

    fn round_trip<const LENGTH: usize>() {
        let value: [u8; LENGTH] = core::array::from_fn(|at| at as u8 + 1);
        let slot = Slot::<[u8; LENGTH]>::zeroed();
        assert_eq!(slot.load::<NoStep>(), [0; LENGTH]);
        slot.store::<NoStep>(&value);
        assert_eq!(slot.load::<NoStep>(), value);
        assert_eq!(Slot::holding(value).load::<NoStep>(), value);
    }

    #[test]
    fn every_tail_is_copied_whole() {
        round_trip::<0>();
        round_trip::<1>();
        round_trip::<2>();
        round_trip::<3>();
        round_trip::<4>();
        round_trip::<5>();
        round_trip::<6>();
        round_trip::<7>();
        round_trip::<8>();
        round_trip::<15>();
        round_trip::<23>();
        round_trip::<64>();
    }
}
