//! A plan on its way to a person or a program: tables and objects are made of it.

use diapason_plan::Plan;
use std::ops::Deref;

/// A plan as it is shown.
pub(super) struct View<'a>(pub(super) &'a Plan);

impl Deref for View<'_> {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        self.0
    }
}
