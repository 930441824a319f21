//! The answers to GDB while the simulation stands.

use super::halts::{Halt, WatchedBytes};
use super::packet::{GdbRequest, PACKET_MAX, hex};
use super::{Debugger, Goal};
use crate::console::Line;
use crate::duration;
use crate::duration::human;
use crate::simulate::explain::stands;
use crate::table::{Align, TextTable};
use diapason_abi::Nanos;
use diapason_core::{Standing, ThreadId};
use diapason_sim::{Glance, ThreadRegisters};

/// The processor's description: GDB knows its registers.
const FEATURES: &str = "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\">\
                        <target><architecture>i386:x86-64</architecture></target>";
/// The most bytes that one request reads, or that one watch has.
const READ_MAX: usize = PACKET_MAX / 4;
const WATCH_MAX: usize = 64;
/// The most watches at once.
const WATCHES_MAX: usize = 64;
/// Digits of a register that means nothing here.
const UNKNOWN: [&str; 2] = ["xxxxxxxxxxxxxxxx", "xxxxxxxx"];

const HELP: &str = "commands of the simulator, each after `monitor`:
  time        the time of the system, and the step of the run
  threads     what each thread does or waits for
  vcpus       the budget that each VCPU has now
  stop TIME   stop at this time, such as `stop 1.5s`; then `continue` or `reverse-continue`
  stop never  no more
`continue` stops at an alarm, a missed deadline, a fault, a changed variable (`watch`), and the end;
`stepi` at the next call of a thread. Both go back with `reverse-` in front. Breakpoints in code
and changes of memory are not possible.
";

/// The way to answer what GDB wants.
enum Reply {
    Text(String),
    /// The run goes on, up to this goal.
    Go(Goal),
    /// The answer was sent already.
    Silence,
}

/// Returns GDB's number of a thread.
fn number(thread: ThreadId) -> u64 {
    u64::from(thread.index()) + 1
}

/// Returns the threads that exist, by their numbers for GDB.
fn threads<'g>(glance: &'g Glance<'_, '_>) -> impl Iterator<Item = ThreadId> + use<'g> {
    let all = glance.kernel.threads.ids();
    let exists = |id: &ThreadId| glance.kernel.standing_of(*id) != Standing::Absent;
    all.filter(move |id| exists(id) && glance.registers(*id).is_some())
}

fn find(glance: &Glance<'_, '_>, wanted: u64) -> Option<ThreadId> {
    threads(glance).find(|thread| number(*thread) == wanted)
}

/// Returns the registers as GDB has them in a packet.
fn packed(registers: Option<ThreadRegisters>) -> String {
    let Some(ThreadRegisters { rip, rsp, rbx, rbp, r12_to_r15 }) = registers else {
        return UNKNOWN[0].repeat(17) + &UNKNOWN[1].repeat(7);
    };
    let known = |value: u64| hex(&value.to_le_bytes());
    let unknown = |count: usize| UNKNOWN[0].repeat(count);
    let preserved: String = r12_to_r15.into_iter().map(known).collect();
    // rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, r8 to r15, rip; then flags and selectors.
    unknown(1)
        + &known(rbx)
        + &unknown(4)
        + &known(rbp)
        + &known(rsp)
        + &unknown(4)
        + &preserved
        + &known(rip)
        + &UNKNOWN[1].repeat(7)
}

