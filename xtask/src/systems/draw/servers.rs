//! Draws servers without a VCPU, and the tasks that ask them.

use super::{spread, task};
use crate::systems::drawn::{Drawn, DrawnServer, SERVERS};
use diapason_random::Random;

/// Adds servers, and tasks until there are enough that ask.
pub fn serve(random: &mut Random, drawn: &mut Drawn) {
    let callers = random.between(2, 4) as usize;
    // A task on another core asks nobody.
    drawn.tasks.iter_mut().for_each(|task| task.core = 0);
    while drawn.tasks.len() < callers {
        drawn.tasks.push(task(random, callers as u64, false, drawn.clock_mhz));
    }
    let shortest = drawn.tasks.iter().map(|task| task.period).min().unwrap_or_default();
    let servers = random.between(1, SERVERS as u64) as usize;
    drawn.servers = (0..servers).map(|_| server(random, shortest / 8)).collect();
    for server in 0..servers {
        for _ in 0..random.between(2, 4) {
            let place = random.index(drawn.tasks.len());
            drawn.tasks[place].asks[server] = random.pick(&[1, 1, 1, 2, 3]);
        }
    }
    for (place, task) in drawn.tasks.iter_mut().enumerate() {
        // The first task keeps its VCPU: programs that misbehave are put beside it.
        task.background = place > 0 && random.one_in(5);
        if random.one_in(5) {
            task.patience = spread(random, 1, shortest);
        }
    }
}

fn server(random: &mut Random, longest: u64) -> DrawnServer {
    let work = spread(random, 2, longest.clamp(4, 2_000));
    let section = if random.one_in(3) { random.between(1, work) } else { 0 };
    let onward = if random.one_in(3) { random.between(1, 2) } else { 0 };
    DrawnServer { work, section, onward }
}

#[cfg(test)]
mod tests {
    use super::super::raw;
    use super::*;

    #[test]
    fn every_kind_of_server_and_caller_is_drawn() {
        let all: Vec<Drawn> = (0..300).map(|number| raw(5, number)).collect();
        let served: Vec<&Drawn> = all.iter().filter(|drawn| !drawn.servers.is_empty()).collect();
        assert!((75..125).contains(&served.len()), "{}", served.len());
        let callers =
            |drawn: &Drawn| drawn.tasks.iter().filter(|task| !drawn.asked(task).is_empty()).count();
        let some = |what: &dyn Fn(&Drawn) -> bool| {
            let count = served.iter().filter(|drawn| what(drawn)).count();
            assert!(count > 9, "{count}");
        };
        some(&|drawn| callers(drawn) > 3);
        some(&|drawn| drawn.locker().is_some());
        some(&|drawn| (0..drawn.servers.len()).any(|server| drawn.onward(server) > 0));
        some(&|drawn| drawn.tasks.iter().any(|task| task.background));
        some(&|drawn| drawn.tasks.iter().any(|task| task.patience > 0));
        assert!(served.iter().all(|drawn| callers(drawn) > 0));
    }
}
