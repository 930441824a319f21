//! The benchmark's numbers, for people and for programs.

use super::placement::{self, PLACEMENTS};
use super::targets;
use super::touched::{NUMBERS, Touched};
use super::{Operation, Part, TouchLimits};
use crate::image::ImageSizes;
use crate::outcome::LongestPath;
use crate::table::{Align, Columns, TableCell, TextTable, cell};
use crate::words;
use diapason_costs::targets::{IMAGE_BYTES_MAX, PATH_INSTRUCTIONS_MAX, Placement, TARGETS, Target};
use serde_json::{Map, Value, json};

/// The operations of each placement.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Measurements {
    /// In the order they were measured.
    all: Vec<(Placement, Operation)>,
}

impl Measurements {
    /// Adds the operations of a placement.
    pub fn add(&mut self, placement: Placement, operations: Vec<Operation>) {
        self.all.extend(operations.into_iter().map(|operation| (placement, operation)));
    }

    /// Returns an operation by its name.
    #[must_use]
    pub fn find(&self, placement: Placement, name: &str) -> Option<&Operation> {
        let mut all = self.all.iter();
        all.find(|(at, it)| *at == placement && it.name == name).map(|(_, it)| it)
    }

    /// Returns the operations of a placement.
    #[must_use]
    pub fn of(&self, placement: Placement) -> Vec<&Operation> {
        self.all.iter().filter(|(at, _)| *at == placement).map(|(_, it)| it).collect()
    }

    /// Returns the limits of what these operations touch: the lower one of limit and number.
    #[must_use]
    pub fn lowered(&self, limits: &TouchLimits) -> TouchLimits {
        limits.lowered(&self.all)
    }

    /// Returns the operations of threads without a VCPU. Every operation is among them.
    fn plain(&self) -> Vec<&Operation> {
        self.of(Placement::None)
    }

    fn touched(&self, placement: Placement, name: &str) -> Option<Touched> {
        self.find(placement, name).and_then(|it| it.touched)
    }

    /// Returns a table of what the kernel touches on the way of each operation, in words.
    fn touched_table(&self, title: &str, words: fn(&Touched) -> String) -> String {
        let mut columns = vec![(title, Align::Left)];
        columns.extend(PLACEMENTS.map(|placement| (placement::name(placement), Align::Left)));
        let mut table = TextTable::new(&columns);
        for Operation { name, .. } in self.plain() {
            let cell = |placement| {
                self.touched(placement, name).map_or_else(|| "-".into(), |it| words(&it))
            };
            table.row([vec![name.clone()], PLACEMENTS.map(cell).to_vec()].concat());
        }
        table.render()
    }
}

/// Everything `bench` found out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BenchReport {
    pub measurements: Measurements,
    /// The parts of some operations, in the order in which they happen.
    pub parts: Vec<Part>,
    pub sizes: ImageSizes,
    /// The longest kernel path of the watched storm.
    pub longest_path: LongestPath,
    /// The limits of what the kernel touches on the way of each operation.
    pub limits: TouchLimits,
}

/// Returns a count per thousand operations as a count per operation, whole where it is whole.
fn per_operation(thousandths: u64) -> TableCell {
    let whole = thousandths / 1_000;
    match thousandths % 1_000 {
        0 => whole.into(),
        rest => {
            let text = format!("{whole}.{rest:03}");
            cell(text.trim_end_matches('0'), thousandths as f64 / 1_000.0)
        }
    }
}

impl BenchReport {
    /// Returns the operations over their targets, or without a measurement, in words.
    #[must_use]
    pub fn findings(&self) -> Vec<String> {
        let mut findings: Vec<String> =
            TARGETS.iter().filter_map(|target| self.missed(target)).collect();
        let (bytes, path) = (self.sizes.image(), self.longest_path.instructions);
        if bytes > IMAGE_BYTES_MAX {
            findings.push(format!(
                "the kernel has {bytes} bytes, of which {} stay after boot, at most \
                 {IMAGE_BYTES_MAX}",
                self.sizes.resident()
            ));
        }
        if path > PATH_INSTRUCTIONS_MAX {
            findings.push(format!(
                "the longest kernel path has {path} instructions, at most {PATH_INSTRUCTIONS_MAX}"
            ));
        }
        for placement in PLACEMENTS {
            findings.extend(self.limits.exceeded(placement, &self.measurements.of(placement)));
        }
        findings
    }