impl<F: FnMut(&Line)> Debugger<'_, F> {
    /// Stands here until GDB lets the run go on.
    pub(super) fn stand(&mut self, glance: &Glance<'_, '_>, halt: &Halt) {
        self.cast.refresh(glance.kernel);
        let here = [glance.ran, Some(glance.running)].into_iter().flatten();
        let mut here = here.filter(|thread| threads(glance).any(|known| known == *thread));
        self.thread = here.next().or_else(|| threads(glance).next()).unwrap_or(ThreadId::NONE);
        if self.greeted {
            if let Halt::Said(text) = halt {
                self.link.print(text);
            }
            let stop = self.stopped(halt);
            self.link.send(&stop);
        }
        self.greeted = true;
        loop {
            let Some(request) = self.link.request() else {
                self.goal = Goal::Over;
                return;
            };
            match self.answer(glance, halt, &request) {
                Reply::Text(text) => self.link.send(&text),
                // Nothing comes after the end.
                Reply::Go(Goal::Forward(_)) if glance.ended => {
                    let end = self.stopped(&Halt::End);
                    self.link.send(&end);
                }
                Reply::Go(goal) => {
                    self.again = matches!(goal, Goal::Back { .. });
                    self.goal = goal;
                    return;
                }
                Reply::Silence => {}
            }
        }
    }

    /// Returns the packet that says why the run stands.
    fn stopped(&self, halt: &Halt) -> String {
        let signal = if *halt == Halt::Interrupt { 2 } else { 5 };
        let why = match halt {
            Halt::Begin => String::from("replaylog:begin;"),
            Halt::End => String::from("replaylog:end;"),
            Halt::Watch(address) => format!("watch:{address:x};"),
            Halt::Turn | Halt::Interrupt | Halt::Said(_) => String::new(),
        };
        let thread = if self.thread.is_some() { number(self.thread) } else { 1 };
        format!("T{signal:02x}thread:{thread:x};{why}")
    }

    fn answer(&mut self, glance: &Glance<'_, '_>, halt: &Halt, request: &GdbRequest) -> Reply {
        let ok = || String::from("OK");
        let wrong = || String::from("E01");
        let back = |turns| Goal::Back { before: self.step, turns, found: None };
        Reply::Text(match *request {
            GdbRequest::Supported => format!(
                "PacketSize={PACKET_MAX:x};QStartNoAckMode+;qXfer:features:read+;ReverseStep+;\
                 ReverseContinue+"
            ),
            GdbRequest::NoAcknowledgements => {
                self.link.stop_acknowledging();
                return Reply::Silence;
            }
            GdbRequest::Attached => String::from("0"),
            GdbRequest::Features(from, most) => {
                let rest = FEATURES.get(from..).unwrap_or_default();
                let part = rest.get(..most).unwrap_or(rest);
                format!("{}{part}", if part.len() < rest.len() { 'm' } else { 'l' })
            }
            GdbRequest::Why => self.stopped(halt),
            GdbRequest::Registers => {
                let thread = Some(self.thread).filter(|thread| thread.is_some());
                packed(thread.and_then(|thread| glance.registers(thread)))
            }
            GdbRequest::Memory(address, length) => {
                read(glance, address, length).unwrap_or_else(wrong)
            }
            GdbRequest::Watch(address, length) => {
                if length > WATCH_MAX || self.watches.len() == WATCHES_MAX {
                    return Reply::Text(wrong());
                }
                let mut watch = WatchedBytes::new(address, length);
                let _ = watch.look(glance);
                self.watches.push(watch);
                ok()
            }
            GdbRequest::Unwatch(address, length) => {
                self.watches.retain(|watch| (watch.address, watch.length) != (address, length));
                ok()
            }
            GdbRequest::Monitor(ref text) => hex(self.monitor(glance, text).as_bytes()),
            GdbRequest::Continue => return Reply::Go(Goal::Forward(false)),
            GdbRequest::Step => return Reply::Go(Goal::Forward(true)),
            GdbRequest::ContinueBack => return Reply::Go(back(false)),
            GdbRequest::StepBack => return Reply::Go(back(true)),
            GdbRequest::Detach => {
                self.link.send("OK");
                return Reply::Go(Goal::Free);
            }
            GdbRequest::Kill => return Reply::Go(Goal::Over),
            GdbRequest::Change => wrong(),
            _ => return self.about_threads(glance, request),
        })
    }

    /// Returns the answer to a request about threads; to an unknown one, nothing.
    fn about_threads(&mut self, glance: &Glance<'_, '_>, request: &GdbRequest) -> Reply {
        let ok = || String::from("OK");
        let wrong = || String::from("E01");
        Reply::Text(match *request {
            GdbRequest::Select(wanted) => match find(glance, wanted) {
                Some(thread) => {
                    self.thread = thread;
                    ok()
                }
                // 0 is any thread.
                None if wanted == 0 => ok(),
                None => wrong(),
            },
            GdbRequest::Alive(wanted) => find(glance, wanted).map_or_else(wrong, |_| ok()),
            GdbRequest::Current => format!("QC{:x}", number(self.thread)),
            GdbRequest::Threads => {
                let all: Vec<String> =
                    threads(glance).map(|thread| format!("{:x}", number(thread))).collect();
                // GDB needs a thread to look at.
                format!("m{}", if all.is_empty() { String::from("1") } else { all.join(",") })
            }
            GdbRequest::MoreThreads => String::from("l"),
            GdbRequest::Describe(wanted) => find(glance, wanted)
                .map_or_else(wrong, |thread| hex(self.word(glance, thread).as_bytes())),
            _ => String::new(),
        })
    }

    /// Returns the name of a thread, and what it does or waits for.
    fn word(&self, glance: &Glance<'_, '_>, thread: ThreadId) -> String {
        let names = &self.session.names;
        let standing = glance.kernel.standing_of(thread);
        let what = if thread == glance.running {
            String::from("its turn")
        } else {
            stands(standing, &self.cast, names)
        };
        format!("{}: {what}", self.cast.name(thread, names))
    }

    /// Returns the answer to a command for the simulator.
    fn monitor(&mut self, glance: &Glance<'_, '_>, text: &str) -> String {
        match text.split_whitespace().collect::<Vec<_>>()[..] {
            ["time"] => format!("{}, step {}\n", seconds(glance.now), self.step),
            ["threads"] => {
                let word =
                    |thread| format!("{:>3}  {}\n", number(thread), self.word(glance, thread));
                threads(glance).map(word).collect()
            }
            ["vcpus"] => self.vcpus(glance),
            ["stop", "never"] => {
                self.stop = None;
                String::from("no time stops the run\n")
            }
            ["stop", time] => match duration::parse(time) {
                Ok(time) => {
                    self.stop = Some(Nanos(time));
                    format!("stops at {}\n", seconds(Nanos(time)))
                }
                Err(why) => format!("{why}\n"),
            },
            _ => String::from(HELP),
        }
    }

    fn vcpus(&self, glance: &Glance<'_, '_>) -> String {
        let mut rows = TextTable::new(&[
            ("VCPU", Align::Left),
            ("budget now", Align::Right),
            ("period", Align::Right),
        ]);
        for id in glance.kernel.vcpus.ids() {
            let Some([_, maker, ..]) = glance.kernel.terms_of(id) else { continue };
            let maker = (maker != u64::MAX).then_some(maker);
            let budget = glance.kernel.budget_of(id, glance.now);
            rows.row(vec![
                self.session.names.vcpu(id.index().into(), maker),
                budget.map_or_else(|| String::from("-"), |budget| human(budget.0)),
                budget.map_or_else(
                    || String::from("-"),
                    |_| human(glance.kernel.vcpus[id].period().0),
                ),
            ]);
        }
        rows.render()
    }
}

