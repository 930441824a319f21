//! The next lock of a task, seen from a point of its code: the value that is carried backwards.

use crate::names::Names;
use crate::terms::Term;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use std::rc::Rc;

/// More conditions than this in one hint are no help any more.
const CONDITIONS_MAX: usize = 16;

/// A question whose answer is already known at the blocking call.
#[derive(Clone, Debug)]
pub(crate) enum Test {
    /// A condition of the program.
    Condition(Rc<Term>),
    /// The last turn of the counted loop with this number, at this line.
    LastTurn(usize, usize),
}

impl PartialEq for Test {
    fn eq(&self, other: &Test) -> bool {
        match (self, other) {
            (Test::Condition(a), Test::Condition(b)) => a == b,
            (Test::LastTurn(a, _), Test::LastTurn(b, _)) => a == b,
            _ => false,
        }
    }
}

/// The mutex that is locked next.
#[derive(Clone, Debug)]
pub(crate) enum Next {
    /// Nothing: this point is never left.
    Never,
    /// The function ends; what its caller does is not known.
    Leaves,
    /// A wait for something else than a mutex.
    Blocks,
    /// A lock of this mutex.
    Lock(Rc<Term>),
    When(Rc<(Test, Next, Next)>),
    /// Several things, and the program does not say in time which. The text says why: a clause
    /// that completes "cannot be decided: …".
    Undecided(Rc<str>),
}

impl PartialEq for Next {
    fn eq(&self, other: &Next) -> bool {
        use Next::{Blocks, Leaves, Lock, Never, Undecided, When};
        match (self, other) {
            (Never, Never) | (Leaves, Leaves) | (Blocks, Blocks) => true,
            (Undecided(_), Undecided(_)) => true,
            (Lock(a), Lock(b)) => a == b,
            (When(a), When(b)) => a == b,
            _ => false,
        }
    }
}

impl Next {
    /// Returns that the next cannot be decided, for this reason.
    pub fn undecided(why: impl AsRef<str>) -> Next {
        Next::Undecided(why.as_ref().into())
    }

    fn is_none(&self) -> bool {
        matches!(self, Next::Leaves | Next::Blocks)
    }

    /// Returns one of two, without a test that tells which: decided only if both are the same.
    pub fn join(self, other: Next, why: impl FnOnce() -> String) -> Next {
        match (self, other) {
            (Next::Never, only) | (only, Next::Never) => only,
            (a, b) if a.is_none() && b.is_none() => Next::Blocks,
            (known @ Next::Undecided(_), _) | (_, known @ Next::Undecided(_)) => known,
            (a, b) if a == b => a,
            _ => Next::undecided(why()),
        }
    }

    /// `yes` if the test holds at the blocking call, else `no`.
    pub fn when(test: Test, yes: &Next, no: &Next) -> Next {
        let (yes, no) = (yes.assume(&test, true), no.assume(&test, false));
        match (yes, no) {
            (Next::Never, only) | (only, Next::Never) => only,
            (yes, no) if yes.is_none() && no.is_none() => Next::Blocks,
            (yes, no) if yes == no => yes,
            (yes, no) => {
                let next = Next::When(Rc::new((test, yes, no)));
                if next.conditions() <= CONDITIONS_MAX {
                    return next;
                }
                let text = format!("it would take more than {CONDITIONS_MAX} conditions");
                Next::undecided(text)
            }
        }
    }

    fn conditions(&self) -> usize {
        match self {
            Next::When(when) => 1 + when.1.conditions() + when.2.conditions(),
            _ => 0,
        }
    }

    /// Returns what is next where the answer to `test` is known.
    fn assume(&self, test: &Test, holds: bool) -> Next {
        match self {
            Next::When(when) if when.0 == *test => {
                if holds {
                    when.1.assume(test, holds)
                } else {
                    when.2.assume(test, holds)
                }
            }
            Next::When(when) => {
                let (yes, no) = (when.1.assume(test, holds), when.2.assume(test, holds));
                Next::When(Rc::new((when.0.clone(), yes, no)))
            }
            other => other.clone(),
        }
    }

