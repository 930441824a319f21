//! The schedule of every USB bus that a description says something of: who transmits when, how long
//! bulk transfers take at worst, and what the readings of t_A in [USB 2023] say instead.

use diapason_bus::reserve::{Start, least_reservation};
use diapason_bus::uniform::{self, UniformSchedule};
use diapason_bus::{Async, BusPlan, EndpointId, EndpointRefusal, NoSchedule, Picos};
use diapason_system::{Diagnostics, Place, System, UsbBus};

/// The plan of a bus.
#[derive(Clone, Debug)]
pub struct Bused {
    /// The bus's schedule, or why there is none.
    pub plan: Result<BusPlan, NoSchedule>,
    /// The result by the reading of [USB 2023, tables 2 and 5].
    pub mean: Option<Mean>,
    /// Algorithms 1 to 3 of [USB 2023] with the least t_A of its equations 6 and 8 and the limit of
    /// this bus.
    pub literal: Option<UniformSchedule>,
    /// That t_A, whether the algorithms then find a schedule or not.
    pub equations: Option<Picos>,
    /// The least that has to be left in every slot for every guarantee to hold.
    pub sound: Option<Picos>,
}

/// The reading of which the tables of [USB 2023] are made: a periodic endpoint takes q/T of every
/// slot.
#[derive(Clone, Debug)]
pub struct Mean {
    /// True for each periodic endpoint that it keeps.
    pub kept: Vec<bool>,
    /// The average rest of a slot: the tables' t_A.
    pub left: Picos,
}

impl Bused {
    fn of(instance: &UsbBus) -> Bused {
        let UsbBus { bus, periodic, asyncs, .. } = instance;
        let equations = uniform::least_enough(bus, asyncs, periodic);
        let mean = equations.and_then(|t_a| uniform::amortised(bus, periodic, t_a));
        Bused {
            plan: diapason_bus::plan(bus, periodic, asyncs),
            mean: mean.map(|(kept, left)| Mean { kept, left }),
            literal: equations.and_then(|t_a| uniform::schedule(bus, periodic, t_a)),
            equations,
            sound: least_reservation(bus, asyncs, Start::Any),
        }
    }

    /// Returns the most that periodic endpoints take of a slot.
    #[must_use]
    pub fn fullest(&self) -> Option<Picos> {
        let plan = self.plan.as_ref().ok()?;
        Some(plan.load.iter().copied().max().unwrap_or_default())
    }

    /// Returns c of [USB 2023, eq. 6] of an endpoint, in slots: by the mean, and by Algorithm
    /// 2.
    #[must_use]
    pub fn slots(&self, instance: &UsbBus, endpoint: &Async) -> [Option<u64>; 2] {
        let mean = self.mean.as_ref().map(|mean| mean.left);
        endpoint.guarantee.map_or([None; 2], |_| {
            [mean, self.equations]
                .map(|t_a| uniform::latency_slots(&instance.bus, &instance.asyncs, endpoint, t_a?))
        })
    }
}

/// Returns the schedules of all buses of `system`, in their order.
#[must_use]
pub fn buses(system: &System) -> Vec<Bused> {
    system.buses.iter().map(Bused::of).collect()
}

/// Returns the problems of buses that have no schedule.
pub(crate) fn refusals<'a>(
    buses: &'a [Bused],
    system: &'a System,
) -> impl Iterator<Item = Diagnostics> + 'a {
    let unfit = buses.iter().filter_map(|bused| bused.plan.as_ref().err());
    unfit.map(|unfit| match unfit {
        NoSchedule::Refused(refusal) => {
            let [title, help] = why(refusal, system);
            system.problem(Place::Endpoint(refusal.id.0), [&title, "", "", &help])
        }
        NoSchedule::Nonsense(nonsense) => {
            let (title, help) = nonsense.describe(|id| called(system, id));
            let place = nonsense.endpoint().map_or(Place::Scheduling, |id| Place::Endpoint(id.0));
            system.problem(place, [&title, "", "", &help])
        }
    })
}

/// Returns why an endpoint has no place, and what would have fit.
#[must_use]
pub fn why(refusal: &EndpointRefusal, system: &System) -> [String; 2] {
    let reason = refusal.why(|id| called(system, id));
    [format!("{} does not fit: {reason}", called(system, refusal.id)), refusal.instead()]
}

/// Returns an endpoint in a sentence.
fn called(system: &System, id: EndpointId) -> String {
    format!("`{}`", name(system, id))
}

/// Returns the name of an endpoint.
#[must_use]
pub fn name(system: &System, id: EndpointId) -> &str {
    system.endpoint_name(id.0).unwrap_or_default()
}
