//! The columns of the kernel's records, and the tables at the end of a run.

use super::{
    AdapterPromise, Assumptions, CanMessagePromise, DeviceRow, FaultEvent, HeardPromise,
    ModePromise, NetworkRow, OpenedRow, Outcome, PipePromise, ProcessRow, SocketPromise, ThreadRow,
    VcpuRow, chains, state_word,
};
use crate::duration;
use crate::names::{self, Names};
use crate::table::{Columns, TableCell, cell, share, time};
use diapason_abi::{FaultCause, PAGE};
use diapason_system::PipeDirection;

impl ThreadRow {
    /// Returns the columns of a run of this length.
    pub(crate) fn columns(names: &Names, whole: u64) -> Columns<'_, ThreadRow> {
        let has_jobs = |row: &ThreadRow| row.jobs > 0 || row.misses > 0 || row.skipped > 0;
        let count = move |of: fn(&ThreadRow) -> u64| {
            move |row: &ThreadRow| TableCell::from(of(row)).only_if(has_jobs(row))
        };
        let response = move |row: &ThreadRow| time(row.response_max_ns).only_if(has_jobs(row));
        Columns::<ThreadRow>::default()
            .left(("process", "process"), |row| names.process(row.process))
            .left(("thread", "thread"), |row| names::thread(row.name, row.slot))
            .json("slot", |row| row.slot)
            .json("cpu_ns", |row| row.cpu_ns)
            .right(("jobs", "jobs"), count(|row| row.jobs))
            .right(("misses", "misses"), count(|row| row.misses))
            .right(("skipped", "skipped"), count(|row| row.skipped))
            .right(("longest response", "response_max_ns"), response)
            .right(("longest job", "cost_max_ns"), |row| row.cost.map(|cost| time(cost.most_ns)))
            .right("CPU", move |row| share(row.cpu_ns, whole))
    }
}

impl ProcessRow {
    pub(super) fn columns(names: &Names) -> Columns<'_, ProcessRow> {
        let heap = |row: &ProcessRow| {
            let bytes = row.heap_pages.saturating_mul(PAGE as u64);
            cell(format!("{} KiB", bytes / 1024), bytes)
        };
        Columns::<ProcessRow>::default()
            .left(("process", "process"), |row| names.process(row.process))
            .right(("starts", "starts"), |row| row.starts)
            .right(("faults", "faults"), |row| row.faults)
            .right(("restarts", "restarts"), ProcessRow::restarts)
            .right(("heap", "heap_bytes"), heap)
            .left(("at the end", "state"), |row| state_word(row.state))
    }
}

impl FaultEvent {
    pub(super) fn columns(names: &Names) -> Columns<'_, FaultEvent> {
        let cause = |event: &FaultEvent| {
            let cause = u8::try_from(event.cause).ok().and_then(FaultCause::decode);
            cause.map_or_else(|| event.cause.to_string(), |cause| format!("{cause:?}"))
        };
        Columns::<FaultEvent>::default()
            .json("time_ns", |event| event.time_ns)
            .json("process", |event| names.process(event.process))
            .json("thread_slot", |event| event.thread)
            .json("cause", cause)
            .json("address", |event| format!("{:#x}", event.address))
            .json("instruction", |event| format!("{:#x}", event.instruction))
    }
}

impl Outcome {
    /// Threads, processes and totals, in columns.
    #[must_use]
    pub fn render(&self, names: &Names) -> String {
        let time = self.end.map_or(0, |end| end.time_ns);
        let parts = [
            ThreadRow::columns(names, time).table(&self.threads).render(),
            VcpuRow::columns(names, time).table(&self.vcpus).render(),
            DeviceRow::columns(names).table(&self.devices).render(),
            NetworkRow::columns(names).table(&self.network).render(),
            self.kernel_table(),
            ProcessRow::columns(names).table(&self.processes).render(),
            self.totals(),
        ];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("\n")
    }

    /// Returns the tables of what is measured beside its promise: pipes, chains, opened pipes,
    /// sockets, adapters, CAN messages that are sent and that are read, modes.
    #[must_use]
    pub fn measured(&self, promised: &Assumptions, names: &Names) -> Vec<String> {
        let pipes = |way| PipePromise::table(way, &promised.pipes, self, names);
        let opened = |way| OpenedRow::table(way, self, names);
        let (from, to) = (PipeDirection::FromDevice, PipeDirection::ToDevice);
        let chains = chains::table(&promised.chains, self);
        let sockets = SocketPromise::columns(self, names).table(&promised.sockets).render();
        let adapters = AdapterPromise::columns(self, names).table(&promised.adapters).render();
        let messages = CanMessagePromise::columns(self, names).table(&promised.messages).render();
        let heard = HeardPromise::columns(self, names).table(&promised.heard).render();
        let modes = ModePromise::columns(self, names).table(&promised.usb.modes).render();
        let (read, written) = (opened(from), opened(to));
        let ends = vec![pipes(from), pipes(to), chains, read, written, sockets, adapters];
        ends.into_iter().chain([messages, heard, modes]).collect()
    }

    fn totals(&self) -> String {
        let Some(end) = self.end else { return String::new() };
        let mut text = format!(
            "{} of machine time, idle {}; {} kernel entries, {} CR3 writes, {} MSR writes, \
             {} device accesses\n",
            duration::human(end.time_ns),
            share(end.idle_ns, end.time_ns),
            end.entries,
            end.cr3,
            end.msr,
            end.mmio
        );
        if let Some(path) = self.longest_path {
            text += &format!(
                "longest kernel path: {} instructions, {}\n",
                path.instructions,
                crate::words::path_cause(path.cause)
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;

    #[test]
    fn the_table_is_as_agreed() {
        let expected = "\
process  thread    jobs  misses  skipped  longest response  longest job      CPU
-------  -------  -----  ------  -------  ----------------  -----------  -------
engine   main         -       -        -                 -            -  10.00 %
engine   ctrl     10000       1        2          2.000 ms   900.000 us   1.00 %
diag     thread0      -       -        -                 -            -   0.00 %

VCPU               kind      budget     period  reserved     CPU  background  waits  longest \
lateness
-----------------  ----  ----------  ---------  --------  ------  ----------  -----  --------\
--------
control            main    1.000 ms  10.000 ms   10.00 %  1.00 %      0.00 %      2          \
1.000 ms
bottom             I/O   250.000 us  10.000 ms    2.50 %  0.00 %      0.00 %      0          \
2.000 us
private 0 of diag  main  500.000 us  20.000 ms    2.50 %  0.00 %      0.00 %      5              \
0 ns

device  interrupts  shortest distance
------  ----------  -----------------
sensor          20           1.001 ms

process  starts  faults  restarts    heap  at the end
-------  ------  ------  --------  ------  ----------
engine        1       0         0  64 KiB  running
diag          2       1         1   0 KiB  faulted

10.000 s of machine time, idle 88.99 %; 1000000 kernel entries, 500 CR3 writes, 1000 MSR writes, \
2000 device accesses
";
        assert_eq!(sample::outcome().render(&sample::names()), expected);
    }
}
