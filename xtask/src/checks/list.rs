//! The 25 checks: what each asks for, what does it here, and what is missing. The wanted figures
//! stand beside ours, so that a small number does not look like a large one.

/// The command that does the asked number of a check's gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Gate {
    /// Every `cargo xtask test`.
    Met,
    /// `cargo xtask campaign gates`; every test run does less.
    Named,
    /// No command: less is done.
    Part,
}

/// Something that a test run does for a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Proof {
    /// A step of what boots: a part of its name.
    Step(&'static str),
    /// A test of the host: package, folder of the package, file of `tests`, function.
    Test(&'static str, &'static str, &'static str, &'static str),
}

use Gate::{Met, Named, Part};
use Proof::{Step, Test};

/// One of the 25 checks.
pub(crate) struct Check {
    pub what: &'static str,
    /// The wanted figures: of every test run, and of a campaign.
    pub asks: [&'static str; 2],
    pub gate: Gate,
    /// Our figure of every test run.
    pub figure: &'static str,
    pub proofs: &'static [Proof],
    /// Commands that do the asked number, if test runs do not.
    pub asked: &'static [&'static str],
    /// Commands of the long form.
    pub long: &'static [&'static str],
    pub missing: &'static str,
}

/// All checks, in their order.
pub(crate) const CHECKS: [Check; 25] = [
    Check {
        what: "random system calls break nothing",
        asks: ["10 M calls on the host, 1 M booted", "1e9, 100 M"],
        gate: Named,
        figure: "300,000 on the host, 100,000 booted; invariants after every call",
        proofs: &[
            Test(
                "diapason-core",
                "kernel/core",
                "storm",
                "nothing_a_program_does_breaks_the_kernel",
            ),
            Step("a storm of calls does no harm"),
        ],
        asked: &["cargo xtask storm --calls 1000000 --host-calls 10000000"],
        long: &["cargo xtask campaign storm", "cargo xtask storm"],
        missing: "the campaign's number; booted storms in shares",
    },
    Check {
        what: "an address and a length are accepted if and only if they are the caller's",
        asks: ["20 M", "2e9, and all of a small address space"],
        gate: Named,
        figure: "every edge with 22 lengths in 7 calls, and 4,000 random ones",
        proofs: &[Test("diapason-core", "kernel/core", "pointers", "every_edge_with_every_length")],
        asked: &["DIAPASON_POINTERS=20000000 cargo test --quiet --release -p diapason-core \
             --test all pointers::"],
        long: &["cargo xtask campaign storm"],
        missing: "the test of the metal is the deeds of check 3 only",
    },
    Check {
        what: "a process reaches no memory that is not its own",
        asks: ["every class of page × read, write, execute", "the same"],
        gate: Met,
        figure: "all deeds of `user/apps/trials`, each in a life of its own, beside a neighbour; \
                 simulated, with a sum over the memory of all others before and after each run; in \
                 QEMU, with all page tables and all constant pages of kernel and others, before, \
                 between and after the deeds, as the machine's memory has them",
        proofs: &[
            Step("each forbidden thing ends its process and nothing else"),
            Step("simulator: no forbidden thing changes the memory of others"),
            Step("QEMU: no forbidden thing changes memory that is nobody's to change"),
        ],
        asked: &[],
        long: &["cargo xtask test --qemu forbidden"],
        missing: "on the real kernel, a look after each deed: there are three; a sum over what \
                  others write themselves, of which a neighbour's pattern is compared",
    },
    Check {
        what: "faults and restarts leave nothing behind",
        asks: ["10,000 faults", "5 M"],
        gate: Named,
        figure: "the faults of the storm; 1,000 short storms end without a leak",
        proofs: &[
            Test("diapason-core", "kernel/core", "storm", "many_short_storms_end_without_a_leak"),
            Step("a faulting process is restarted as described"),
        ],
        asked: &["cargo xtask endure faults --count 10000"],
        long: &["cargo xtask campaign storm"],
        missing: "the campaign's number; other faults than a bad read, so often",
    },
    Check {
        what: "the kernel has no allocation, no formatting, and a bounded stack",
        asks: ["every entry at most 75 % of its stack", "the same"],
        gate: Met,
        figure: "no text of `core::fmt`; the deepest way through the calls of the linked code is \
                 below 75 % of the stack",
        proofs: &[
            Step("binary lints of the kernel"),
            Step("size of the kernel"),
            Step("depth of the kernel's stack"),
        ],
        asked: &[],
        long: &["cargo xtask test --qemu kernel"],
        missing: "the stacks of programs",
    },
    Check {
        what: "a kernel path is not longer than is planned with",
        asks: ["3,000 instructions on every path", "the same"],
        gate: Part,
        figure: "each description has its own longest path, counted and planned with; large ones \
                 are longer than 3,000",
        proofs: &[
            Step("kernel costs are of this kernel"),
            Test(
                "diapason-core",
                "kernel/core",
                "ends",
                "a_large_process_ends_itself_in_short_stages_and_then_its_supervisor_hears",
            ),
        ],
        asked: &[],
        long: &["cargo xtask costs"],
        missing: "3,000 for every size that can be described",
    },
    Check {
        what: "no call takes a neighbour's budget",
        asks: ["2,000 windows × 50 systems", "1e6 × 10,000"],
        gate: Met,
        figure: "23 ways to steal, from above and from below, simulated and in part booted; more \
                 than 2,000 sliding windows of each of 50 random systems",
        proofs: &[
            Step("simulator: no call takes a neighbour's budget"),
            Step("simulator: in no window a call takes a neighbour's budget"),
            Step("QEMU: no call takes a neighbour's budget"),
        ],
        asked: &[],
        long: &["cargo xtask campaign systems", "cargo xtask campaign analysis"],
        missing: "the campaign's number; a neighbour of several VCPUs",
    },
    Check {
        what: "analysis, simulator and kernel agree",
        asks: ["500 systems", "100,000, no violation"],
        gate: Named,
        figure: "200 random systems simulated and judged, 8 random task sets job by job in QEMU",
        proofs: &[
            Step("each of 200 random systems holds if plan admits it"),
            Step("QEMU and the simulator agree on random task sets"),
        ],
        asked: &[
            "cargo xtask attack systems --count 500 --seed 8",
            "cargo xtask compare --sets 500",
        ],
        long: &["cargo xtask campaign systems", "cargo xtask campaign compare"],
        missing: "30 % of systems with an observed half of the bound; the campaign's number",
    },
    Check {
        what: "what is admitted meets its deadlines",
        asks: ["300 systems", "50,000"],
        gate: Met,
        figure: "20,000 random sets in the model of the servers, and the systems of check 8",
        proofs: &[
            Test(
                "diapason-vcpu",
                "lib/vcpu",
                "admission",
                "what_is_admitted_satisfies_the_inequality_and_what_fits_is_the_most",
            ),
            Step("each of 200 random systems holds if plan admits it"),
        ],
        asked: &[],
        long: &["cargo xtask campaign analysis", "cargo xtask campaign systems"],
        missing: "the campaign at its number",
    },
    Check {
        what: "interrupts faster than declared cost others nothing",
        asks: ["10 × the declared rate on every vector", "the same"],
        gate: Met,
        figure: "ten lines that ring ten times too often are heard as often as described, and a \
                 timer of the HPET far above its interval takes nothing from its neighbours",
        proofs: &[
            Test(
                "diapason-core",
                "kernel/core",
                "events",
                "lines_that_ring_ten_times_too_often_are_heard_as_often_as_described",
            ),
            Test(
                "diapason-core",
                "kernel/core",
                "events",
                "an_interrupt_that_comes_too_soon_is_the_last_until_the_next_may_come",
            ),
            Step("simulator: no call takes a neighbour's budget"),
        ],
        asked: &[],
        long: &["cargo xtask test --qemu neighbour"],
        missing: "a storm of a real controller's messages",
    },
    Check {
        what: "a million periodic wake-ups, none later than a kernel path",
        asks: ["1 M", "100 M"],
        gate: Named,
        figure: "the timers of task sets, some thousand wake-ups",
        proofs: &[Step("QEMU and the simulator agree on random task sets")],
        asked: &["cargo xtask endure wakes --count 1000000"],
        long: &["cargo xtask bench"],
        missing: "a histogram; the reason why the latest of a million took 7.5 us; the campaign's \
                  number",
    },
    Check {
        what: "wraps, stalls and drift of clocks put nothing in the wrong order",
        asks: ["10 s before every wrap, ±500 ppm", "the same"],
        gate: Met,
        figure: "the clocks of interfaces wrap ten seconds into the run of two systems, up to 500 \
                 ppm fast or slow, and nothing changes; numbers of messages wrap in every run",
        proofs: &[
            Step("simulator: nothing changes when counters wrap"),
            Step("a sensor whose clock runs away is found out"),
            Test(
                "diapason-usb",
                "lib/usb",
                "xhci/transfers.rs",
                "a_ring_goes_round_and_a_full_one_refuses",
            ),
        ],
        asked: &[],
        long: &["cargo xtask campaign search"],
        missing: "a whole system in which the posts of a socket wrap, or the bytes of TCP",
    },
    Check {
        what: "hostile descriptors",
        asks: ["200,000 sets", "100 M, guided by coverage"],
        gate: Met,
        figure: "200,000 damaged sets, 100,000 other descriptors, and the corpus",
        proofs: &[
            Test(
                "diapason-usb",
                "lib/usb",
                "descriptor_hostile",
                "damaged_sets_are_refused_or_sound",
            ),
            Test("diapason-fuzz", "xtask/fuzz", "replay", "inputs_that_were_kept_still_end_well"),
        ],
        asked: &[],
        long: &["cargo xtask fuzz descriptors --runs 100000000"],
        missing: "Miri; a count of instructions for each byte",
    },
    Check {
        what: "hostile devices at the controller",
        asks: ["20,000", "5 M"],
        gate: Named,
        figure: "300 hostile devices on driver and model, and 1,000 plugs",
        proofs: &[
            Test(
                "diapason-usb",
                "lib/usb",
                "hostile_devices/main.rs",
                "hostile_devices_disturb_nobody",
            ),
            Test(
                "diapason-usb",
                "lib/usb",
                "xhci/plug.rs",
                "a_thousand_plugs_leave_every_pool_as_it_was",
            ),
        ],
        asked: &["cargo xtask usb --cycles 0 --hostile 20000 --trees 0"],
        long: &["cargo xtask campaign usb"],
        missing: "the campaign's number",
    },
    Check {
        what: "a hostile controller",
        asks: ["500,000 events", "1e9"],
        gate: Named,
        figure: "100,000 events",
        proofs: &[Test(
            "diapason-usb",
            "lib/usb",
            "xhci/hostile.rs",
            "a_hundred_thousand_events_of_a_hostile_controller",
        )],
        asked: &["cargo xtask attack 'a hostile USB controller'"],
        long: &["cargo xtask attack 'a hostile USB controller'"],
        missing: "damage of registers and of the driver's own memory; seeds for shares",
    },
    Check {
        what: "model and QEMU do the same on the same scripts",
        asks: ["200 scripts", "5,000"],
        gate: Named,
        figure: "40 scripts of USB traffic against QEMU's controller and the simulator's: each \
                 line of both is equal, that is every outcome, length, and sum over memory; the \
                 deeds and trials on both machines; random task sets of check 8",
        proofs: &[
            Step("QEMU and the simulator do the same on scripts of USB traffic"),
            Step("all trials pass, and replay equal on the host"),
            Step("QEMU and the simulator agree on random task sets"),
        ],
        asked: &["cargo xtask compare --scripts 200"],
        long: &["cargo xtask campaign compare"],
        missing: "the campaign's number; scripts with isochronous transfers, hubs and streams",
    },
    Check {
        what: "devices come and go",
        asks: ["trees of five hubs, 10 changes a second", "200,000 changes"],
        gate: Named,
        figure: "1,000 plugs at the driver; chains of up to five hubs in a whole system, beside a \
                 sensor, whose devices come and go ten times a second; their clients hear of it \
                 within 300 ms",
        proofs: &[
            Test(
                "diapason-usb",
                "lib/usb",
                "xhci/plug.rs",
                "a_thousand_plugs_leave_every_pool_as_it_was",
            ),
            Step("simulator: trees of hubs come and go, and clients hear of it in time"),
            Step("devices that are found cost a camera no frame"),
        ],
        asked: &["cargo xtask usb --cycles 0 --hostile 0 --trees 2223"],
        long: &["cargo xtask campaign usb"],
        missing: "trees that branch at more than their ends; SuperSpeed",
    },
    Check {
        what: "a reserved pipe beside a flood",
        asks: ["1e5 intervals", "1e7"],
        gate: Named,
        figure: "a camera, a sensor and five CAN channels beside disks: some 10,000 intervals each",
        proofs: &[
            Step("a pipe from a sensor keeps its bound beside a CAN channel and a disk"),
            Step("a sensor, a keyboard behind a hub, a disk and a camera are served whole"),
        ],
        asked: &["diapason sim examples/usb-devices.toml --for 100s"],
        long: &["cargo xtask campaign search"],
        missing: "the throughput that is left over",
    },
    Check {
        what: "the debug capability under faults",
        asks: ["2,000 faults", "1 M, every transition"],
        gate: Met,
        figure: "2,000 faults of 13 kinds at the model, every change of state, and each message \
                 once and in order; random registers",
        proofs: &[
            Test(
                "diapason-usb",
                "lib/usb",
                "debug_target/faults.rs",
                "messages_outlive_every_fault_of_a_debug_cable",
            ),
            Test("diapason-usb", "lib/usb", "debug_target/main.rs", "whatever_the_hardware_says"),
            Test("diapason-xhc", "sim/xhc", "hostile", "random_debug_rings_never_hang_it"),
        ],
        asked: &[],
        long: &["cargo test --release -p diapason-usb --test debug_target"],
        missing: "lost doorbells; two models back to back under all of these faults",
    },
    Check {
        what: "devices write only to memory that they were lent",
        asks: ["10 M transfers", "1e9"],
        gate: Named,
        figure: "100,000 transfers beside poisoned memory, taken back and pulled; every transfer \
                 of every simulation is watched, and a late write is found",
        proofs: &[
            Test(
                "diapason-usb",
                "lib/usb",
                "xhci/lent.rs",
                "the_controller_reaches_the_memory_of_transfers_and_no_other",
            ),
            Test(
                "diapason-xhc",
                "sim/xhc",
                "lent",
                "a_late_write_is_found_unless_the_memory_was_lent_again",
            ),
            Step("a PCI device writes nothing without its driver"),
            Step("an IOMMU stops a driver that aims its device at others"),
        ],
        asked: &["DIAPASON_TRANSFERS=10000000 cargo test --quiet --release -p diapason-usb \
             --test xhci lent::"],
        long: &["cargo xtask campaign usb", "cargo xtask campaign search"],
        missing: "the campaign's number; isochronous transfers beside the poison",
    },
    Check {
        what: "no CAN frame is lost within the contract",
        asks: ["4 simulated hours", "10,000 simulated hours"],
        gate: Named,
        figure: "10 s booted, 3 s simulated, each with five channels and a trace that is kept",
        proofs: &[Step("the concentrator reads every frame of five channels")],
        asked: &["diapason sim examples/can-concentrator.toml --for 4h"],
        long: &["cargo xtask campaign search"],
        missing: "hours that are booted; a recorded run of 1,000 hours",
    },
    Check {
        what: "babbling nodes and bus-off",
        asks: ["others within their bounds", "1e7 windows"],
        gate: Met,
        figure: "buses to the bit with babbling, jamming and bus-off; a million windows of the \
                 frames of a host, beside a program that sends too often and makes nobody late",
        proofs: &[
            Step("simulator: no message of a host is on the bus too often"),
            Step("simulator: messages of a CAN controller are in time"),
            Test(
                "diapason-can",
                "lib/can",
                "bus",
                "a_babbling_idiot_starves_all_but_more_urgent_ones",
            ),
            Test(
                "diapason-can",
                "lib/can",
                "bus",
                "a_jammed_bus_costs_eight_per_eight_bits_and_ends_in_bus_off",
            ),
        ],
        asked: &[],
        long: &["cargo xtask campaign mts"],
        missing: "the campaign's number; windows of hosts with interfaces at USB",
    },
    Check {
        what: "malformed CAN frames, packets and logs",
        asks: ["2 M", "1e9"],
        gate: Named,
        figure: "20,000 to 50,000 of each test, and the corpora",
        proofs: &[
            Test(
                "diapason-can",
                "lib/can",
                "wire",
                "no_single_flip_goes_unnoticed_and_no_bits_panic",
            ),
            Test("diapason-fuzz", "xtask/fuzz", "replay", "inputs_that_were_kept_still_end_well"),
        ],
        asked: &[
            "cargo xtask fuzz candump --runs 500000",
            "cargo xtask fuzz logs --runs 500000",
            "cargo xtask fuzz kvaser --runs 500000",
            "cargo xtask fuzz gs-usb --runs 500000",
        ],
        long: &["cargo xtask campaign fuzz"],
        missing: "the campaign's number",
    },
    Check {
        what: "a flood of frames on Ethernet",
        asks: ["10 × the receiver's capacity, 95 % of the peak", "the same"],
        gate: Met,
        figure: "1,000, 10,000 and 100,000 frames a second, and ten times what a program can take \
                 with 14 kinds of malformed frames, beside a periodic receiver that loses nothing",
        proofs: &[
            Step("simulator: a flood of ten times what a program can take"),
            Step("a flood of 100,000 frames a second"),
            Test(
                "diapason-ether",
                "lib/ether",
                "needs",
                "a_flood_takes_nothing_from_a_periodic_receiver_but_in_the_conventional_way",
            ),
        ],
        asked: &[],
        long: &["cargo xtask attack 'damaged frames on Ethernet'"],
        missing: "frames with a wrong checksum of Ethernet; a wire that is full",
    },
    Check {
        what: "random systems with faults, and planted bugs",
        asks: ["200 seeds × 60 s", "50,000 hours; 95 % of 60 planted bugs"],
        gate: Named,
        figure: "200 random systems, traces of fixed seeds with faults, all equal on replay",
        proofs: &[
            Step("each of 200 random systems holds if plan admits it"),
            Step("fixed seeds have the traces that are kept"),
        ],
        asked: &[
            "diapason sim examples/can-concentrator.toml --faults --search 200 --for 60s --seed 25",
        ],
        long: &[
            "cargo xtask campaign systems",
            "cargo xtask campaign search",
            "cargo xtask campaign mutants",
        ],
        missing: "liveness apart from safety; the campaign's number",
    },
];
