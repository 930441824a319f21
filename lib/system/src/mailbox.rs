//! `[[mailbox]]`: messages between processes, or calls to a server.
//!
//! A mailbox with a `server` holds no messages: its callers wait for the server, and run it in
//! their own place. They wait for a mutex that follows from the table, which the server holds. So a
//! plan counts a call as a `[[section]]` of the caller.

use crate::declared::{Declared, DeclaredProcess, Named};
use crate::diagnostics::{Problem, Report};
use crate::keys::name;
use crate::limits::MESSAGES_MAX;
use crate::names::{Names, server_of};
use crate::read::count;
use crate::source::At;
use crate::system::{MailboxSpec, SemaphoreKind, ServedBy};
use crate::table::{Raw, Table};

/// A mailbox as it is declared.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredMailbox {
    pub messages: u16,
    /// The process that answers its callers.
    pub server: Option<At<String>>,
}

impl DeclaredMailbox {
    /// Returns a mailbox without a server.
    pub fn plain(messages: u16) -> DeclaredMailbox {
        DeclaredMailbox { messages, server: None }
    }
}

pub(crate) fn mailbox(raw: Raw<'_>, report: &mut Report) -> Named<DeclaredMailbox> {
    let mut table = Table::new("[[mailbox]]", "mailbox", raw, report);
    let name = name(&mut table);
    let server = table.text("server", "server = \"filter\"");
    let messages = if server.is_some() {
        if let Some(messages) = table.number("messages", 1..=u64::from(MESSAGES_MAX), "") {
            let title = "a mailbox with a server holds no messages";
            let help = "remove `messages`: its callers wait for the server; or remove `server`";
            table.report.push(Problem::new(&messages.span, title, help));
        }
        0
    } else if table.has("messages") {
        count(&mut table, "messages", 1, u64::from(MESSAGES_MAX)).unwrap_or(1)
    } else {
        table.needs("messages", "add `messages = 8`: the most it holds before senders wait");
        1
    };
    table.report_unknown();
    Named { name, what: DeclaredMailbox { messages, server } }
}

/// Declares the mutex of each mailbox with a server, for all that use the mailbox.
pub(crate) fn expand(declared: &mut Declared) {
    for mailbox in declared.mailboxes.iter().filter(|mailbox| mailbox.what.server.is_some()) {
        let At { value: name, span } = &mailbox.name;
        let mutex = At::new(server_of(name), span.clone());
        for process in &mut declared.processes {
            if uses(process, name) {
                process.uses.push(mutex.clone());
            }
        }
        declared.semaphores.push(Named { name: mutex, what: SemaphoreKind::Mutex });
    }
}

fn uses(process: &DeclaredProcess, name: &str) -> bool {
    process.uses.iter().any(|used| used.value == name)
}

pub(crate) fn check(declared: &Declared, names: &Names<'_>, report: &mut Report) {
    let mut servers: Vec<&str> = Vec::new();
    for mailbox in &declared.mailboxes {
        let Some(server) = &mailbox.what.server else { continue };
        if servers.contains(&&*server.value) {
            second(mailbox, server, report);
        }
        servers.push(&server.value);
        if names.is_process(server, report)
            && let Some(process) = declared.process(&server.value)
        {
            server_of_mailbox(declared, &declared.processes[process], mailbox, report);
        }
    }
}

/// Reports a further mailbox of one server. A thread that waits at one of its mailboxes would leave
/// the callers of the others waiting, and no section counts that.
fn second(mailbox: &Named<DeclaredMailbox>, server: &At<String>, report: &mut Report) {
    let title = format!("`{}` serves another mailbox, too", server.value);
    let help = format!(
        "declare another `[[process]]` to serve `{}`, or tell requests apart by their first bytes",
        mailbox.name.value
    );
    report.push(Problem::new(&server.span, title, help));
}

/// Reports a server that cannot run in the places of its callers only.
fn server_of_mailbox(
    declared: &Declared,
    process: &DeclaredProcess,
    mailbox: &Named<DeclaredMailbox>,
    report: &mut Report,
) {
    let (name, mailbox) = (&process.name.value, &mailbox.name);
    if !uses(process, &mailbox.value) {
        let title = format!("`{name}` serves `{}` and does not use it", mailbox.value);
        let help = format!("add `{}` to `uses` of `{name}`", mailbox.value);
        report.push(Problem::new(&mailbox.span, title, help));
    }
    let named = process.vcpu.as_ref().map(|vcpu| &vcpu.span);
    let used = process
        .uses
        .iter()
        .find(|used| declared.vcpus.iter().any(|vcpu| vcpu.name.value == used.value));
    if let Some(span) = named.or(used.map(|used| &used.span)) {
        let title = format!("`{name}` serves `{}` and has a VCPU", mailbox.value);
        let help = "remove it: a server runs in the places of its callers, on their budgets";
        report.push(Problem::new(span, title, help));
    }
}

/// Returns the declared mailboxes; `users` tells the processes that use what has a name.
pub(crate) fn mailboxes(
    declared: &Declared,
    users: impl Fn(&At<String>) -> u64,
) -> Vec<MailboxSpec> {
    let number = |name: &str| {
        let mutex = server_of(name);
        let place = declared.semaphores.iter().position(|named| named.name.value == mutex)?;
        u16::try_from(place).ok()
    };
    let process = |server: &At<String>| u16::try_from(declared.process(&server.value)?).ok();
    let served = |Named { name, what }: &Named<DeclaredMailbox>| {
        let process = process(what.server.as_ref()?)?;
        Some(ServedBy { process, mutex: number(&name.value)? })
    };
    let spec = |mailbox: &Named<DeclaredMailbox>| MailboxSpec {
        name: mailbox.name.value.clone(),
        messages: mailbox.what.messages,
        served: served(mailbox),
        allowed: users(&mailbox.name),
        faults_of: None,
    };
    declared.mailboxes.iter().map(spec).collect()
}
