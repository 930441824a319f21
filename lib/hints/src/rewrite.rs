//! Puts the hints into a function: `x.wait()` becomes `x.wait_then(hint)`.

use crate::calls::SUFFIX;
use crate::flow::{Analysis, analyse};
use crate::next::turns;
use crate::{Problem, loops};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use std::collections::BTreeSet;
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, ExprForLoop, Ident, Item, ItemFn};

/// Returns the attribute: a function with hints instead of one without, or what prevents it.
#[must_use]
pub fn expand(arguments: &TokenStream, item: TokenStream) -> TokenStream {
    let mut function: ItemFn = match syn::parse2(item.clone()) {
        Ok(function) => function,
        Err(_) => {
            let remedy = "put it before the function of a task";
            let problem = Problem::new(item.span(), "`#[hints]` is for functions", remedy);
            let error = syn::Error::from(problem).to_compile_error();
            return [error, item].into_iter().collect();
        }
    };
    if !arguments.is_empty() {
        let remedy = "write `#[hints]`; exceptions are `#[hint(…)]` before a statement";
        let problem = Problem::new(arguments.span(), "`#[hints]` takes no arguments", remedy);
        return refuse(vec![problem], &function);
    }
    match rewrite(&mut function) {
        Ok(_) => function.into_token_stream(),
        Err(problems) => refuse(problems, &function),
    }
}

/// Returns the errors, and the function as it was, so that the compiler complains of nothing else.
fn refuse(problems: Vec<Problem>, function: &ItemFn) -> TokenStream {
    let errors = problems.into_iter().map(|problem| syn::Error::from(problem).to_compile_error());
    errors.chain([function.to_token_stream()]).collect()
}

/// Puts the hints into `function`.
///
/// # Errors
/// As [`analyse`]; then the function only loses its `#[hint]`.
pub fn rewrite(function: &mut ItemFn) -> Result<Analysis, Vec<Problem>> {
    let analysis = analyse(function)?;
    let counted = analysis.sites.iter().flat_map(|site| site.next.counted_loops()).collect();
    Rewriter { analysis: &analysis, counted }.visit_block_mut(&mut function.block);
    Ok(analysis)
}

/// An expression is found by its address. Its parts are rewritten before itself and stay where
/// they are, so addresses are those the analysis saw.
struct Rewriter<'a> {
    analysis: &'a Analysis,
    /// Loops that must know their last turn.
    counted: BTreeSet<usize>,
}

impl VisitMut for Rewriter<'_> {
    fn visit_item_mut(&mut self, _: &mut Item) {}

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        visit_mut::visit_expr_mut(self, expr);
        let address: *const Expr = expr;
        let hint = self.analysis.by_address.get(&address).and_then(|site| site.next.hint());
        if let Some(hint) = hint {
            add(expr, hint);
        }
        let number = self.analysis.loops.get(&address);
        if let (Expr::ForLoop(l), Some(number)) = (&*expr, number)
            && self.counted.contains(number)
        {
            *expr = Expr::Verbatim(counted(l, *number));
        }
    }
}

/// Adds the hint to a call.
fn add(expr: &mut Expr, hint: TokenStream) {
    let hint = Expr::Verbatim(hint);
    match expr {
        Expr::MethodCall(call) => {
            call.method = then(&call.method);
            call.args.push(hint);
        }
        Expr::Call(call) => {
            if let Expr::Path(path) = &mut *call.func
                && let Some(last) = path.path.segments.last_mut()
            {
                last.ident = then(&last.ident);
                call.args.push(hint);
            }
        }
        _ => {}
    }
}

fn then(name: &Ident) -> Ident {
    Ident::new(&format!("{name}{SUFFIX}"), name.span())
}

/// Returns the loop as the language defines `for`, with the turns to come in a variable.
fn counted(l: &ExprForLoop, number: usize) -> TokenStream {
    let (turns, range, label) = (turns(number), &l.expr, &l.label);
    let (pat, body) = (&l.pat, &l.body);
    debug_assert!(loops::range(range).is_some());
    quote_spanned! { Span::mixed_site() =>
        match ::core::iter::IntoIterator::into_iter(#range) {
            mut #turns => #label while let ::core::option::Option::Some(#pat) =
                ::core::iter::Iterator::next(&mut #turns) #body
        }
    }
}
