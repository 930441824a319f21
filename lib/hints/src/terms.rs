//! Expressions that may be evaluated early, at the blocking call: mutexes and conditions.

use crate::names::Names;
use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use std::fmt;
use syn::spanned::Spanned;
use syn::{BinOp, Expr, UnOp};

/// An expression without effects, and what its value depends on. Equal text is the same term.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    pub tokens: TokenStream,
    /// As a person would write it.
    pub text: String,
    pub span: Span,
    /// The variables in it.
    names: Names,
    /// Those whose value calls can change unseen: read through a field or an index, or `mut`.
    soft: Names,
}

impl PartialEq for Term {
    fn eq(&self, other: &Term) -> bool {
        self.text == other.text
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.text)
    }
}

/// Why an expression is no term.
#[derive(Clone, Debug)]
pub(crate) struct Impure {
    /// The part that is at fault.
    pub span: Span,
    pub text: String,
}

impl Term {
    /// Returns the mutex that `receiver` of a lock names.
    pub fn mutex(receiver: &Expr) -> Result<Term, Impure> {
        let place = without_reference(receiver);
        Term::of(place, &Names::new())
    }

    /// Returns a condition, or another value. `mutable` are the variables that can change.
    pub fn of(expr: &Expr, mutable: &Names) -> Result<Term, Impure> {
        let mut term = Term {
            tokens: expr.to_token_stream(),
            text: text(expr),
            span: expr.span(),
            names: Names::new(),
            soft: Names::new(),
        };
        term.read(expr, mutable, false)?;
        Ok(term)
    }

    /// Returns a term made from a pure part, as `matches!(part, …)` is.
    pub fn derived(part: &Term, tokens: TokenStream, text: String) -> Term {
        Term { tokens, text, ..part.clone() }
    }

    /// Returns whether it depends on one of these variables.
    pub fn depends_on(&self, names: &Names) -> bool {
        !self.names.is_disjoint(names)
    }

    /// Returns whether a call that is given these variables can change it.
    pub fn is_shaken_by(&self, names: &Names) -> bool {
        !self.soft.is_disjoint(names)
    }

    fn read(&mut self, expr: &Expr, mutable: &Names, inside: bool) -> Result<(), Impure> {
        match expr {
            Expr::Lit(_) => Ok(()),
            Expr::Path(path) => {
                if let Some(ident) = path.path.get_ident() {
                    let name = ident.to_string();
                    if inside || mutable.contains(&name) {
                        self.soft.insert(name.clone());
                    }
                    self.names.insert(name);
                }
                Ok(())
            }
            Expr::Paren(paren) => self.read(&paren.expr, mutable, inside),
            Expr::Group(group) => self.read(&group.expr, mutable, inside),
            Expr::Cast(cast) => self.read(&cast.expr, mutable, inside),
            Expr::Reference(reference) if reference.mutability.is_none() => {
                self.read(&reference.expr, mutable, inside)
            }
            Expr::Field(field) => self.read(&field.base, mutable, true),
            Expr::Unary(unary) => {
                let deref = matches!(unary.op, UnOp::Deref(_));
                self.read(&unary.expr, mutable, inside || deref)
            }
            Expr::Index(index) => {
                self.read(&index.expr, mutable, true)?;
                self.read(&index.index, mutable, inside)
            }
            Expr::Tuple(tuple) => {
                tuple.elems.iter().try_for_each(|part| self.read(part, mutable, inside))
            }
            Expr::Binary(binary) if !is_assignment(&binary.op) => {
                self.read(&binary.left, mutable, inside)?;
                self.read(&binary.right, mutable, inside)
            }
            other => Err(Impure { span: other.span(), text: text(other) }),
        }
    }
}

/// Returns whether this is `+=` or one of its kind.
pub fn is_assignment(op: &BinOp) -> bool {
    use BinOp::{
        AddAssign, BitAndAssign, BitOrAssign, BitXorAssign, DivAssign, MulAssign, RemAssign,
        ShlAssign, ShrAssign, SubAssign,
    };
    matches!(
        op,
        AddAssign(_)
            | SubAssign(_)
            | MulAssign(_)
            | DivAssign(_)
            | RemAssign(_)
            | BitXorAssign(_)
            | BitAndAssign(_)
            | BitOrAssign(_)
            | ShlAssign(_)
            | ShrAssign(_)
    )
}

/// `m` of `(&m)`: two ways to write the same mutex are the same mutex.
fn without_reference(expr: &Expr) -> &Expr {
    match expr {
        Expr::Paren(paren) => without_reference(&paren.expr),
        Expr::Group(group) => without_reference(&group.expr),
        Expr::Reference(reference) if reference.mutability.is_none() => {
            without_reference(&reference.expr)
        }
        other => other,
    }
}

/// Code on one line, without the spaces that tokens are printed with.
pub fn text(code: &impl ToTokens) -> String {
    let spaced = code.to_token_stream().to_string();
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut text = words.join(" ");
    for (from, to) in [
        (" . ", "."),
        (" :: ", "::"),
        (":: ", "::"),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        (" [", "["),
        ("[ ", "["),
        (" ]", "]"),
        (" ,", ","),
        (" ?", "?"),
        ("& ", "&"),
        ("! ", "!"),
        (" .. ", ".."),
    ] {
        text = text.replace(from, to);
    }
    text
}
