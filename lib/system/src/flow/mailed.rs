//! Hops of a flow by a `[[mailbox]]` of a host: a program sends to the mailbox, and a protocol
//! server takes its messages to another host, where another puts them into the mailbox of the same
//! name.

use super::{DeclaredFlow, DeclaredHop, Flow, FlowHop, FlowStop, FlowWay, List, near};
use crate::diagnostics::{Problem, Report};
use crate::hosts::Hosts;
use crate::system::MailboxSpec;
use diapason_contract::mail::BYTES_MAX;
use diapason_contract::routes::PROGRAM;

impl Flow {
    /// Returns the number of the mailbox in its host, if its first program sends to one. The flow
    /// ends at the mailbox of the same name then.
    #[must_use]
    pub fn mailbox(&self) -> Option<usize> {
        match self.hops.first()?.way {
            FlowWay::Mailbox(number) => Some(number),
            _ => None,
        }
    }
}

impl Hosts {
    /// Returns the number of a flow among those that end at its last program, in their order.
    #[must_use]
    pub fn source(&self, flow: usize) -> u8 {
        let end = |flow: &Flow| (flow.end().host, flow.end().process);
        let Some((own, before)) = self.flows.get(..=flow).and_then(<[Flow]>::split_last) else {
            return 0;
        };
        before.iter().filter(|other| end(other) == end(own)).count() as u8
    }
}

