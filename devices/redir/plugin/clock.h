/*
 * What the parts of the clock's plugin have in common.
 */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Functions of QEMU that are used: exported by the program, stable within 7.2. */

enum { VIRTUAL_CLOCK = 1, ALL_TIMERS = -1 };

extern void *qemu_get_cpu(int index);
extern bool cpu_thread_is_idle(void *cpu);
extern int64_t qemu_clock_deadline_ns_all(int clock, int attributes);

/* The functions of clock.c. */

_Noreturn void give_up(const char *why);
/* Lets a function begin with a jump to another from now on; false if the host refuses. */
bool redirect(void *from, void *to);

/* The functions of cores.c. For a machine with one processor, they do nothing. */

/* Lets so many processors run side by side; false if they cannot. */
bool take_cores(uint64_t id, int count);
/* Sees interrupts from now on: the accelerator must be there. */
void take_interrupts(void);
/* Checks that QEMU keeps time where this is looked for. */
void check_cores(void);
/* Sets the time back to that of the processor that has come least far, so that timers may run. */
void end_cores_turn(void);

#endif
