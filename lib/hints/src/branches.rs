//! Branches: `if`, `match`, and what follows from a condition.
//!
//! If both ways lead to the same lock there is nothing to decide. If not, and the condition is
//! known at the blocking call already, the hint is computed with it (§5.4.1). A way that leaves
//! the function because a call failed does not count: the hint is for the task that goes on.

use crate::flow::Flow;
use crate::names;
use crate::next::{Next, Test};
use crate::terms::{Term, text};
use quote::quote;
use std::rc::Rc;
use syn::spanned::Spanned;
use syn::{Arm, Expr, ExprIf, ExprLet, ExprMatch, Lit, Pat, UnOp};

/// The side of a branch that is taken when a call failed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Failure {
    Yes,
    No,
    Neither,
}

impl Flow {
    pub(crate) fn branching(&mut self, expr: &Expr, after: &Next) -> Next {
        match expr {
            Expr::If(branch) => self.if_else(branch, after),
            Expr::Match(branch) => self.arms(branch, after),
            _ => after.clone(),
        }
    }

    fn if_else(&mut self, branch: &ExprIf, after: &Next) -> Next {
        let bound = names::bound_in_expr(&branch.cond);
        let inside = after.before_binding(&bound, branch.cond.span());
        let yes = self.block(&branch.then_branch, &inside);
        let no = match &branch.else_branch {
            Some((_, otherwise)) => self.expr(otherwise, after),
            None => after.clone(),
        };
        self.condition(&branch.cond, &yes, &no)
    }

    /// Returns the next lock before a condition that leads to `yes` or `no`.
    pub(crate) fn condition(&mut self, cond: &Expr, yes: &Next, no: &Next) -> Next {
        match cond {
            Expr::Paren(paren) => self.condition(&paren.expr, yes, no),
            Expr::Group(group) => self.condition(&group.expr, yes, no),
            Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_)) => {
                self.condition(&unary.expr, no, yes)
            }
            Expr::Binary(binary) if matches!(binary.op, syn::BinOp::And(_)) => {
                let right = self.condition(&binary.right, yes, no);
                self.condition(&binary.left, &right, no)
            }
            Expr::Binary(binary) if matches!(binary.op, syn::BinOp::Or(_)) => {
                let right = self.condition(&binary.right, yes, no);
                self.condition(&binary.left, yes, &right)
            }
            Expr::Lit(literal) => match &literal.lit {
                Lit::Bool(truth) if truth.value => yes.clone(),
                _ => no.clone(),
            },
            Expr::Let(binding) => self.let_condition(binding, yes, no),
            other => {
                let test = self.term(other).map(|term| Test::Condition(Rc::new(term)));
                let next = fork(test, yes, no, failure_of_call(other), other);
                self.expr(other, &next)
            }
        }
    }

    fn let_condition(&mut self, binding: &ExprLet, yes: &Next, no: &Next) -> Next {
        let yes = yes.before_binding(&names::bound_by(&binding.pat), binding.span());
        let test = self.matches(&binding.expr, &binding.pat);
        let failure = match variant(&binding.pat).as_deref() {
            Some("Ok") => Failure::No,
            Some("Err") => Failure::Yes,
            _ => Failure::Neither,
        };
        let next = fork(test, &yes, no, failure, &binding.expr);
        self.expr(&binding.expr, &next)
    }

    /// The `else` of a `let`: a failure unless it goes on to block.
    pub(crate) fn unless_failed(&mut self, next: Next, failed: Next, init: &Expr) -> Next {
        fork(None, &next, &failed, Failure::No, init)
    }

    fn arms(&mut self, branch: &ExprMatch, after: &Next) -> Next {
        let names = branch.arms.iter().map(|arm| variant(&arm.pat));
        let has_ok = names.clone().any(|name| name.as_deref() == Some("Ok"));
        let fails: Vec<bool> = names
            .map(|name| match name.as_deref() {
                Some("Ok") => false,
                Some("Err") => true,
                _ => has_ok,
            })
            .collect();
        let mut rest = Next::Never;
        let mut dropped = false;
        for (arm, fails) in branch.arms.iter().zip(fails).rev() {
            let inside = after.before_binding(&names::bound_by(&arm.pat), arm.pat.span());
            let body = self.expr(&arm.body, &inside);
            if fails && matches!(body, Next::Leaves | Next::Never) {
                dropped |= body == Next::Leaves;
                continue;
            }
            rest = self.arm(arm, &branch.expr, &body, &rest);
        }
        let next = if rest == Next::Never && dropped { Next::Leaves } else { rest };
        self.expr(&branch.expr, &next)
    }

    fn arm(&mut self, arm: &Arm, value: &Expr, body: &Next, rest: &Next) -> Next {
        let (pat, body) = match &arm.pat {
            Pat::Guard(guarded) => (&*guarded.pat, self.condition(&guarded.guard, body, rest)),
            pat => (pat, body.clone()),
        };
        let body = body.before_binding(&names::bound_by(pat), pat.span());
        fork(self.matches(value, pat), &body, rest, Failure::Neither, value)
    }

    /// Returns the test whether a value that is known early has a shape that binds nothing.
    fn matches(&self, value: &Expr, pat: &Pat) -> Option<Test> {
        let term = self.term(value)?;
        if !names::bound_by(pat).is_empty() {
            return None;
        }
        let shown = format!("{} is {}", term.text, text(pat));
        let tokens = quote!(::core::matches!(#value, #pat));
        Some(Test::Condition(Rc::new(Term::derived(&term, tokens, shown))))
    }
}

/// Two ways: the one that counts, or both with the test that tells which.
fn fork(test: Option<Test>, yes: &Next, no: &Next, failure: Failure, place: &Expr) -> Next {
    match (failure, yes, no) {
        (Failure::Yes, Next::Leaves, other) | (Failure::No, other, Next::Leaves) => {
            if *other == Next::Never { Next::Leaves } else { other.clone() }
        }
        _ => match test {
            Some(test) => Next::when(test, yes, no),
            None => yes.clone().join(no.clone(), || {
                let (line, place) = (place.span().start().line, text(place));
                let (a, b) = (yes.describe(), no.describe());
                format!(
                    "`{place}` at line {line}, which is not known before, leads to \"{a}\" or \
                     \"{b}\""
                )
            }),
        },
    }
}

/// `Ok` of the pattern `Ok(count)`.
fn variant(pat: &Pat) -> Option<String> {
    match pat {
        Pat::TupleStruct(shape) => shape.path.segments.last().map(|s| s.ident.to_string()),
        Pat::Guard(guarded) => variant(&guarded.pat),
        Pat::Or(either) => either.cases.first().and_then(variant),
        Pat::Paren(paren) => variant(&paren.pat),
        _ => None,
    }
}

fn failure_of_call(cond: &Expr) -> Failure {
    match cond {
        Expr::MethodCall(call) if call.method == "is_err" => Failure::Yes,
        Expr::MethodCall(call) if call.method == "is_ok" => Failure::No,
        _ => Failure::Neither,
    }
}
