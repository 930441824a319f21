//! The works of the servers that come with Diapason: a `[[work]]` with the prefix of a server must
//! be one of them, or it changes nothing.

use crate::diagnostics::{Problem, Report};
use crate::source::At;
use crate::suggest::nearest;
use diapason_contract::threads::{
    Home, LINK, MANAGE, RECEIVE, SEND, STREAM, ServiceKind, TUNE, WORDS,
};
use diapason_contract::{camera, ethernet, time, toucan};

/// The prefixes of works that only a server does.
const PREFIXES: [&str; 4] = ["usbd.", "netd.", "cand.", "dbcd."];
/// The work of the server for debug cables.
const LOOK: &str = "dbcd.look";

/// Returns the first bottom half of each service. The others of a service do the same works.
fn services() -> impl Iterator<Item = &'static Home> + Clone {
    let services = (0..WORDS.len() as u64).filter_map(ServiceKind::numbered);
    services.filter_map(|kind| kind.homes().first())
}

/// Returns the works of servers. Those of a message or a transfer are parts of a wake-up.
pub fn of_servers() -> impl Iterator<Item = &'static str> + Clone {
    let services = services().map(|home| home.work);
    let usb = [MANAGE, RECEIVE.work, SEND.work, TUNE.work, LINK[0].work, STREAM[0].work];
    let usb = usb.into_iter().chain([camera::WORK, LOOK]);
    let ethernet = [ethernet::RECEIVE, ethernet::RECEIVE_FRAME, ethernet::SEND_FRAME];
    let ethernet = ethernet.into_iter().chain([ethernet::SEND_GATES, time::SEND_TIME]);
    let can = [toucan::SERVE, toucan::FIND, toucan::TAKE, toucan::HEAR, toucan::RENEW];
    services.chain(usb).chain(parts_of_servers()).chain(ethernet).chain(can)
}

/// Returns the works of messages, each with that of the wake-up that it may be apart from.
pub fn apart_of_servers() -> impl Iterator<Item = (&'static str, &'static str)> + Clone {
    let apart = services()
        .chain([&LINK[0]])
        .filter(|home| !home.each.is_empty() && home.transfer.is_empty());
    apart.map(|home| (home.each, home.work))
}

/// Returns the works of messages and transfers that are also in the work of a wake-up. The server
/// does nothing under their names.
pub fn parts_of_servers() -> impl Iterator<Item = &'static str> + Clone {
    apart_of_servers().map(|(part, _)| part).chain([RECEIVE.each, RECEIVE.transfer])
}

/// Returns whether only a server can do the work of this name.
#[must_use]
pub fn is_of_server(name: &str) -> bool {
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Reports a work with the prefix of a server that the server does not have.
pub(crate) fn check(name: &At<String>, report: &mut Report) {
    if !is_of_server(&name.value) || of_servers().any(|work| work == name.value) {
        return;
    }
    let (server, _) = name.value.split_once('.').unwrap_or_default();
    let title = format!("`{server}` has no work `{}`", name.value);
    let help = match nearest(&name.value, of_servers()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`diapason measure` lists the works that were done, with their names".to_owned(),
    };
    report.push(Problem::new(&name.span, title, help));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(name: &str) -> Vec<String> {
        let text = format!(
            "[system]\nname = \"s\"\n[[process]]\nname = \"p\"\npriority = 1\n\
             [[work]]\nname = \"{name}\"\nworst = \"1us\"\n"
        );
        match crate::parse("s", &text) {
            Ok(_) => Vec::new(),
            Err(wrong) => wrong.to_string().lines().map(str::to_owned).collect(),
        }
    }

    #[test]
    fn a_work_that_its_server_does_not_have_is_refused() {
        for name in ["usbd.recieve", "netd.receive.frames", "cand.serv", "usbd.manager"] {
            let text = problems(name).join("\n");
            let server = &name[..4];
            assert!(text.contains(&format!("`{server}` has no work `{name}`")), "{name}: {text}");
            assert!(text.contains("did you mean `"), "{name}: {text}");
        }
        let far = problems("usbd.something-else").join("\n");
        assert!(far.contains("`diapason measure` lists the works"), "{far}");
    }

    #[test]
    fn works_of_servers_and_of_programs_are_taken() {
        for name in of_servers().chain(["engine.control", "usb.receive"]) {
            assert_eq!(problems(name), [""; 0], "{name}");
        }
    }
}
