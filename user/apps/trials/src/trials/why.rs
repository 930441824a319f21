//! Why a trial failed, and the checks that say so.

use core::fmt;
use core::panic::Location;
use diapason_rt::Errno;

/// A broken expectation, and where it was noticed.
pub(crate) struct Why {
    text: &'static str,
    errno: Option<Errno>,
    place: &'static Location<'static>,
}

/// The result of a trial.
pub type Outcome = Result<(), Why>;
/// A trial that the suite runs.
pub type Trial = fn() -> Outcome;

impl Why {
    /// Something other than an unexpected error.
    #[track_caller]
    pub fn new(text: &'static str) -> Why {
        Why { text, errno: None, place: Location::caller() }
    }
}

impl From<Errno> for Why {
    #[track_caller]
    fn from(errno: Errno) -> Why {
        Why { text: "unexpected error", errno: Some(errno), place: Location::caller() }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.place.file().rsplit('/').next().unwrap_or_default();
        write!(f, "{file}:{} {}", self.place.line(), self.text)?;
        self.errno.map_or(Ok(()), |errno| write!(f, " {errno:?}"))
    }
}

/// This must be true.
#[macro_export]
macro_rules! check {
    ($condition:expr) => {
        if !$condition {
            return Err($crate::why::Why::new(stringify!($condition)));
        }
    };
}

/// This call must fail with this error.
#[macro_export]
macro_rules! refused {
    ($call:expr, $errno:ident) => {
        match $call {
            Err(diapason_rt::Errno::$errno) => {}
            Err(other) => return Err($crate::why::Why::from(other)),
            Ok(_) => return Err($crate::why::Why::new(stringify!($call))),
        }
    };
}
