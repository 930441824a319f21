//! Every remedy that a refusal names is tried, and fits.

use diapason::plan::Plan;
use diapason_system::{System, parse};

/// The usual small generator; the seed is the test.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

#[derive(Clone)]
struct Vcpu {
    budget: String,
    period: String,
}

#[derive(Clone)]
struct Described {
    scheduling: String,
    vcpus: Vec<Vcpu>,
    io: String,
}

impl Described {
    /// Two to seven VCPUs that want more or less than the processor.
    fn random(random: &mut Random) -> Described {
        let count = 2 + random.below(6);
        let vcpus = (0..count).map(|_| {
            let period = 2_000 + random.below(60_000);
            let budget = period * (50 + random.below(1_900 / count)) / 1_000;
            Vcpu { budget: format!("{budget}us"), period: format!("{period}us") }
        });
        let vcpus = vcpus.collect();
        let scheduling = match random.below(4) {
            0 => "dynamic = \"all\"",
            1 => "dynamic = [[\"v1\"]]",
            2 => "dynamic = [[\"v0\"], [\"v1\"]]",
            _ => "dynamic = []",
        };
        let io = match random.below(3) {
            0 => String::new(),
            share => format!(
                "[[vcpu]]\nname = \"io\"\nkind = \"io\"\nutilization = \"{}‰\"\n\
                 interval = \"500us\"\nserves = [\"v0\"]\n",
                10 * share + 1
            ),
        };
        Described { scheduling: scheduling.to_owned(), vcpus, io }
    }

    fn system(&self) -> System {
        let head = "[system]\nname = \"s\"\n[[process]]\nname = \"p\"\npriority = 1\n";
        let mut text = format!("{head}[scheduling]\n{}\n", self.scheduling);
        for (i, Vcpu { budget, period }) in self.vcpus.iter().enumerate() {
            text += &format!(
                "[[vcpu]]\nname = \"v{i}\"\nbudget = \"{budget}\"\nperiod = \"{period}\"\n"
            );
        }
        parse("s.toml", &(text + &self.io)).unwrap()
    }

    /// With `key = value` at the VCPU of that number, or in `[scheduling]`.
    fn with(&self, vcpu: usize, remedy: &str) -> Described {
        let mut changed = self.clone();
        let (key, value) = remedy.split_once(" = ").unwrap();
        let value = value.trim_matches('"').to_owned();
        match key {
            "budget" => changed.vcpus[vcpu].budget = value,
            "period" => changed.vcpus[vcpu].period = value,
            _ => changed.scheduling = remedy.to_owned(),
        }
        changed
    }
}

/// Returns the texts between backquotes that are assignments.
fn remedies(help: &str) -> impl Iterator<Item = &str> {
    help.split('`').skip(1).step_by(2).filter(|text| text.contains(" = "))
}

/// Returns how many systems were refused, and how many remedies tried.
fn campaign(seed: u64, systems: usize) -> (usize, usize) {
    let mut random = Random(seed);
    let (mut refused, mut tried) = (0, 0);
    for _ in 0..systems {
        let described = Described::random(&mut random);
        let system = described.system();
        let plan = Plan::of(&system);
        assert_eq!(plan.holds(), plan.clear().is_ok());
        assert_eq!(plan.holds(), plan.margin().is_some_and(|margin| margin >= 1_000));
        let Some(found) = plan.findings.first() else { continue };
        refused += 1;
        let item = found.items()[0];
        let head = 8;
        let vcpu = (item.line - head) / 4;
        for remedy in remedies(item.help) {
            tried += 1;
            let better = described.with(vcpu, remedy).system();
            let plan = Plan::of(&better);
            assert!(plan.holds(), "{found}\n`{remedy}` does not help");
        }
    }
    (refused, tried)
}

#[test]
fn every_remedy_helps() {
    let (refused, tried) = campaign(0x5eed, 60);
    assert!(refused > 20 && tried > 40, "{refused} refused, {tried} remedies");
}

#[test]
#[ignore = "longer: cargo test --release -p diapason --test all remedies:: -- --ignored"]
fn every_remedy_helps_in_many_systems() {
    let (refused, tried) = campaign(0x0dd_ba11, 5_000);
    assert!(refused > 2_000 && tried > 4_000, "{refused} refused, {tried} remedies");
}