fn seconds(time: Nanos) -> String {
    format!("{} s", duration::seconds(time.0))
}

/// Returns memory as digits; as much of it as can be read, if that is any.
fn read(glance: &Glance<'_, '_>, address: u64, length: usize) -> Option<String> {
    let mut bytes = vec![0; length.min(READ_MAX)];
    if glance.read(address, &mut bytes) {
        return Some(hex(&bytes));
    }
    let mut one = [0];
    let places = (0..bytes.len() as u64).map_while(|offset| {
        let is_there = glance.read(address.checked_add(offset)?, &mut one);
        is_there.then_some(one[0])
    });
    let some: Vec<u8> = places.collect();
    (!some.is_empty()).then(|| hex(&some))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_stand_where_gdb_looks_for_them() {
        let r12_to_r15 = [12, 13, 14, 15];
        let registers = ThreadRegisters { rip: 0x1_0000_0010, rsp: 7, rbx: 1, rbp: 6, r12_to_r15 };
        let text = packed(Some(registers));
        let at = |place: usize| &text[place * 16..(place + 1) * 16];
        assert_eq!(at(1), "0100000000000000");
        assert_eq!((at(6), at(7)), ("0600000000000000", "0700000000000000"));
        assert_eq!((at(12), at(15)), ("0c00000000000000", "0f00000000000000"));
        assert_eq!(at(16), "1000000001000000");
        for unknown in [0, 2, 5, 8, 11] {
            assert_eq!(at(unknown), UNKNOWN[0]);
        }
        assert_eq!(text.len(), 17 * 16 + 7 * 8);
        assert_eq!(packed(None).len(), text.len());
    }
}
