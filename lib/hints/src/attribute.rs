//! A person's statement about the next line: `#[hint(…)]` before it.

use crate::Problem;
use crate::terms::Term;
use quote::ToTokens;
use std::collections::HashMap;
use std::rc::Rc;
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, Block, Expr, Item, Stmt};

/// The forms allowed in the brackets.
const FORMS: &str = "`#[hint(none)]`, `#[hint(MUTEX)]`, `#[hint(locks(MUTEX))]`, \
                     `#[hint(blocks)]`, \
     `#[hint(ignore)]`";

/// A statement by a person.
#[derive(Clone, Debug)]
pub(crate) enum Said {
    /// The blocking calls of the statement have no hint.
    None,
    /// The calls have this hint.
    Mutex(Rc<Term>),
    /// Something in the statement, not to be seen here, locks this mutex first.
    Locks(Rc<Term>),
    /// Something in it blocks first, and not for a mutex.
    Blocks,
    /// The function's calls are not what their names say.
    Ignore,
}

/// Takes what was said out of a function. A statement is known by its address, which stays the
/// same as long as nobody adds or removes statements.
pub fn take(block: &mut Block) -> (HashMap<*const Stmt, Said>, Vec<Problem>) {
    let mut taken = Taken { said: HashMap::new(), problems: Vec::new() };
    taken.visit_block_mut(block);
    (taken.said, taken.problems)
}

struct Taken {
    said: HashMap<*const Stmt, Said>,
    problems: Vec<Problem>,
}

impl VisitMut for Taken {
    fn visit_item_mut(&mut self, _: &mut Item) {}

    fn visit_stmt_mut(&mut self, stmt: &mut Stmt) {
        let address: *const Stmt = stmt;
        if let Some(attributes) = attributes(stmt) {
            let (ours, others) = attributes.drain(..).partition(is_ours);
            *attributes = others;
            match said(&ours) {
                Ok(Some(said)) => drop(self.said.insert(address, said)),
                Ok(None) => {}
                Err(problem) => self.problems.push(problem),
            }
        }
        visit_mut::visit_stmt_mut(self, stmt);
    }
}

fn said(ours: &[Attribute]) -> Result<Option<Said>, Problem> {
    match ours {
        [] => Ok(None),
        [one] => parse(one).map(Some),
        [_, second, ..] => {
            Err(Problem::new(span(second), "two `#[hint]` before one statement", "keep one"))
        }
    }
}

fn is_ours(attribute: &Attribute) -> bool {
    attribute.path().is_ident("hint")
}

fn span(attribute: &Attribute) -> proc_macro2::Span {
    syn::spanned::Spanned::span(attribute.path())
}

fn parse(attribute: &Attribute) -> Result<Said, Problem> {
    let wrong = |what: String| Problem::new(span(attribute), what, format!("write one of {FORMS}"));
    let expr: Expr = attribute
        .parse_args()
        .map_err(|error| wrong(format!("`#[hint]` cannot be read: {error}")))?;
    let mutex = |expr: &Expr| {
        let term = Term::mutex(expr);
        term.map(Rc::new).map_err(|impure| {
            wrong(format!("`{}` has effects, so it cannot name a mutex", impure.text))
        })
    };
    match &expr {
        Expr::Path(path) if path.path.is_ident("none") => Ok(Said::None),
        Expr::Path(path) if path.path.is_ident("blocks") => Ok(Said::Blocks),
        Expr::Path(path) if path.path.is_ident("ignore") => Ok(Said::Ignore),
        Expr::Call(call) if call.func.to_token_stream().to_string() == "locks" => {
            let mut arguments = call.args.iter();
            match (arguments.next(), arguments.next()) {
                (Some(only), None) => mutex(only).map(Said::Locks),
                _ => Err(wrong("`locks` names one mutex".into())),
            }
        }
        Expr::Lit(_) => Err(wrong("a number or a text is no mutex".into())),
        other => mutex(other).map(Said::Mutex),
    }
}

/// Returns the attributes of a statement. Before `a = b` the parser hangs them on `a`.
fn attributes(stmt: &mut Stmt) -> Option<&mut Vec<Attribute>> {
    match stmt {
        Stmt::Local(local) => Some(&mut local.attrs),
        Stmt::Macro(call) => Some(&mut call.attrs),
        Stmt::Expr(expr, _) => of_expression(expr),
        Stmt::Item(_) => None,
    }
}

fn of_expression(expr: &mut Expr) -> Option<&mut Vec<Attribute>> {
    match expr {
        Expr::Assign(assign) => of_expression(&mut assign.left),
        Expr::Binary(binary) => of_expression(&mut binary.left),
        Expr::Cast(cast) => of_expression(&mut cast.expr),
        Expr::MethodCall(e) => Some(&mut e.attrs),
        Expr::Call(e) => Some(&mut e.attrs),
        Expr::Try(e) => Some(&mut e.attrs),
        Expr::If(e) => Some(&mut e.attrs),
        Expr::Match(e) => Some(&mut e.attrs),
        Expr::Loop(e) => Some(&mut e.attrs),
        Expr::While(e) => Some(&mut e.attrs),
        Expr::ForLoop(e) => Some(&mut e.attrs),
        Expr::Block(e) => Some(&mut e.attrs),
        Expr::Unsafe(e) => Some(&mut e.attrs),
        Expr::Macro(e) => Some(&mut e.attrs),
        Expr::Return(e) => Some(&mut e.attrs),
        Expr::Break(e) => Some(&mut e.attrs),
        Expr::Path(e) => Some(&mut e.attrs),
        Expr::Field(e) => Some(&mut e.attrs),
        Expr::Index(e) => Some(&mut e.attrs),
        Expr::Unary(e) => Some(&mut e.attrs),
        Expr::Paren(e) => Some(&mut e.attrs),
        Expr::Tuple(e) => Some(&mut e.attrs),
        _ => None,
    }
}
