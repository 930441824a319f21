//! Bills to check with a pencil: the concentrator of [USB 2023], and where equation 9 breaks.

use diapason_abi::Nanos;
use diapason_analysis::server::{IoSupply, IoVcpu, MainVcpu, SharedCore, Supply, Utilization};
use diapason_pipe::bill::*;
use diapason_pipe::size::Bucket;

const MS: fn(u64) -> Nanos = Nanos::from_millis;
const US: fn(u64) -> Nanos = Nanos::from_micros;

/// Three tasks of (1, 7) ms, a receiver of (2, 14) and five users of (2, 46) with an I/O VCPU of
/// 1 %, kernel paths of 60 µs.
fn concentrator(chunks: u32) -> SharedCore {
    let mut mains = vec![MainVcpu::new(MS(1), MS(7)); 3];
    mains.push(MainVcpu::new(MS(2), MS(14)));
    mains.extend([MainVcpu::new(MS(2), MS(46)); 5]);
    mains.iter_mut().for_each(|main| main.chunks = chunks);
    let io = IoVcpu::new(Utilization::from_ppm(10_000).unwrap(), vec![3]);
    SharedCore { kernel_section: US(60), ..SharedCore::new(mains, vec![io]) }
}

/// Returns its pipes, with work so small that every stage conforms; of one user.
fn concentrated(user: usize, queued: u64, chunks: u32) -> Bill {
    let bill = concentrated_by(user, queued, chunks, StageTimes::new(US(3), Nanos::ZERO));
    assert_eq!(bill.1, MS(75));
    bill.0
}

/// Returns the same with another work of the bottom half, and equation 9.
fn concentrated_by(user: usize, queued: u64, chunks: u32, work: StageTimes) -> (Bill, Nanos) {
    let system = concentrator(chunks);
    let io = IoSupply::of(&system, 0).unwrap();
    let receiver = Supply::of(&system, 3).unwrap();
    let user = Supply::of(&system, user).unwrap();
    let stages = Stages {
        bus: Transfers {
            worst: MS(1),
            least: US(500),
            run: 1,
            queued,
            messages: 128,
            empties: false,
            paced: None,
        },
        interrupts: Interrupts {
            moderation: MS(1),
            gap: Nanos::ZERO,
            top_half: Nanos::ZERO,
            shared: false,
        },
        bottom_half: Stage { work, telling: Telling::Each, service: &io },
        receiver: Some(Stage {
            work: StageTimes::new(US(0), US(7)),
            telling: Telling::Each,
            service: &receiver,
        }),
        user: User { message: US(12), wake: Nanos::ZERO, taking: Taking::Each, service: &user },
    };
    let channels = [1000, 1000, 1200, 1605, 1752].map(|rate| [Bucket::per_second(rate)]);
    let channels = channels.each_ref().map(|contract| contract.as_slice());
    let bill = input(&stages, &Traffic::among(&channels, 4)).unwrap();
    let nine = equation_nine(&stages, MS(1));
    println!("{bill}\neq. 9: {nine}");
    (bill, nine)
}

#[test]
fn a_bottom_half_without_enough_budget_is_done_after_two_visits() {
    let work = StageTimes { activation: US(100), ..StageTimes::default() };
    let system = concentrator(200);
    let io = IoSupply::of(&system, 0).unwrap();
    let (bill, _) = concentrated_by(8, 64, 200, work);
    let half = bill.item(What::BottomHalf).map(|item| (item.value, item.basis));
    assert_eq!(half, Some((io.any(US(200)), Basis::Outstanding)));
}

#[test]
fn a_concentrator_has_the_bill_of_a_pencil() {
    let long_list = 200;
    let bill = concentrated(8, 64, long_list);
    assert!(bill.conforms());
    assert_eq!((bill.total.0.div_ceil(100_000), bill.slots), (339, 59));
    // One request at a time costs a round of the stages.
    let one = concentrated(8, 1, long_list);
    assert_eq!((one.total.0.div_ceil(100_000), one.device), (419, 59));
    // With the list of eight that kernels have, a user woken by every frame waits for merged
    // replenishments: longer than equation 9 says.
    let short = concentrated(8, 64, 8);
    assert_eq!(short.item(What::User).map(|item| item.basis), Some(Basis::Merged));
    assert!(short.total > MS(75), "{short}");
}
