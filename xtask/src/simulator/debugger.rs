//! GDB on the simulator: it stops where an alarm begins to ring, shows the threads there, and goes
//! back in time.

use crate::tally::command;
use diapason::Workspace;
use diapason::metal::Built;
use diapason::tools::{GDB, Missing};
use diapason_abi::layout;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

/// The system whose alarms ring. The fifth process counts interrupts in its second segment.
const SYSTEM: &str = "tests/systems/alarms.toml";
const COUNTER: u64 = layout::base(4) + layout::SEGMENTS + layout::SLOT + 16 * 8;
/// Wall seconds in which GDB must have come to its end.
const PATIENCE: &str = "300";
/// The simulator says so when GDB may connect; the file with GDB's commands follows.
const READY: &str = "waiting for GDB: gdb -q -x ";

/// The parts that GDB itself must say, in their order.
const SAID: [&str; 6] = [
    "spin_irq::serve (every_us=500",
    // Back across the change of the counter, and to the beginning.
    "Old value = 1",
    "New value = 0",
    "No more reverse-execution history",
    "Cannot access memory",
    "detached",
];
/// The parts that the simulator must say through GDB, in their order.
const TOLD: [&str; 6] = [
    "0.000000000 s, step 1",
    "alarm interrupt-distance: device hpet",
    "ticker.thread0: its turn",
    "alarm job-cost: a job of thread0 of often",
    // Back to the first alarm, and to the beginning.
    "alarm interrupt-distance: device hpet",
    "0.000000000 s, step 1",
];

/// Ends the simulator, whatever happened.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn script() -> String {
    format!(
        "set pagination off\nset width 0\nset language c\nmonitor time\ncontinue\nbacktrace\n\
         monitor threads\ncontinue\nreverse-continue\n\
         watch *(unsigned long *){COUNTER:#x}\nreverse-continue\nreverse-continue\n\
         reverse-continue\nmonitor time\npython\n\
         try:\n  gdb.execute('set var *(unsigned long *){COUNTER:#x} = 7')\n\
         except gdb.error as refused:\n  print(refused)\nend\n\
         delete\nmonitor stop 1ms\ndetach\n"
    )
}

/// Checks that GDB sees what [`SAID`] and [`TOLD`] have, and that the run it lets go is judged as
/// any other.
pub fn check(workspace: &Workspace, _: &Built) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    GDB.require(Missing::Install).map_err(|failure| failure.to_string())?;
    let folder = workspace.target().join("tmp");
    std::fs::create_dir_all(&folder).map_err(text)?;
    let commands = folder.join("debugger.gdb");
    std::fs::write(&commands, script()).map_err(text)?;
    let mut simulator =
        command(workspace, &["run", "--quiet", "--bin", "diapason", "--", "sim", SYSTEM]);
    simulator.args(["--unproved", "--for", "100ms", "--gdb", "127.0.0.1:0"]);
    simulator.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut simulator = Ended(simulator.spawn().map_err(text)?);
    let errors = simulator.0.stderr.take().ok_or("no standard error")?;
    let mut lines = BufReader::new(errors).lines().map_while(Result::ok);
    let connect = lines.find_map(|line| line.strip_prefix(READY).map(str::to_owned));
    let connect = connect.ok_or("the simulator does not wait for GDB")?;
    let output = Command::new("timeout")
        .args([PATIENCE, GDB.program, "-q", "-nx", "-batch", "-x", &connect, "-x"])
        .arg(&commands)
        .stdin(Stdio::null())
        .output()
        .map_err(text)?;
    in_order(&String::from_utf8_lossy(&output.stdout), &SAID)?;
    in_order(&String::from_utf8_lossy(&output.stderr), &TOLD)?;
    let mut report = String::new();
    let out = simulator.0.stdout.as_mut().ok_or("no standard output")?;
    out.read_to_string(&mut report).map_err(text)?;
    match report.contains("broken: alarm interrupt-distance") {
        true => Ok(()),
        false => Err(format!("the run that went on has no such report: {report}")),
    }
}

/// Checks that GDB said all parts, one after the other.
fn in_order(said: &str, parts: &[&str]) -> Result<(), String> {
    let mut rest = said;
    for part in parts {
        let Some((_, after)) = rest.split_once(*part) else {
            return Err(format!("GDB did not say `{part}` in its place: {said}"));
        };
        rest = after;
    }
    Ok(())
}
