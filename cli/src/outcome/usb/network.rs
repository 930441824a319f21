//! The steps of a host on its way into a network.

use crate::names::Names;
use crate::table::{Columns, time};
use diapason_abi::Key;
use diapason_contract::settings::Expected;
use diapason_pipe::measured::{NetworkReport, NetworkStep};
use diapason_system::Neighbours;

/// A step that a server took, and when.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NetworkRow {
    /// The place of the server in the description.
    pub process: u64,
    pub at_ns: u64,
    pub step: NetworkStep,
    /// The root port that it is about.
    pub port: Option<u8>,
    /// The host that it is about: who is waited for, or the stranger.
    pub peer: Option<String>,
}

const fn word(step: NetworkStep) -> &'static str {
    match step {
        NetworkStep::Enumerate => "enumerate",
        NetworkStep::Enumerated => "enumerated",
        NetworkStep::Enable => "enable",
        NetworkStep::Late => "late",
        NetworkStep::Stranger => "stranger",
    }
}

impl NetworkRow {
    /// Returns the row of a report; the hosts around give the names.
    pub(crate) fn new(process: u64, at_ns: u64, report: NetworkReport) -> NetworkRow {
        let NetworkReport { step, port, peer } = report;
        let peer = (peer != 0).then(|| format!("{peer:016x}"));
        NetworkRow { process, at_ns, step, port: (port != 0).then_some(port), peer }
    }

    /// Replaces the key of a stranger by its name, and names who is waited for.
    fn call(&mut self, around: &Neighbours) {
        let serial = |name: &str| Expected::key(&format!("{:016x}", Key::new(name).0));
        let named = |name: &&String| Some(format!("{:016x}", serial(name))) == self.peer;
        if let Some(name) = around.hosts.iter().find(named) {
            self.peer = Some(name.clone());
        } else if let (NetworkStep::Late, Some(port)) = (self.step, self.port) {
            self.peer = around.at_port(port).map(str::to_owned);
        }
    }

    /// Gives every row the names of the hosts around.
    pub(crate) fn call_all(rows: &mut [NetworkRow], around: &Neighbours) {
        rows.iter_mut().for_each(|row| row.call(around));
    }

    /// Returns the columns of the steps.
    pub(crate) fn columns(names: &Names) -> Columns<'_, NetworkRow> {
        Columns::<NetworkRow>::default()
            .right(("time", "time_ns"), |row| time(row.at_ns))
            .left(("process", "process"), |row| names.process(row.process))
            .left(("step", "step"), |row| word(row.step))
            .right(("root port", "port"), |row| row.port.map(u64::from))
            .left(("host", "host"), |row| row.peer.clone())
    }
}
