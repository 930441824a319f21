//! A plan as tables for people.

use super::view::View;
use super::{bus, can};
use crate::duration::human;
use crate::real;
use crate::table::{Align, TextTable};
use diapason_abi::Nanos;
use diapason_analysis::server::{AdmissionRefusal, Response, Shortfall, Unfit};
use diapason_plan::core::queue_name;
use diapason_plan::{Sum, allocate, share};
use diapason_system::System;

impl View<'_> {
    /// Tables: the VCPUs, the bounds, and what was assumed.
    #[must_use]
    pub fn render(&self, system: &System) -> String {
        let mut parts = self.of_processor(system);
        parts.extend(bus::tables(&self.buses, system));
        parts.extend(self.mode_tables(system));
        parts.extend(can::tables(&self.cans, system));
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("\n")
    }

    fn of_processor(&self, system: &System) -> Vec<String> {
        if system.processes.is_empty() {
            return Vec::new();
        }
        if system.vcpus.is_empty() {
            return vec![
                "no VCPUs: threads run by priority, and no thread is promised anything\n"
                    .to_owned(),
            ];
        }
        vec![
            self.vcpu_table(system),
            self.pipe_table(system),
            self.socket_table(system),
            self.tpipe_table(system),
            self.chain_table(system),
            self.state_table(system),
            self.bounds_table(),
            self.remarks(system),
        ]
    }

    fn vcpu_table(&self, system: &System) -> String {
        let mut table = TextTable::new(&[
            ("VCPU", Align::Left),
            ("kind", Align::Left),
            ("budget", Align::Right),
            ("period", Align::Right),
            ("share", Align::Right),
            ("queue", Align::Left),
            ("response", Align::Right),
            ("slack", Align::Right),
        ]);
        for (number, vcpu) in (0u16..).zip(&system.vcpus) {
            let place = |list: &[u16]| list.iter().position(|other| *other == number);
            let (kind, rest) = match (place(&self.core.mains), place(&self.core.ios)) {
                (Some(main), _) => ("main", self.main_cells(main)),
                (_, Some(io)) => ("I/O", self.io_cells(system, io)),
                _ => ("", Vec::new()),
            };
            table.row([vec![vcpu.name.clone(), kind.to_owned()], rest].concat());
        }
        table.render()
    }

    fn main_cells(&self, index: usize) -> Vec<String> {
        let main = &self.core.system.mains[index];
        let (response, slack) = match (&self.exact, self.response(index)) {
            (_, Some(response)) => cells(response),
            (Err(Unfit::Refused(refusal)), _) if refusal.vcpu == index => late(refusal),
            _ => ("-".to_owned(), "-".to_owned()),
        };
        let ppm = u128::from(main.budget.0) * 1_000_000 / u128::from(main.period.0.max(1));
        vec![
            human(main.budget.0),
            human(main.period.0),
            share(u64::try_from(ppm).unwrap_or(u64::MAX)),
            queue_name(main.queue),
            response,
            slack,
        ]
    }

    /// Cells of an I/O VCPU: its shortest grant, its cycle, and the VCPU whose response it shares.
    fn io_cells(&self, system: &System, index: usize) -> Vec<String> {
        let io = &self.core.system.ios[index];
        let (grant, cycle) = self.grant(index);
        let names = io.serves.iter().map(|main| self.core.mains[*main]);
        let names: Vec<&str> = names.filter_map(|number| system.vcpu_name(number)).collect();
        let most_urgent = io.serves.iter().map(|main| self.core.system.mains[*main].queue).min();
        vec![
            human(grant.0),
            human(cycle.0),
            share(u64::from(io.share.ppm())),
            most_urgent.map_or("-".to_owned(), queue_name),
            format!("as {}", names.join(", ")),
        ]
    }

    /// Returns a line for each VCPU whose jobs are described.
    fn jobs_remark(&self, system: &System) -> String {
        let mut text = String::new();
        for (index, number) in self.core.mains.iter().enumerate() {
            let name = system.vcpu_name(*number).unwrap_or_default();
            let Some(job) = self.job(index) else { continue };
            let (work, done, every) = (human(job.work.0), human(job.done.0), human(job.every.0));
            text += &format!(
                "job: one of {work} on `{name}` is done within {done}, if jobs begin at least \
                 {every} apart"
            );
            if job.help > Nanos::ZERO {
                text += &format!("; {} of it for others that hold its mutexes", human(job.help.0));
            }
            text += if job.waits { "; it may wait for budget\n" } else { "\n" };
        }
        text
    }

    /// Returns a line for each shared mutex of which not all is said.
    fn mutexes_remark(&self) -> String {
        let line = |name: &String| {
            format!(
                "mutex: `{name}` is shared by several VCPUs, and no bound here counts how long it \
                 is held (`[[section]]`)\n"
            )
        };
        self.unsaid.iter().map(line).collect()
    }

    fn bounds_table(&self) -> String {
        let mut table = TextTable::new(&[
            ("test", Align::Left),
            ("wanted", Align::Right),
            ("bound", Align::Right),
            ("", Align::Left),
        ]);
        let exact = match &self.exact {
            Ok(_) => "holds",
            Err(Unfit::Refused(_)) => "DOES NOT HOLD",
            Err(Unfit::Nonsense(_)) => "makes no sense",
        };
        let utilization = share(self.utilization_ppm());
        table.row(vec!["exact".into(), utilization, "100.00 %".into(), exact.into()]);
        let sums = [
            ("[USB 2023, eq. 1], no kernel costs", self.equation_one),
            ("wide closed form", self.wide),
        ];
        for (name, sum) in sums {
            let (wanted, bound) = sum.form().ppm();
            let word = match sum {
                Sum::Silent(_) => "not applicable: queues are not by period",
                Sum::Says(_) if sum.holds() => "holds",
                Sum::Says(_) => "says no",
            };
            table.row(vec![name.into(), share(wanted), share(bound), word.into()]);
        }
        table.render()
    }

    fn remarks(&self, system: &System) -> String {
        let core = &self.core.system;
        let mut text = format!(
            "kernel at {}: longest path {}, top half {}, switch {}\n",
            rate(self.costs.clock_hz()),
            human(core.kernel_section.0),
            human(self.costs.top_half().0),
            human(core.switch.0),
        );
        if let Some(machine) = &system.machine {
            let beside = match system.cores {
                1 => "",
                _ => ", and must have in them what the other cores do to memory",
            };
            text += &format!(
                "computer: {}\nits times replace the kernel's; those of jobs and works stay as \
                 described{beside}\n",
                machine.sentence()
            );
        }
        text += &match self.margin() {
            Some(margin) if margin >= 1_000 => format!(
                "margin: every budget could grow by {}.{} %\n",
                (margin - 1_000) / 10,
                margin % 10
            ),
            Some(margin) => format!(
                "margin: none; it would hold with {}.{} % of every budget\n",
                margin / 10,
                margin % 10
            ),
            None => "margin: none, whatever the budgets\n".to_owned(),
        };
        text += &self.queues_remark(system);
        text + &self.jobs_remark(system) + &self.mutexes_remark() + &real::remark(system)
    }

    fn queues_remark(&self, system: &System) -> String {
        let Some(queues) = self.cheapest() else {
            return "queues: none that were tried hold\n".to_owned();
        };
        let now: Vec<_> = self.core.system.mains.iter().map(|main| main.queue).collect();
        if queues == now {
            return "queues: these are the cheapest that hold\n".to_owned();
        }
        let numbers = self.core.mains.iter();
        let names: Vec<&str> = numbers.filter_map(|number| system.vcpu_name(*number)).collect();
        format!("queues: the cheapest that hold are `{}`\n", allocate::lines(queues, &names))
    }
}

/// Returns a clock rate, without digits that say nothing.
pub(crate) fn rate(hertz: u64) -> String {
    let text = format!("{}.{:06}", hertz / 1_000_000, hertz % 1_000_000);
    format!("{} MHz", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Returns response and slack of the VCPU that fails first.
fn late(refusal: &AdmissionRefusal) -> (String, String) {
    let response = match refusal.failure {
        Shortfall::Late(Some(response)) => human(response.0),
        _ => "-".to_owned(),
    };
    (response, "NONE".to_owned())
}

/// Response and slack; of a VCPU in a queue by deadline, only that it is in time is known.
fn cells(response: &Response) -> (String, String) {
    let text = human(response.response.0);
    if response.exact {
        (text, human((response.limit - response.response).0))
    } else {
        (format!("≤ {text}"), "-".to_owned())
    }
}
