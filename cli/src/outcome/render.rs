//! The table at the end of a run.

use super::{Outcome, state_word};
use crate::duration;
use crate::names::{self, Names};
use crate::table::{Align, Table};
use diapason_abi::PAGE;

/// `part` of `whole` in per cent with two decimals, rounded down.
#[must_use]
pub fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".into();
    }
    let hundredths = u128::from(part) * 10_000 / u128::from(whole);
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}

impl Outcome {
    /// Threads, processes and totals, in columns.
    #[must_use]
    pub fn render(&self, names: &Names) -> String {
        let parts = [
            self.thread_table(names),
            self.vcpu_table(names),
            self.device_table(names),
            self.kernel_table(),
            self.process_table(names),
            self.totals(),
        ];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("\n")
    }

    fn thread_table(&self, names: &Names) -> String {
        let mut table = Table::new(&[
            ("process", Align::Left),
            ("thread", Align::Left),
            ("jobs", Align::Right),
            ("misses", Align::Right),
            ("skipped", Align::Right),
            ("longest response", Align::Right),
            ("longest job", Align::Right),
            ("CPU", Align::Right),
        ]);
        let time = self.end.map_or(0, |end| end.time_ns);
        for thread in &self.threads {
            let periodic = thread.jobs > 0 || thread.misses > 0 || thread.skipped > 0;
            let of_jobs = |text: String| if periodic { text } else { "-".into() };
            table.row(vec![
                names.process(thread.process),
                names::thread(thread.name, thread.slot),
                of_jobs(thread.jobs.to_string()),
                of_jobs(thread.misses.to_string()),
                of_jobs(thread.skipped.to_string()),
                of_jobs(duration::human(thread.response_max_ns)),
                thread.cost.map_or("-".into(), |cost| duration::human(cost.most_ns)),
                share(thread.cpu_ns, time),
            ]);
        }
        table.render()
    }

    fn process_table(&self, names: &Names) -> String {
        let mut table = Table::new(&[
            ("process", Align::Left),
            ("starts", Align::Right),
            ("faults", Align::Right),
            ("restarts", Align::Right),
            ("heap", Align::Right),
            ("at the end", Align::Left),
        ]);
        for process in &self.processes {
            table.row(vec![
                names.process(process.process),
                process.starts.to_string(),
                process.faults.to_string(),
                process.restarts().to_string(),
                format!("{} KiB", u128::from(process.heap_pages) * PAGE as u128 / 1024),
                state_word(process.state).into(),
            ]);
        }
        table.render()
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
    use super::*;

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

    #[test]
    fn shares_are_exact_at_both_ends() {
        assert_eq!(share(u64::MAX, u64::MAX), "100.00 %");
        assert_eq!(share(1, 3), "33.33 %");
        assert_eq!(share(0, 0), "-");
    }
}
