//! The values of state messages: plain data, without padding, every pattern valid.
//!
//! A reader that is overtaken after a missed deadline assembles a value from words of two writes,
//! and a cell in fresh memory holds zeros that nobody wrote. Both must be *values* of the type,
//! however meaningless, or reading them would be undefined behaviour. And every byte must be
//! initialised, because the copies look at all of them.

/// Plain data: the only values a state message can carry.
///
/// Implemented for integers, floats and arrays. For a struct use [`plain!`](crate::plain!), which
/// checks the rules at compile time.
///
/// # Safety
///
/// Every byte pattern of the type's size is a valid value (so neither `bool`, `char`, enums nor
/// references), no byte of a value is padding, and the type has no interior mutability.
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

macro_rules! plain_numbers {
    ($($number:ty),*) => {
        $(
            // SAFETY: a primitive number has no padding and every bit pattern is one of its values.
            unsafe impl Plain for $number {}
        )*
    };
}

plain_numbers!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64);

// SAFETY: an array is its elements without gaps, and each of them is plain.
unsafe impl<T: Plain, const LENGTH: usize> Plain for [T; LENGTH] {}

/// Used by [`plain!`](crate::plain!): compiles only for a plain field.
#[doc(hidden)]
pub const fn assert_plain<T: Plain>(_field: &T) {}

/// Defines a `#[repr(C)]` struct that is [`Plain`], and refuses one that is not.
///
/// Every field must be plain and there must be no padding: order fields by falling size, or add
/// explicit filler fields. `Clone` and `Copy` are derived; more derives may be asked for.
///
/// ```
/// use diapason_state::{Plain, plain};
/// plain! {
///     /// One sample of the encoder.
///     #[derive(Debug, PartialEq)]
///     pub struct Sample { pub time: u64, pub position: i32, pub speed: f32 }
/// }
/// fn travels<T: Plain>() {}
/// travels::<Sample>();
/// ```
///
/// Padding is refused, because its bytes have no value that could be copied:
///
/// ```compile_fail,E0080
/// diapason_state::plain! { struct Gap { time: u64, position: i32 } }
/// ```
///
/// A field that is not plain is refused, because not every pattern is one of its values:
///
/// ```compile_fail,E0277
/// diapason_state::plain! { struct Flag { valid: bool } }
/// ```
#[macro_export]
macro_rules! plain {
    ($(#[$attribute:meta])* $visibility:vis struct $name:ident {
        $($(#[$note:meta])* $access:vis $field:ident : $kind:ty),+ $(,)?
    }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy)]
        #[repr(C)]
        $visibility struct $name { $($(#[$note])* $access $field: $kind),+ }

        const _: () = {
            const fn assert_fields(value: &$name) {
                let $name { $($field),+ } = value;
                $($crate::plain::assert_plain($field);)+
            }
            // Evaluated for its checks only.
            let _: fn(&$name) = assert_fields;
            assert!(
                ::core::mem::size_of::<$name>() == 0 $(+ ::core::mem::size_of::<$kind>())+,
                "a plain struct must not contain padding: reorder its fields or fill the gap"
            );
        };

        // SAFETY: the assertions above: all fields are plain, and their sizes add up to the size
        // of the struct, so there is no padding.
        unsafe impl $crate::Plain for $name {}
    };
}
