//! The names that a piece of code binds, and those that it may change.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeSet;
use syn::visit::{self, Visit};
use syn::{Expr, ExprClosure, ItemFn, Pat, PatIdent};

/// Names of local variables.
pub type Names = BTreeSet<String>;

#[derive(Default)]
struct Bound {
    all: Names,
    mutable: Names,
    in_closures: Names,
    closures: usize,
}

impl<'ast> Visit<'ast> for Bound {
    fn visit_pat_ident(&mut self, pat: &'ast PatIdent) {
        let name = pat.ident.to_string();
        if !is_constant(&name) || pat.by_ref.is_some() || pat.subpat.is_some() {
            if pat.mutability.is_some() {
                self.mutable.insert(name.clone());
            }
            self.all.insert(name);
        }
        visit::visit_pat_ident(self, pat);
    }

    fn visit_expr_closure(&mut self, closure: &'ast ExprClosure) {
        self.closures += 1;
        visit::visit_expr_closure(self, closure);
        self.closures -= 1;
    }

    fn visit_ident(&mut self, ident: &'ast proc_macro2::Ident) {
        if self.closures > 0 {
            self.in_closures.insert(ident.to_string());
        }
    }

    fn visit_item(&mut self, _: &'ast syn::Item) {}
}

/// In a pattern, a name that begins with a capital letter is a constant or a variant.
fn is_constant(name: &str) -> bool {
    name.chars().next().is_some_and(char::is_uppercase)
}

/// The names a pattern binds.
pub fn bound_by(pat: &Pat) -> Names {
    let mut bound = Bound::default();
    bound.visit_pat(pat);
    bound.all
}

/// The names bound anywhere in a block.
pub fn bound_in(block: &syn::Block) -> Names {
    let mut bound = Bound::default();
    bound.visit_block(block);
    bound.all
}

/// The names bound anywhere in an expression, as by the `let` of a condition.
pub fn bound_in_expr(expr: &Expr) -> Names {
    let mut bound = Bound::default();
    bound.visit_expr(expr);
    bound.all
}

/// Returns the variables of a function that can change: declared `mut`, and those of them that a
/// closure may change unseen.
pub fn mutable_in(function: &ItemFn) -> (Names, Names) {
    let mut bound = Bound::default();
    function.sig.inputs.iter().for_each(|input| bound.visit_fn_arg(input));
    bound.visit_block(&function.block);
    bound.mutable.insert("self".into());
    let hidden = bound.in_closures.intersection(&bound.mutable).cloned().collect();
    (bound.mutable, hidden)
}

/// The variable a place belongs to: `a` of `(*a.b[0]).c`.
pub fn base(place: &Expr) -> Option<String> {
    match place {
        Expr::Path(path) => path.path.get_ident().map(ToString::to_string),
        Expr::Field(field) => base(&field.base),
        Expr::Index(index) => base(&index.expr),
        Expr::Paren(paren) => base(&paren.expr),
        Expr::Group(group) => base(&group.expr),
        Expr::Unary(unary) => base(&unary.expr),
        Expr::Reference(reference) => base(&reference.expr),
        Expr::Try(tried) => base(&tried.expr),
        Expr::MethodCall(call) => base(&call.receiver),
        _ => None,
    }
}

/// The variables assigned to by the left side of `=`.
pub fn assigned(left: &Expr) -> Names {
    match left {
        Expr::Tuple(tuple) => tuple.elems.iter().flat_map(assigned).collect(),
        Expr::Array(array) => array.elems.iter().flat_map(assigned).collect(),
        place => base(place).into_iter().collect(),
    }
}

/// All names in tokens that are not understood further.
pub fn in_tokens(tokens: &TokenStream) -> Names {
    let names = tokens.clone().into_iter().flat_map(|token| match token {
        TokenTree::Ident(ident) => Names::from([ident.to_string()]),
        TokenTree::Group(group) => in_tokens(&group.stream()),
        _ => Names::new(),
    });
    names.collect()
}
