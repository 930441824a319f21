//! The walk: from the end of a function to its start, with what comes next in hand.
//!
//! Every function here takes what comes after a piece of code and returns what comes next if that
//! piece is about to run. Loops and branches are in files of their own.

use crate::Problem;
use crate::attribute::{self, Said};
use crate::calls::{self, Call};
use crate::names::{self, Names};
use crate::next::Next;
use crate::terms::{Term, is_assignment};
use proc_macro2::Span;
use std::collections::HashMap;
use std::rc::Rc;
use syn::spanned::Spanned;
use syn::{Block, Expr, ExprCall, ExprMethodCall, ItemFn, Local, Macro, Stmt};

/// The remedy where a hint is wrong or unknown.
const SAY: &str = "put `#[hint(MUTEX)]` or `#[hint(none)]` before this statement";
const SAY_INSIDE: &str = "move the call out, or put `#[hint(locks(MUTEX))]`, `#[hint(blocks)]` or \
                          `#[hint(ignore)]` before this statement";

/// A blocking call and its hint.
#[derive(Clone, Debug)]
pub struct Site {
    /// Where: line and column, the line from 1, the column from 0.
    pub line: usize,
    pub column: usize,
    /// The call, as `jobs.wait`.
    pub call: String,
    /// The next lock after it, in words: `` lock `m` ``, or `none`.
    pub hint: String,
    pub(crate) next: Next,
    span: Span,
}

/// The knowledge about a function.
#[derive(Debug)]
pub struct Analysis {
    /// The function's blocking calls in the order of the text.
    pub sites: Vec<Site>,
    pub(crate) by_address: HashMap<*const Expr, Site>,
    /// The number of each counted loop.
    pub(crate) loops: HashMap<*const Expr, usize>,
}

/// Decides the hint of every blocking call of `function`, and takes the `#[hint]` out of it.
///
/// # Errors
/// All places where there is no decision, or that cannot be read.
pub fn analyse(function: &mut ItemFn) -> Result<Analysis, Vec<Problem>> {
    let (said, problems) = attribute::take(&mut function.block);
    let (mutable, hidden) = names::mutable_in(function);
    let mut flow = Flow { said, problems, mutable, hidden, ..Flow::default() };
    if let Some(asyncness) = &function.sig.asyncness {
        let remedy = "a task is an ordinary function that blocks";
        flow.problem(asyncness.span(), "an `async` function does not block".into(), remedy);
    }
    flow.exits.push(Next::Leaves);
    flow.block(&function.block, &Next::Leaves);
    flow.complain();
    if !flow.problems.is_empty() {
        flow.problems.sort_by_key(|p| (p.span.start().line, p.span.start().column));
        return Err(flow.problems);
    }
    let mut sites: Vec<Site> = flow.sites.values().cloned().collect();
    sites.sort_by_key(|site| (site.line, site.column));
    Ok(Analysis { sites, by_address: flow.sites, loops: flow.counted })
}

/// A construct that `break` leaves.
pub(crate) struct Frame {
    pub(crate) label: Option<String>,
    pub(crate) on_break: Next,
    /// Nothing for a block with a label.
    pub(crate) on_continue: Option<Next>,
}

/// The state of the walk.
#[derive(Default)]
pub(crate) struct Flow {
    said: HashMap<*const Stmt, Said>,
    /// Variables that can change.
    mutable: Names,
    /// Those that a closure may change.
    hidden: Names,
    sites: HashMap<*const Expr, Site>,
    pub(crate) counted: HashMap<*const Expr, usize>,
    /// The targets of `return`, innermost last.
    exits: Vec<Next>,
    /// The targets of `break` and `continue`, innermost last.
    pub(crate) frames: Vec<Frame>,
    /// A person's statement about the statement.
    forced: Option<Said>,
    seen: usize,
    problems: Vec<Problem>,
}

impl Flow {
    /// Records a problem once, however often its place is walked over.
    pub(crate) fn problem(&mut self, span: Span, what: String, remedy: &str) {
        let at = |span: Span| (span.start(), span.end());
        let old = self.problems.iter_mut().find(|p| at(p.span) == at(span) && p.remedy == remedy);
        match old {
            Some(old) => old.what = what,
            None => self.problems.push(Problem::new(span, what, remedy)),
        }
    }

    /// Returns a term made of `expr`, or the part that prevents it.
    pub(crate) fn term(&self, expr: &Expr) -> Option<Term> {
        let term = Term::of(expr, &self.mutable).ok()?;
        (!term.depends_on(&self.hidden)).then_some(term)
    }

    /// A block, and with it the end of the life of the names it binds.
    pub(crate) fn block(&mut self, block: &Block, after: &Next) -> Next {
        let outside = after.before_binding(&names::bound_in(block), block.span());
        block.stmts.iter().rev().fold(outside, |next, stmt| self.stmt(stmt, &next))
    }

