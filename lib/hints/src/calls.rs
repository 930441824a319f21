//! The runtime's calls, known by name and number of arguments: no types are to be seen here.

use crate::terms::text;
use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::{Expr, ExprCall, ExprMethodCall, Path};

/// Methods that block and take a hint, with the number of their arguments.
const HINTED: [(&str, usize); 6] =
    [("wait", 0), ("wait", 1), ("take", 1), ("receive", 1), ("receive_into", 2), ("join", 1)];
/// Methods that block and take none.
const UNHINTED: [(&str, usize); 2] = [("wait", 2), ("send", 3)];
/// Methods of a mutex.
const LOCKS: [(&str, usize); 2] = [("lock", 0), ("lock_until", 1)];
/// Functions that block and take a hint.
const FUNCTIONS: [(&str, usize); 4] =
    [("sleep", 1), ("sleep_until", 1), ("periodic", 3), ("receive_fault", 2)];
/// Types whose methods may also be called as functions.
const TYPES: [&str; 7] =
    ["Event", "Timer", "Jobs", "Semaphore", "Mailbox", "JoinHandle", "Condition"];
/// The suffix of a call's name if there is a hint.
pub const SUFFIX: &str = "_then";

/// The meaning of a call to the task that makes it.
pub(crate) enum Call<'a> {
    Lock(&'a Expr),
    /// Blocks, and takes a hint.
    Hinted,
    /// Blocks, and takes none; or has one already.
    Unhinted,
    Never,
    /// Runs a closure here and now.
    Runs(&'a Expr),
    /// Nothing of the above, as far as the name tells.
    Plain,
}

fn listed(table: &[(&str, usize)], name: &str, count: usize) -> bool {
    table.contains(&(name, count))
}

/// Returns whether a hint was given by hand.
fn by_hand(name: &str, count: usize) -> bool {
    let stem = name.strip_suffix(SUFFIX).zip(count.checked_sub(1));
    stem.is_some_and(|(stem, count)| {
        listed(&HINTED, stem, count) || listed(&FUNCTIONS, stem, count)
    })
}

/// Returns whether the last argument says that the call does not block, or is no time at all.
fn never_waits(last: Option<&Expr>) -> bool {
    match last {
        Some(Expr::Lit(_)) => true,
        Some(Expr::Path(path)) => path.path.segments.last().is_some_and(|s| s.ident == "ZERO"),
        _ => false,
    }
}

fn by_name<'a>(name: &str, count: usize, last: Option<&Expr>, this: Option<&'a Expr>) -> Call<'a> {
    let waits = count == 0 || !never_waits(last);
    match this {
        Some(mutex) if listed(&LOCKS, name, count) && waits => Call::Lock(mutex),
        _ if listed(&HINTED, name, count) && waits => Call::Hinted,
        _ if listed(&UNHINTED, name, count) && waits => Call::Unhinted,
        _ if by_hand(name, count) => Call::Unhinted,
        _ => Call::Plain,
    }
}

/// Returns the meaning of `a.b(c)`.
pub fn method(call: &ExprMethodCall) -> Call<'_> {
    let name = call.method.to_string();
    by_name(&name, call.args.len(), call.args.last(), Some(&call.receiver))
}

/// Returns the meaning of `a::b(c)`.
pub fn function(call: &ExprCall) -> Call<'_> {
    let Expr::Path(path) = &*call.func else { return Call::Plain };
    let Some(last) = path.path.segments.last() else { return Call::Plain };
    let (name, count) = (last.ident.to_string(), call.args.len());
    let owner = owner(&path.path);
    match owner.as_deref() {
        Some("Mutex") if count > 0 => {
            return by_name(&name, count - 1, call.args.last(), call.args.first());
        }
        Some(owner) if TYPES.contains(&owner) && count > 0 => {
            return by_name(&name, count - 1, call.args.last(), None);
        }
        Some("thread") if name == "exit" => return Call::Never,
        Some("sys") if name == "fail" => return Call::Never,
        _ => {}
    }
    match call.args.last() {
        Some(body @ Expr::Closure(_)) if name == "work" && count == 2 => Call::Runs(body),
        _ if listed(&FUNCTIONS, &name, count) => Call::Hinted,
        _ if by_hand(&name, count) => Call::Unhinted,
        _ => Call::Plain,
    }
}

fn owner(path: &Path) -> Option<String> {
    let at = path.segments.len().checked_sub(2)?;
    path.segments.get(at).map(|segment| segment.ident.to_string())
}

/// Returns its name in a listing: `jobs.wait`, `time::sleep`.
pub fn label(expr: &Expr) -> String {
    match expr {
        Expr::MethodCall(call) => format!("{}.{}", text(&call.receiver), call.method),
        Expr::Call(call) => text(&call.func),
        other => text(other),
    }
}

/// Returns whether this macro never returns.
pub fn macro_never_returns(path: &Path) -> bool {
    let last = path.segments.last().map(|segment| segment.ident.to_string());
    matches!(last.as_deref(), Some("panic" | "unreachable" | "unimplemented"))
}

/// Returns a blocking call among tokens that nobody parsed.
pub fn hidden_in(tokens: &TokenStream) -> Option<Ident> {
    let mut before_dot = false;
    let mut candidate: Option<Ident> = None;
    for token in tokens.clone() {
        match token {
            TokenTree::Group(group) => {
                let found = candidate.take().or_else(|| hidden_in(&group.stream()));
                if found.is_some() {
                    return found;
                }
                before_dot = false;
            }
            TokenTree::Ident(ident) => {
                candidate = (before_dot && is_ours(&ident.to_string())).then_some(ident);
                before_dot = false;
            }
            TokenTree::Punct(punct) => {
                before_dot = punct.as_char() == '.';
                candidate = None;
            }
            TokenTree::Literal(_) => {
                candidate = None;
                before_dot = false;
            }
        }
    }
    None
}

fn is_ours(name: &str) -> bool {
    let name = name.strip_suffix(SUFFIX).unwrap_or(name);
    [&HINTED[..], &UNHINTED[..], &LOCKS[..]].concat().iter().any(|(ours, _)| *ours == name)
}
