//! Loops: what follows a wait at the end of the body is what the body does first.
//!
//! A loop over a range has a fixed number of turns, so each turn can tell whether it is the last
//! (§5.4.1): then the hint is what follows the loop, before that it is what the body does first.

use crate::flow::{Flow, Frame};
use crate::names;
use crate::next::{Next, Test};
use crate::terms::Term;
use quote::quote;
use std::rc::Rc;
use syn::spanned::Spanned;
use syn::{Block, Expr, ExprBlock, ExprForLoop, ExprRange, ExprWhile, Label, Lifetime, Lit};

/// Rounds until a loop's value must have settled.
const ROUNDS_MAX: usize = 8;
/// Loops inside loops: each multiplies the work.
const NESTING_MAX: usize = 6;

fn name(label: Option<&Label>) -> Option<String> {
    label.map(|label| label.name.ident.to_string())
}

impl Flow {
    pub(crate) fn looping(&mut self, expr: &Expr, after: &Next) -> Next {
        if self.frames.len() >= NESTING_MAX {
            let what = format!("more than {NESTING_MAX} loops and labelled blocks in one another");
            self.problem(expr.span(), what, "make the inner ones a function of their own");
            return Next::undecided("the loops are nested too deeply");
        }
        match expr {
            Expr::Loop(l) => {
                let outside = after.before_binding(&names::bound_in(&l.body), l.span());
                self.settle(expr, |flow, start| {
                    flow.body(&l.body, l.label.as_ref(), &outside, start)
                })
            }
            Expr::While(l) => self.while_loop(expr, l, after),
            Expr::ForLoop(l) => self.for_loop(expr, l, after),
            _ => after.clone(),
        }
    }

    /// Repeats `round`, which turns what the next turn begins with into what this one does, until
    /// both are the same.
    fn settle(&mut self, place: &Expr, round: impl Fn(&mut Flow, &Next) -> Next) -> Next {
        let mut start = Next::Never;
        for _ in 0..ROUNDS_MAX {
            let next = round(self, &start);
            if next == start {
                return next;
            }
            start = next;
        }
        let line = place.span().start().line;
        let lost = format!("the turns of the loop at line {line} differ too much");
        round(self, &Next::undecided(lost))
    }

    /// One turn of a loop.
    fn body(
        &mut self,
        body: &Block,
        label: Option<&Label>,
        on_break: &Next,
        on_continue: &Next,
    ) -> Next {
        let inside = on_continue.before_binding(&names::bound_in(body), body.span());
        self.frames.push(Frame {
            label: name(label),
            on_break: on_break.clone(),
            on_continue: Some(inside.clone()),
        });
        let next = self.block(body, &inside);
        self.frames.pop();
        next
    }

    fn while_loop(&mut self, expr: &Expr, l: &ExprWhile, after: &Next) -> Next {
        let mut bound = names::bound_in_expr(&l.cond);
        bound.extend(names::bound_in(&l.body));
        let outside = after.before_binding(&bound, l.span());
        self.settle(expr, |flow, start| {
            let start = start.before_binding(&bound, l.span());
            let turn = flow.body(&l.body, l.label.as_ref(), &outside, &start);
            flow.condition(&l.cond, &turn, after)
        })
    }

    fn for_loop(&mut self, expr: &Expr, l: &ExprForLoop, after: &Next) -> Next {
        let mut bound = names::bound_by(&l.pat);
        let own = bound.clone();
        bound.extend(names::bound_in(&l.body));
        let outside = after.before_binding(&bound, l.span());
        let entry = match range(&l.expr) {
            Some(ExprRange { end: None, .. }) => self.settle(expr, |flow, start| {
                let turn = flow.body(&l.body, l.label.as_ref(), &outside, start);
                turn.before_binding(&own, l.span())
            }),
            Some(range) => self.counted_loop(expr, l, range, &outside, after),
            None => self.uncounted_loop(expr, l, &outside, after),
        };
        self.expr(&l.expr, &entry)
    }

    fn counted_loop(
        &mut self,
        expr: &Expr,
        l: &ExprForLoop,
        range: &ExprRange,
        outside: &Next,
        after: &Next,
    ) -> Next {
        let (own, line) = (names::bound_by(&l.pat), l.span().start().line);
        let count = self.counted.len();
        let number = *self.counted.entry(&raw const *expr).or_insert(count);
        let why = || format!("the last turn of the loop at line {line} is not known before it");
        let start = self.settle(expr, |flow, start| {
            let turn = Next::when(Test::LastTurn(number, line), outside, start);
            let next = flow.body(&l.body, l.label.as_ref(), outside, &turn);
            next.before_binding(&own, l.span()).outside_loop(number, &why)
        });
        if never_empty(range) {
            return start;
        }
        match self.term_of_range(range) {
            Some(test) => Next::when(test, after, &start),
            None => start.join(after.clone(), || {
                format!("whether the loop at line {line} has a turn at all is not known before it")
            }),
        }
    }