    fn stmt(&mut self, stmt: &Stmt, after: &Next) -> Next {
        let Some(said) = self.said.get(&(&raw const *stmt)).cloned() else {
            return self.plain_stmt(stmt, after);
        };
        match &said {
            Said::Locks(mutex) => Next::Lock(mutex.clone()),
            Said::Blocks => Next::Blocks,
            Said::Ignore => bindings_of(stmt, after),
            Said::None | Said::Mutex(_) => {
                let (outer, seen) = (self.forced.replace(said), self.seen);
                let next = self.plain_stmt(stmt, after);
                self.forced = outer;
                if self.seen == seen {
                    let what = "`#[hint]` before a statement without a blocking call";
                    let remedy = "take it away, or say `#[hint(locks(MUTEX))]`";
                    self.problem(stmt.span(), what.into(), remedy);
                }
                next
            }
        }
    }

    fn plain_stmt(&mut self, stmt: &Stmt, after: &Next) -> Next {
        match stmt {
            Stmt::Local(local) => self.local(local, after),
            Stmt::Item(_) => after.clone(),
            Stmt::Expr(expr, _) => self.expr(expr, after),
            Stmt::Macro(call) => self.macro_call(&call.mac, after),
        }
    }

    fn local(&mut self, local: &Local, after: &Next) -> Next {
        let bound = after.before_binding(&names::bound_by(&local.pat), local.span());
        let Some(init) = &local.init else { return bound };
        let next = match &init.diverge {
            None => bound,
            Some((_, otherwise)) => {
                let failed = self.expr(otherwise, &Next::Never);
                self.unless_failed(bound, failed, &init.expr)
            }
        };
        self.expr(&init.expr, &next)
    }