    /// Seen from before the place where `names` get their values.
    pub fn before_binding(&self, names: &Names, span: Span) -> Next {
        self.without(span, &|term| term.depends_on(names), true)
    }

    /// Seen from before a call that can change what `names` lead to. Mutexes stay what they are.
    pub fn before_call(&self, names: &Names, span: Span) -> Next {
        self.without(span, &|term| term.is_shaken_by(names), false)
    }

    fn without(&self, span: Span, lost: &dyn Fn(&Term) -> bool, mutexes: bool) -> Next {
        let line = span.start().line;
        match self {
            Next::Lock(term) if mutexes && lost(term) => {
                let text = format!("the mutex {term} gets its value only at line {line}");
                Next::undecided(text)
            }
            Next::When(when) => {
                let yes = when.1.without(span, lost, mutexes);
                let no = when.2.without(span, lost, mutexes);
                match &when.0 {
                    Test::Condition(term) if lost(term) => yes.join(no, || {
                        let at = term.span.start().line;
                        format!("the condition {term} at line {at} depends on line {line}")
                    }),
                    test => Next::when(test.clone(), &yes, &no),
                }
            }
            other => other.clone(),
        }
    }

    /// Seen from outside the counted loop: there it is not known which turn is the last.
    pub fn outside_loop(&self, number: usize, why: &dyn Fn() -> String) -> Next {
        let Next::When(when) = self else { return self.clone() };
        let yes = when.1.outside_loop(number, why);
        let no = when.2.outside_loop(number, why);
        match &when.0 {
            Test::LastTurn(n, _) if *n == number => yes.join(no, why),
            test => Next::when(test.clone(), &yes, &no),
        }
    }

    /// Returns why there is no decision, if there is none.
    pub fn doubt(&self) -> Option<Rc<str>> {
        match self {
            Next::Undecided(why) => Some(why.clone()),
            Next::When(when) => when.1.doubt().or_else(|| when.2.doubt()),
            _ => None,
        }
    }

    /// Returns the loops whose last turn matters.
    pub fn counted_loops(&self) -> Vec<usize> {
        let Next::When(when) = self else { return Vec::new() };
        let mut loops = [when.1.counted_loops(), when.2.counted_loops()].concat();
        if let Test::LastTurn(number, _) = when.0 {
            loops.push(number);
        }
        loops
    }

    /// Describes it for a person: "`injector`", "none", or what it depends on.
    pub fn describe(&self) -> String {
        match self {
            Next::Lock(term) => format!("lock {term}"),
            Next::When(when) => {
                let test = match &when.0 {
                    Test::Condition(term) => term.to_string(),
                    Test::LastTurn(_, line) => format!("last turn of the loop at line {line}"),
                };
                format!("if {test}: {}, else: {}", when.1.describe(), when.2.describe())
            }
            Next::Undecided(_) => "cannot be decided".into(),
            Next::Never | Next::Leaves | Next::Blocks => "none".into(),
        }
    }

    /// Returns the expression to insert; `None` if the call stays as it is.
    pub fn hint(&self) -> Option<TokenStream> {
        match self {
            Next::Lock(term) => {
                let mutex = &term.tokens;
                Some(quote!((#mutex).hint()))
            }
            Next::When(when) => {
                let none = || quote!(::diapason_rt::Hint::NONE);
                let test = match &when.0 {
                    Test::Condition(term) => term.tokens.clone(),
                    Test::LastTurn(number, _) => {
                        let turns = turns(*number);
                        quote!(#turns.is_empty())
                    }
                };
                let yes = when.1.hint().unwrap_or_else(none);
                let no = when.2.hint().unwrap_or_else(none);
                Some(quote!(if #test { #yes } else { #no }).into_token_stream())
            }
            _ => None,
        }
    }
}

/// Returns the variable that holds the turns to come of a counted loop.
pub fn turns(number: usize) -> Ident {
    format_ident!("turns_{number}", span = Span::mixed_site())
}