impl List<'_> {
    /// Returns the number of a mailbox of a host.
    pub(super) fn mailbox(&self, host: usize, name: &str) -> Option<usize> {
        self.hosts[host].system.mailboxes.iter().position(|mailbox| mailbox.name == name)
    }

    /// Returns the title and the help for a name that a host does not have.
    pub(super) fn no_mailbox(&self, host: usize, name: &str) -> (String, String) {
        let host = &self.hosts[host];
        let known = host.system.mailboxes.iter().map(|mailbox| mailbox.name.as_str());
        let title = format!("`{}` has no mailbox called `{name}`", host.name);
        (title, format!("add a `[[mailbox]]` to `{}`; {}", host.file, near(name, known)))
    }

    /// Returns a hop by a mailbox from one program to another of the same host.
    pub(super) fn mailed(
        &self,
        declared: &DeclaredHop,
        number: usize,
        [before, to]: [FlowStop; 2],
        report: &mut Report,
    ) -> Option<FlowHop> {
        let place = declared.by.as_ref().map_or(&declared.place, |by| &by.span);
        let host = &self.hosts[to.host];
        let mailbox = &host.system.mailboxes[number];
        let name = &mailbox.name;
        if let Some(slots) = &declared.slots {
            let title = "a hop by a mailbox with `slots`".to_owned();
            let help = "remove it: `messages` of the mailbox says how many it holds";
            report.push(Problem::new(&slots.span, title, help));
        }
        let [sender, receiver] =
            [before, to].map(|stop| &host.system.processes[usize::from(stop.process)].name);
        let (title, help) = if mailbox.messages == 0 {
            (
                format!("`{name}` has a server, and hands no messages over"),
                "name a mailbox without `server`".to_owned(),
            )
        } else if before.process == to.process {
            (
                format!("`{sender}` would send to itself"),
                "name the program that takes the messages".to_owned(),
            )
        } else if let Some(user) = [before, to].into_iter().find(|it| !uses(mailbox, *it)) {
            let user = self.written(user);
            (
                format!("`{user}` does not use the mailbox `{name}`"),
                format!("add `{name}` to its `uses` in `{}`", host.file),
            )
        } else if let Some(other) = self.other_user(mailbox, [before, to]) {
            (
                format!("`{}` may use the mailbox `{name}`, too", self.written(other)),
                format!(
                    "take `{name}` out of its `uses` in `{}`: nothing bounds what it sends or \
                     takes beside `{sender}` and `{receiver}`",
                    host.file
                ),
            )
        } else {
            let way = FlowWay::Mailbox(number);
            return Some(FlowHop { way, to, slots: mailbox.messages.into() });
        };
        report.push(Problem::new(place, title, help));
        None
    }

    /// Returns a process that may use a mailbox and is none of these.
    fn other_user(&self, mailbox: &MailboxSpec, known: [FlowStop; 2]) -> Option<FlowStop> {
        let [first, second] = known.map(|stop| 1_u64 << stop.process);
        let others = mailbox.allowed & !(first | second);
        let process = u16::try_from(others.trailing_zeros()).ok().filter(|_| others != 0)?;
        Some(FlowStop { process, ..known[0] })
    }

    /// Checks that a flow with mailboxes goes from one, through routers and over cables, to the one
    /// of the same name in another host.
    pub(super) fn is_mailed_whole(
        &self,
        declared: &DeclaredFlow,
        from: Option<FlowStop>,
        hops: &[FlowHop],
        report: &mut Report,
    ) -> bool {
        if !hops.iter().any(is_mailed) {
            return true;
        }
        let found =
            self.wrong_ends(declared, from, hops).or_else(|| self.no_server(declared, hops));
        let found = found.or_else(|| wrong_form(declared));
        let is_whole = found.is_none();
        found.into_iter().for_each(|problem| report.push(problem));
        is_whole
    }

    /// Returns why a flow does not go from a mailbox to that of the same name in another host.
    fn wrong_ends(
        &self,
        declared: &DeclaredFlow,
        from: Option<FlowStop>,
        hops: &[FlowHop],
    ) -> Option<Problem> {
        let refuse = |at: usize, title: String, help: &str| {
            let hop = &declared.hops[at];
            Some(Problem::new(hop.by.as_ref().map_or(&hop.place, |by| &by.span), title, help))
        };
        let last = hops.len() - 1;
        if let Some(inner) = (1..last).find(|at| is_mailed(&hops[*at])) {
            let title = "a mailbox in the middle of a flow".to_owned();
            let help = "end the flow there, and let another begin at that program";
            return refuse(inner, title, help);
        }
        let ([FlowWay::Mailbox(first), FlowWay::Mailbox(end)], true) =
            ([hops[0].way, hops[last].way], last > 1)
        else {
            let title = "a flow with a mailbox at one end only".to_owned();
            let help = "let it begin with a hop by a mailbox to a router, go over cables, and end \
                        with a hop by the mailbox of the same name in another host";
            return refuse(if is_mailed(&hops[0]) { last } else { 0 }, title, help);
        };
        let name =
            |at: usize, number: usize| &self.hosts[hops[at].to.host].system.mailboxes[number].name;
        let [first, end] = [name(0, first), name(last, end)];
        if first != end {
            let title = format!("messages to `{first}` would come to `{end}`");
            return refuse(last, title, &format!("name the mailbox `{first}` at both ends"));
        }
        if from.is_some_and(|from| from.host == hops[last].to.host) {
            let title = format!("messages to `{first}` would come back to the host they are from");
            return refuse(
                last,
                title,
                "end the flow in another host: within one it needs no flow",
            );
        }
        None
    }

    /// Returns why a program next to the mailboxes carries no messages of theirs.
    fn no_server(&self, declared: &DeclaredFlow, hops: &[FlowHop]) -> Option<Problem> {
        [0, hops.len().saturating_sub(2)].into_iter().find_map(|at| {
            let stop = hops[at].to;
            let process = &self.hosts[stop.host].system.processes[usize::from(stop.process)];
            let title = format!("`{}` carries no messages of mailboxes", self.written(stop));
            let help = format!("name a process with `program = \"{PROGRAM}\"`");
            let hop = &declared.hops[at];
            let place = hop.process.as_ref().map_or(&hop.place, |it| &it.span);
            (process.program != PROGRAM).then(|| Problem::new(place, title, help))
        })
    }

    /// Reports a mailbox that two hosts own, because flows lead to it in both, and one at which two
    /// flows begin.
    pub(super) fn one_owner(
        &self,
        declared: &[DeclaredFlow],
        flows: &[Option<Flow>],
        report: &mut Report,
    ) {
        let known = || flows.iter().enumerate().filter_map(|(at, flow)| Some((at, flow.as_ref()?)));
        let name = |flow: &Flow| {
            let number = flow.mailbox()?;
            Some(self.hosts[flow.from.host].system.mailboxes[number].name.as_str())
        };
        for (number, flow) in known() {
            let Some(mailbox) = name(flow) else { continue };
            let owner = flow.end().host;
            let differs = |other: &Flow| name(other) == Some(mailbox) && other.end().host != owner;
            if let Some((first, other)) =
                known().take_while(|it| it.0 < number).find(|it| differs(it.1))
            {
                let [one, two] = [other.end().host, owner].map(|host| &self.hosts[host].name);
                let title = format!("`{one}` and `{two}` both own the mailbox `{mailbox}`");
                let help =
                    "give the mailboxes of one of them another name: a name has one receiver";
                let problem = Problem::new(&declared[number].name.span, title, help);
                report.push(problem.with(&declared[first].name.span, "the first"));
            }
            let begins = |other: &Flow| {
                (other.from.host, other.mailbox()) == (flow.from.host, flow.mailbox())
            };
            if let Some((first, _)) = known().take_while(|it| it.0 < number).find(|it| begins(it.1))
            {
                let title = format!("two flows begin at the mailbox `{mailbox}`");
                let help = "remove one of them: messages to a name go one way";
                let problem = Problem::new(&declared[number].name.span, title, help);
                report.push(problem.with(&declared[first].name.span, "the first"));
            }
        }
    }
}

fn is_mailed(hop: &FlowHop) -> bool {
    matches!(hop.way, FlowWay::Mailbox(_))
}

/// Returns why the messages of a flow cannot be those of a mailbox.
fn wrong_form(declared: &DeclaredFlow) -> Option<Problem> {
    if let Some(hop) = declared.hops.iter().find(|hop| !hop.otherwise.is_empty()) {
        let title = "another way for messages of mailboxes";
        return Some(Problem::new(
            &hop.place,
            title,
            "remove `otherwise`: their router knows one way",
        ));
    }
    let bytes = declared.bytes.as_ref().filter(|bytes| bytes.value < BYTES_MAX as u64)?;
    let title = format!("a message of a mailbox may have {BYTES_MAX} bytes in a cable");
    Some(Problem::new(&bytes.span, title, format!("write `bytes = {BYTES_MAX}`")))
}

fn uses(mailbox: &MailboxSpec, stop: FlowStop) -> bool {
    mailbox.allowed >> stop.process & 1 != 0
}