    /// Several expressions that run in this order.
    pub(crate) fn sequence<'a>(
        &mut self,
        exprs: impl DoubleEndedIterator<Item = &'a Expr>,
        after: &Next,
    ) -> Next {
        exprs.rev().fold(after.clone(), |next, expr| self.expr(expr, &next))
    }

    pub(crate) fn expr(&mut self, expr: &Expr, after: &Next) -> Next {
        match expr {
            Expr::MethodCall(call) => self.method(expr, call, after),
            Expr::Call(call) => self.function(expr, call, after),
            Expr::Macro(call) => self.macro_call(&call.mac, after),
            Expr::If(_) | Expr::Match(_) => self.branching(expr, after),
            Expr::Loop(_) | Expr::While(_) | Expr::ForLoop(_) => self.looping(expr, after),
            Expr::Break(_) | Expr::Continue(_) => self.jump(expr),
            Expr::Block(labelled) => self.labelled(labelled, after),
            Expr::Unsafe(inner) => self.block(&inner.block, after),
            Expr::TryBlock(inner) => self.block(&inner.block, after),
            Expr::Return(returned) => {
                let exit = self.exits.last().cloned().unwrap_or(Next::Leaves);
                self.sequence(returned.expr.iter().map(|e| &**e), &exit)
            }
            Expr::Assign(assign) => {
                let names = names::assigned(&assign.left);
                let next = after.before_binding(&names, assign.span());
                let next = self.expr(&assign.left, &next);
                self.expr(&assign.right, &next)
            }
            Expr::Binary(binary) => self.binary(binary, after),
            Expr::Reference(reference) if reference.mutability.is_some() => {
                let names = names::base(&reference.expr).into_iter().collect();
                self.expr(&reference.expr, &after.before_binding(&names, reference.span()))
            }
            Expr::Closure(closure) => {
                self.deferred(expr, after, |flow| flow.expr(&closure.body, &Next::Leaves))
            }
            Expr::Async(inner) => {
                self.deferred(expr, after, |flow| flow.block(&inner.block, &Next::Leaves))
            }
            other => self.sequence(parts(other).into_iter(), after),
        }
    }

    fn binary(&mut self, binary: &syn::ExprBinary, after: &Next) -> Next {
        use syn::BinOp::{And, Or};
        match binary.op {
            And(_) | Or(_) => {
                let right = self.expr(&binary.right, after);
                let (yes, no) = match binary.op {
                    And(_) => (right, after.clone()),
                    _ => (after.clone(), right),
                };
                self.condition(&binary.left, &yes, &no)
            }
            ref op if is_assignment(op) => {
                let names = names::assigned(&binary.left);
                let next = after.before_binding(&names, binary.span());
                let next = self.expr(&binary.left, &next);
                self.expr(&binary.right, &next)
            }
            _ => self.sequence([&*binary.left, &*binary.right].into_iter(), after),
        }
    }

    fn method(&mut self, expr: &Expr, call: &ExprMethodCall, after: &Next) -> Next {
        let given = std::iter::once(&*call.receiver).chain(&call.args);
        let next = self.call(expr, calls::method(call), given.clone(), after);
        self.sequence(given.collect::<Vec<_>>().into_iter(), &next)
    }

    fn function(&mut self, expr: &Expr, call: &ExprCall, after: &Next) -> Next {
        if let Call::Runs(Expr::Closure(closure)) = calls::function(call) {
            self.exits.push(after.clone());
            let next = self.expr(&closure.body, after);
            self.exits.pop();
            return self.sequence(call.args.iter().take(1), &next);
        }
        let given = std::iter::once(&*call.func).chain(&call.args);
        let next = self.call(expr, calls::function(call), given.clone(), after);
        self.sequence(given.collect::<Vec<_>>().into_iter(), &next)
    }

    /// The call itself, after everything it is given was computed.
    fn call<'a>(
        &mut self,
        expr: &Expr,
        call: Call<'_>,
        given: impl Iterator<Item = &'a Expr>,
        after: &Next,
    ) -> Next {
        let shaken = given.filter_map(names::base).collect();
        let after = after.before_call(&shaken, expr.span());
        match call {
            Call::Plain | Call::Runs(_) => after,
            Call::Never => Next::Never,
            Call::Unhinted => Next::Blocks,
            Call::Hinted => {
                self.site(expr, after);
                Next::Blocks
            }
            Call::Lock(mutex) => match Term::mutex(mutex) {
                Ok(term) if !term.depends_on(&self.hidden) => Next::Lock(Rc::new(term)),
                Ok(term) => Next::undecided(format!("a closure may change the mutex {term}")),
                Err(impure) => {
                    let line = impure.span.start().line;
                    let text = format!(
                        "the lock at line {line} finds its mutex by `{}`, which may have effects",
                        impure.text
                    );
                    Next::undecided(text)
                }
            },
        }
    }

    /// A blocking call: what comes after it is its hint.
    fn site(&mut self, expr: &Expr, after: Next) {
        self.seen += 1;
        let next = match &self.forced {
            Some(Said::None) => Next::Blocks,
            Some(Said::Mutex(mutex)) => Next::Lock(mutex.clone()),
            _ => after,
        };
        let span = match expr {
            Expr::MethodCall(call) => call.method.span(),
            other => other.span(),
        };
        let call = calls::label(expr);
        let start = span.start();
        let hint = next.describe();
        let site = Site { line: start.line, column: start.column, call, hint, next, span };
        self.sites.insert(&raw const *expr, site);
    }

    fn macro_call(&mut self, call: &Macro, after: &Next) -> Next {
        if let Some(hidden) = calls::hidden_in(&call.tokens) {
            let what =
                format!("`{hidden}` inside a macro: its place in the order is not to be seen");
            self.problem(hidden.span(), what, SAY_INSIDE);
        }
        if calls::macro_never_returns(&call.path) {
            return Next::Never;
        }
        after.before_call(&names::in_tokens(&call.tokens), call.span())
    }

    /// Code that runs later, or never, or often: it must not block.
    fn deferred(
        &mut self,
        whole: &Expr,
        after: &Next,
        walk: impl FnOnce(&mut Flow) -> Next,
    ) -> Next {
        let before = (self.seen, std::mem::take(&mut self.frames), self.sites.clone());
        self.exits.push(Next::Leaves);
        let next = walk(self);
        self.exits.pop();
        let silent = self.seen == before.0 && matches!(next, Next::Leaves | Next::Never);
        (self.seen, self.frames, self.sites) = before;
        if !silent {
            let what = "a closure that blocks: when it runs is not to be seen";
            self.problem(whole.span(), what.into(), SAY_INSIDE);
        }
        after.clone()
    }

    /// Complains about the calls without a decision, when all is known.
    fn complain(&mut self) {
        let sites: Vec<Site> = self.sites.values().cloned().collect();
        for site in sites {
            if let Some(why) = site.next.doubt() {
                let call = &site.call;
                let what = format!("the mutex that follows `{call}` cannot be decided: {why}");
                self.problem(site.span, what, SAY);
            }
        }
    }
}

/// Returns the next lock before a statement of which only the bound names matter.
fn bindings_of(stmt: &Stmt, after: &Next) -> Next {
    match stmt {
        Stmt::Local(local) => after.before_binding(&names::bound_by(&local.pat), local.span()),
        _ => after.clone(),
    }
}

/// Returns the parts of an expression that does nothing but compute them in order.
fn parts(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::Array(e) => e.elems.iter().collect(),
        Expr::Await(e) => vec![&e.base],
        Expr::Cast(e) => vec![&e.expr],
        Expr::Field(e) => vec![&e.base],
        Expr::Group(e) => vec![&e.expr],
        Expr::Index(e) => vec![&e.expr, &e.index],
        Expr::Let(e) => vec![&e.expr],
        Expr::Paren(e) => vec![&e.expr],
        Expr::Range(e) => e.start.iter().chain(&e.end).map(|e| &**e).collect(),
        Expr::RawAddr(e) => vec![&e.expr],
        Expr::Reference(e) => vec![&e.expr],
        Expr::Repeat(e) => vec![&e.expr],
        Expr::Struct(e) => {
            e.fields.iter().map(|field| &field.expr).chain(e.rest.as_deref()).collect()
        }
        Expr::Try(e) => vec![&e.expr],
        Expr::Tuple(e) => e.elems.iter().collect(),
        Expr::Unary(e) => vec![&e.expr],
        _ => Vec::new(),
    }
}