    fn missed(&self, target: &Target) -> Option<String> {
        let (name, most) = (targets::name(target), target.at_most);
        match targets::ours(target, &self.measurements) {
            None => Some(format!("{name} was not measured")),
            Some(ours) if ours > most => Some(format!("{name} takes {ours}, at most {most}")),
            Some(_) => None,
        }
    }

    /// Tables: the operations, the targets, the image.
    #[must_use]
    pub fn render(&self) -> String {
        let path = self.longest_path;
        let parts = part_columns().table(&self.parts).render();
        format!(
            "{}{}\n{}\n{}\n{}\nkernel image: {} bytes of code + {} of constants = {} (at most \
             {IMAGE_BYTES_MAX}), {} of data, {} zeroed\n\
             of these, {} of code + {} of constants = {} leave memory after boot; {} stay, and {} \
             more with a screen\n\
             longest kernel path: {} instructions, {} (at most {PATH_INSTRUCTIONS_MAX})\n",
            self.columns().table(self.measurements.plain()).render(),
            if parts.is_empty() { parts } else { format!("\n{parts}") },
            self.measurements.touched_table("cache lines (code + data)", Touched::lines),
            self.measurements.touched_table("dear instructions", Touched::dear),
            self.target_table(),
            self.sizes.text,
            self.sizes.rodata,
            self.sizes.image(),
            self.sizes.data,
            self.sizes.bss,
            self.sizes.boot_text,
            self.sizes.boot_rodata,
            self.sizes.boot(),
            self.sizes.resident(),
            self.sizes.screen(),
            path.instructions,
            words::path_cause(path.cause)
        )
    }

    /// Returns the columns of operations: the median of each placement, then what else was counted
    /// of threads without a VCPU.
    fn columns(&self) -> Columns<'_, Operation> {
        let of = |placement| {
            move |it: &Operation| self.measurements.find(placement, &it.name).map(|it| it.median)
        };
        Columns::<Operation>::default()
            .left("operation (instructions)", |it| it.name.clone())
            .right(("no VCPU", "median"), |it| it.median)
            .right(("same VCPU", "same_vcpu"), of(Placement::SameVcpu))
            .right(("two VCPUs", "two_vcpus"), of(Placement::TwoVcpus))
            .right(("by deadline", "by_deadline"), of(Placement::ByDeadline))
            .right(("max", "max"), |it| it.max)
            .right(("runs", "runs"), |it| it.runs)
            .right((None, "cr3"), |it| per_operation(it.cr3))
            .right((None, "msr"), |it| per_operation(it.msr))
            .right((None, "mmio"), |it| per_operation(it.mmio))
    }

    fn target_table(&self) -> String {
        let mut table = TextTable::new(&[
            ("target (median)", Align::Left),
            ("ours", Align::Right),
            ("at most", Align::Right),
            ("", Align::Left),
            ("best protected peer", Align::Left),
        ]);
        for target in TARGETS {
            let ours = targets::ours(target, &self.measurements);
            let verdict = match ours {
                Some(ours) if ours <= target.at_most => "holds",
                Some(_) => "TOO MANY",
                None => "NOT MEASURED",
            };
            table.row(vec![
                targets::name(target),
                ours.map_or_else(|| "-".into(), |ours| ours.to_string()),
                target.at_most.to_string(),
                verdict.into(),
                target.peer.into(),
            ]);
        }
        table.render()
    }

    /// Returns the format of `docs/bench.md`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let columns = self.columns();
        let operation = |it: &Operation| {
            let mut object = columns.object(it);
            object["touched"] = self.touched_json(&it.name);
            (it.name.clone(), object)
        };
        let operations: Map<String, Value> =
            self.measurements.plain().into_iter().map(operation).collect();
        let findings = self.findings();
        let mut image = json!(self.sizes);
        image["boot"] = self.sizes.boot().into();
        image["screen"] = self.sizes.screen().into();
        image["resident"] = self.sizes.resident().into();
        json!({
            "format": 1,
            "result": "bench",
            "unit": "instructions",
            "ops": operations,
            "parts": part_columns().objects(&self.parts),
            "image": image,
            "longest_kernel_path": self.longest_path,
            "holds": findings.is_empty(),
            "findings": findings,
        })
    }

    /// Returns what an operation touches in each placement.
    fn touched_json(&self, name: &str) -> Value {
        let object = |touched: Touched| -> Map<String, Value> {
            let numbers = NUMBERS.iter().zip(touched.0);
            numbers.map(|(number, count)| (number.key.into(), count.into())).collect()
        };
        let of = |placement| json!(self.measurements.touched(placement, name).map(object));
        let all = PLACEMENTS.map(|at| (String::from(placement::key(at)), of(at)));
        Value::Object(all.into_iter().collect())
    }
}

