//! The code parser of [EMERALDS 1998, §5.4.1]. It finds the mutex that a task locks after each
//! blocking call.
//!
//! [`flow`] walks a function backwards, from its end to its start, carrying what comes [`next`]: a
//! lock, another wait, the end, or something that depends on a condition. At a blocking call this
//! is the hint. [`calls`] knows the runtime's calls by name, [`terms`] which expressions may be
//! evaluated early, [`attribute`] what a person says about a statement, [`mod@rewrite`] puts the
//! hints in, [`listing`] shows them. An undecidable case is a [`Problem`], never a guess.
//!
//! This runs in the compiler and in the command, never on the target.

#![forbid(unsafe_code)]

mod attribute;
mod branches;
mod calls;
mod flow;
mod listing;
mod loops;
mod names;
mod next;
mod rewrite;
mod terms;

pub use flow::{Analysis, Site, analyse};
pub use listing::{Listing, listing};
pub use rewrite::{expand, rewrite};

use proc_macro2::Span;
use std::fmt;

/// Why a function has no hints: where, what, and what to do.
#[derive(Clone, Debug)]
pub struct Problem {
    pub span: Span,
    /// The mistake at that place.
    pub what: String,
    pub remedy: String,
}

impl Problem {
    fn new(span: Span, what: impl Into<String>, remedy: impl Into<String>) -> Problem {
        Problem { span, what: what.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  remedy: {}", self.what, self.remedy)
    }
}

impl From<Problem> for syn::Error {
    fn from(problem: Problem) -> syn::Error {
        syn::Error::new(problem.span, problem)
    }
}

impl From<syn::Error> for Problem {
    fn from(error: syn::Error) -> Problem {
        Problem::new(error.span(), error.to_string(), "write valid Rust")
    }
}