    fn uncounted_loop(
        &mut self,
        expr: &Expr,
        l: &ExprForLoop,
        outside: &Next,
        after: &Next,
    ) -> Next {
        let (own, line) = (names::bound_by(&l.pat), l.span().start().line);
        let why = || {
            format!(
                "the number of turns of the loop at line {line} is not to be seen; over a range, \
                 as `for i in 0..n`, it is"
            )
        };
        let start = self.settle(expr, |flow, start| {
            let turn = start.clone().join(outside.clone(), why);
            flow.body(&l.body, l.label.as_ref(), outside, &turn).before_binding(&own, l.span())
        });
        start.join(after.clone(), why)
    }

    /// Returns the test whether a range is empty.
    fn term_of_range(&self, range: &ExprRange) -> Option<Test> {
        let start = range.start.as_deref()?;
        let end = range.end.as_deref()?;
        let both: Expr = syn::parse_quote!((#start, #end));
        let term = self.term(&both)?;
        let shown = format!("({}) is empty", crate::terms::text(range));
        Some(Test::Condition(Rc::new(Term::derived(&term, quote!((#range).is_empty()), shown))))
    }

    pub(crate) fn labelled(&mut self, block: &ExprBlock, after: &Next) -> Next {
        if block.label.is_none() {
            return self.block(&block.block, after);
        }
        if self.frames.len() >= NESTING_MAX {
            return Next::undecided("the labelled blocks are nested too deeply");
        }
        let on_break = after.before_binding(&names::bound_in(&block.block), block.span());
        let label = name(block.label.as_ref());
        self.frames.push(Frame { label, on_break, on_continue: None });
        let next = self.block(&block.block, after);
        self.frames.pop();
        next
    }

    pub(crate) fn jump(&mut self, expr: &Expr) -> Next {
        match expr {
            Expr::Break(jump) => {
                let target = self.target(jump.label.as_ref());
                let next = target.map_or(Next::Never, |frame| frame.on_break.clone());
                self.sequence(jump.expr.iter().map(|e| &**e), &next)
            }
            Expr::Continue(jump) => {
                let target = self.target(jump.label.as_ref());
                target.and_then(|frame| frame.on_continue.clone()).unwrap_or(Next::Never)
            }
            _ => Next::Never,
        }
    }

    /// Returns where a jump goes. A jump to nowhere is left to the compiler.
    fn target(&self, label: Option<&Lifetime>) -> Option<&Frame> {
        let mut inner_first = self.frames.iter().rev();
        match label {
            None => inner_first.find(|frame| frame.on_continue.is_some()),
            Some(label) => {
                let label = label.ident.to_string();
                inner_first.find(|frame| frame.label.as_ref() == Some(&label))
            }
        }
    }
}

/// The range a loop runs over, if that is to be seen.
pub(crate) fn range(expr: &Expr) -> Option<&ExprRange> {
    match expr {
        Expr::Range(range) if range.start.is_some() => Some(range),
        Expr::Paren(paren) => range(&paren.expr),
        Expr::Group(group) => range(&group.expr),
        _ => None,
    }
}

/// Returns whether this is `2..5`, so that there is a first turn.
fn never_empty(range: &ExprRange) -> bool {
    let bounds = range.start.as_deref().zip(range.end.as_deref());
    let numbers = bounds.and_then(|(start, end)| number(start).zip(number(end)));
    let closed = matches!(range.limits, syn::RangeLimits::Closed(_));
    numbers.is_some_and(|(start, end)| start < end || (closed && start == end))
}

fn number(expr: &Expr) -> Option<u128> {
    match expr {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(int) => int.base10_parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_ranges_have_a_first_turn() {
        for (text, expected) in [
            ("0..4", true),
            ("0..1u8", true),
            ("3..3", false),
            ("3..=3", true),
            ("4..3", false),
            ("0..n", false),
            ("0.0..1.0", false),
        ] {
            let expr: Expr = syn::parse_str(text).unwrap();
            assert_eq!(range(&expr).map(never_empty), Some(expected), "{text}");
        }
        let names = names::bound_by(&syn::parse_quote!(Some((a, None))));
        assert_eq!(names, names::Names::from(["a".into()]));
    }
}
