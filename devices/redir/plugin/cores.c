/*
 * Lets the processors of a machine run side by side in one virtual time.
 *
 * With -icount, QEMU has one thread for all processors and one count of instructions, which is the
 * time. So a processor that runs takes the time of all others. Here each has its own. In a turn, every
 * processor runs from where it is to the same end, and the count goes back before the next one runs.
 * Timers run between two turns. A turn is a quantum at most, unless only one processor has something
 * to do: it runs until the next timer, or until it interrupts another.
 *
 * A processor may see what another wrote to memory up to a quantum too early. It never sees an
 * interrupt of another too early, nor what it waits for in a loop with `pause`: a processor that is
 * interrupted or waits goes on at the end of the turn.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "plugin.h"

/* Other functions of QEMU that are used: exported by the program, stable within 7.2. */

/* How the processors are driven: the class of QEMU's object "tcg-accel-ops". */
typedef struct {
    void *others[22];
    void (*handle_interrupt)(void *cpu, int mask);
} Accelerator;

/* What QEMU keeps of time, in words. */
enum { COUNT = 8 };

extern int64_t timers_state[];
extern __thread void *current_cpu;
extern void cpu_exit(void *cpu);
extern int64_t icount_round(int64_t ns);
extern int64_t icount_get_raw(void);
extern int64_t icount_to_ns(int64_t count);
extern Accelerator *object_class_by_name(const char *name);

enum { CORES_MAX = 64 };
/* Instructions by which processors that run are apart at most. */
enum { QUANTUM = 1000 };

static struct {
    /* How many instructions of the common time have passed for it. */
    int64_t at;
    /* It goes on at the end of this turn: it had nothing to do, or another has interrupted it. */
    bool stays;
    /* It waits for another in a loop. */
    bool pauses;
} cores[CORES_MAX];
static int cores_used;

/* The processor that runs, if one does. */
static int running = -1;
static struct {
    bool begun;
    int64_t start, end;
    /* How many processors had something to do when it began. */
    int awake;
} turn;

static bool has_nothing_to_do(int core)
{
    return cpu_thread_is_idle(qemu_get_cpu(core));
}

static int core_of(void *cpu)
{
    int core = 0;

    while (core < cores_used && qemu_get_cpu(core) != cpu) {
        core++;
    }
    return core;
}

/* Notes how far the processor came that ran. */
static void leave(void)
{
    if (running < 0) {
        return;
    }
    cores[running].at = timers_state[COUNT];
    /* Alone, it waits for no other. */
    if (cores[running].pauses && turn.awake > 1 && cores[running].at < turn.end) {
        cores[running].at = turn.end;
    }
    cores[running].pauses = false;
    running = -1;
}

static void begin_turn(void)
{
    turn.begun = true;
    turn.start = timers_state[COUNT];
    turn.awake = 0;
    for (int i = 0; i < cores_used; i++) {
        cores[i].stays = has_nothing_to_do(i);
        turn.awake += !cores[i].stays;
        if (cores[i].at < turn.start) {
            cores[i].at = turn.start;
        }
    }
}

void end_cores_turn(void)
{
    int64_t least = INT64_MAX, most = turn.start;

    leave();
    if (!turn.begun) {
        return;
    }
    turn.begun = false;
    for (int i = 0; i < cores_used; i++) {
        if (!cores[i].stays) {
            least = cores[i].at < least ? cores[i].at : least;
            most = cores[i].at > most ? cores[i].at : most;
        }
    }
    for (int i = 0; i < cores_used; i++) {
        if (cores[i].stays && cores[i].at < most && !has_nothing_to_do(i)) {
            cores[i].at = most;
        }
    }
    timers_state[COUNT] = least == INT64_MAX ? turn.start : least;
}

/* Instead of icount_round(): returns how many instructions the processor may execute that is next. */
static int64_t allowance(int64_t ns)
{
    int64_t tick = icount_to_ns(1), deadline, length;
    int core;

    if (!current_cpu) {
        return (ns + tick - 1) / tick;
    }
    leave();
    if (!turn.begun) {
        begin_turn();
    }
    timers_state[COUNT] = turn.start;
    deadline = qemu_clock_deadline_ns_all(VIRTUAL_CLOCK, ALL_TIMERS);
    length = deadline < 0 ? INT32_MAX : (deadline + tick - 1) / tick;
    if (turn.awake > 1 && length > QUANTUM) {
        length = QUANTUM;
    }
    turn.end = turn.start + length;
    core = core_of(current_cpu);
    if (cores[core].stays || cores[core].at >= turn.end) {
        /* One that has nothing to do executes nothing. If it might not, QEMU woke its main loop. */
        return has_nothing_to_do(core);
    }
    timers_state[COUNT] = cores[core].at;
    running = core;
    return turn.end - cores[core].at;
}

/* Interrupts. */

static void (*interrupt)(void *cpu, int mask);

static void on_interrupt(void *cpu, int mask)
{
    int core = core_of(cpu);

    interrupt(cpu, mask);
    if (running >= 0 && core != running && core < cores_used) {
        cores[core].stays = true;
        cpu_exit(current_cpu);
    }
}

/* `pause`. */

static void on_pause(unsigned int core, void *nothing)
{
    (void)nothing;
    cores[core].pauses = true;
}

static void on_translated(uint64_t id, Block *block)
{
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++) {
        Instruction *instruction = qemu_plugin_tb_get_insn(block, i);
        const unsigned char *bytes = qemu_plugin_insn_data(instruction);

        if (qemu_plugin_insn_size(instruction) == 2 && bytes[0] == 0xf3 && bytes[1] == 0x90) {
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_pause, NO_REGISTERS, NULL);
        }
    }
}

/* Start-up. */

void check_cores(void)
{
    if (cores_used > 0 && icount_get_raw() != timers_state[COUNT]) {
        give_up("QEMU keeps its count of instructions elsewhere");
    }
}

void take_interrupts(void)
{
    Accelerator *accelerator;

    if (cores_used == 0) {
        return;
    }
    accelerator = object_class_by_name("tcg-accel-ops");
    if (!accelerator || !accelerator->handle_interrupt) {
        give_up("QEMU interrupts its processors in another way");
    }
    interrupt = accelerator->handle_interrupt;
    accelerator->handle_interrupt = on_interrupt;
}

bool take_cores(uint64_t id, int count)
{
    if (count < 2) {
        return true;
    }
    if (count > CORES_MAX || !redirect((void *)icount_round, (void *)allowance)) {
        return false;
    }
    cores_used = count;
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
    return true;
}