fn part_columns() -> Columns<'static, Part> {
    Columns::<Part>::default()
        .left(("of which (instructions)", "of"), |it| it.of.clone())
        .left(("", "part"), |it| it.name.clone())
        .right(("median", "median"), |it| it.median)
        .right(("max", "max"), |it| it.max)
        .right(("runs", "runs"), |it| it.runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> BenchReport {
        let operation = |name: &str| Operation {
            name: name.into(),
            median: 5,
            max: 9,
            runs: 1_000,
            cr3: 2_000,
            msr: 0,
            mmio: 1_250,
            touched: Some(Touched([12, 300, 7, 0, 0, 1, 0, 2, 1, 0, 0])),
        };
        let mut measurements = Measurements::default();
        for target in TARGETS {
            let operations = target.operations.iter().map(|name| operation(name)).collect();
            measurements.add(target.placement, operations);
        }
        let limits = measurements.lowered(&TouchLimits::default());
        BenchReport {
            limits,
            measurements,
            parts: vec![Part {
                of: "null_syscall".into(),
                name: "entry".into(),
                median: 3,
                max: 4,
                runs: 1_000,
            }],
            sizes: ImageSizes {
                text: 12_000,
                rodata: 1_000,
                data: 64,
                bss: 4_096,
                boot_text: 3_000,
                boot_rodata: 200,
                screen_text: 500,
                screen_rodata: 30,
            },
            longest_path: LongestPath { instructions: 900, cause: 256 + 32 },
        }
    }

    #[test]
    fn a_report_within_its_targets_holds() {
        let report = report();
        assert_eq!(report.findings(), Vec::<String>::new());
        let json = report.to_json();
        assert_eq!(crate::formats::schema::wrong_output(&json), Vec::<String>::new());
        assert_eq!(json["unit"], "instructions");
        assert_eq!(json["ops"]["null_syscall"]["median"], 5);
        assert_eq!(json["ops"]["null_syscall"]["cr3"], 2);
        assert_eq!(json["ops"]["null_syscall"]["mmio"], 1.25);
        let touched = &json["ops"]["null_syscall"]["touched"];
        assert_eq!(touched["no_vcpu"]["code_lines"], 12);
        assert_eq!(touched["no_vcpu"]["rdtsc"], 2);
        assert_eq!(touched["two_vcpus"], Value::Null);
        assert_eq!(json["parts"][0]["of"], "null_syscall");
        assert_eq!(json["parts"][0]["median"], 3);
        assert_eq!(json["image"]["text"], 12_000);
        assert_eq!(json["image"]["boot"], 3_200);
        assert_eq!(json["image"]["screen"], 530);
        assert_eq!(json["image"]["resident"], 9_270);
        assert_eq!(json["longest_kernel_path"]["where"], "interrupt vector 32");
        assert!(report.render().contains("sem_lock_free + sem_unlock_free"));
    }

    #[test]
    fn everything_over_its_target_is_named() {
        let mut report = report();
        report.measurements.all[0].1.median = 71;
        report.measurements.all.pop();
        report.measurements.all[1].1.touched = Some(Touched([12, 300, 8, 0, 0, 1, 0, 2, 1, 0, 0]));
        report.sizes.rodata = 12_577;
        report.longest_path.instructions = 3_001;
        let findings = report.findings();
        assert_eq!(findings.len(), 6, "{findings:?}");
        assert!(findings[0].contains("null_syscall takes 71, at most 70"));
        assert!(findings[1].contains("two VCPUs was not measured"));
        let touches = "yield_switch, no VCPU touches 8 lines of data, at most 7";
        assert!(findings.iter().any(|finding| finding == touches), "{findings:?}");
        assert!(findings[5].contains("two VCPUs has limits, and nobody looked on"));
        assert!(report.render().contains("fninit, 2 rdtsc, CR3"));
        assert!(report.render().contains("TOO MANY") && report.render().contains("NOT MEASURED"));
    }
}
