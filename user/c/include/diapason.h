/* The calls of Diapason for programs in C11, freestanding: there is no C library.
 *
 * A program defines `int main(void)`. A function that can fail returns 0 (DIA_OK) or a negative
 * number. A null pointer where none is allowed is DIA_INVALID. A handle that was never given out,
 * and an object that the description does not grant, end the process.
 *
 * Times are nanoseconds since boot. A deadline of DIA_NO_WAIT does not wait, DIA_FOREVER waits as
 * long as it takes. Names have at most 31 characters. */
#ifndef DIAPASON_H
#define DIAPASON_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Results. */
#define DIA_OK 0
#define DIA_OWNER_DIED 1    /* dia_mutex_lock: the last owner ended while it held the mutex */
#define DIA_TIMED_OUT (-1)  /* the deadline passed first */
#define DIA_WOULD_BLOCK (-2) /* the call would have had to wait */
#define DIA_GONE (-3)       /* the object was deleted */
#define DIA_DEADLOCK (-4)   /* waiting would close a cycle of owners */
#define DIA_NOT_OWNER (-5)  /* the caller does not hold the mutex */
#define DIA_FULL (-6)       /* the mailbox is full, or a counter at its limit */
#define DIA_EXHAUSTED (-7)  /* the process has used up its objects of this kind */
#define DIA_BUSY (-8)       /* another thread waits here already, or the thing is in use */
#define DIA_OVERLOAD (-9)   /* the core cannot keep that promise */
#define DIA_ABSENT (-10)    /* the machine does not have the device */
#define DIA_INVALID (-32)   /* an argument makes no sense */
#define DIA_REFUSED (-33)   /* tpipe.h: the server cannot promise that, and nothing changed */

#define DIA_NO_WAIT UINT64_C(0)
#define DIA_FOREVER UINT64_MAX
#define DIA_MS(n) ((uint64_t)(n) * UINT64_C(1000000))
#define DIA_US(n) ((uint64_t)(n) * UINT64_C(1000))
#define DIA_SECONDS(n) ((uint64_t)(n) * UINT64_C(1000000000))

#define DIA_MESSAGE_BYTES 64 /* longest message of a mailbox */
#define DIA_LINE_BYTES 112   /* longest line that is logged; the rest is cut */
#define DIA_PAGE 4096
#define DIA_PRIORITIES 64    /* from 0, the least urgent, to 63 */

/* Handles. They are numbers in structures, so that a mutex is not taken for a mailbox. */
typedef struct { uint64_t handle; } dia_thread;
typedef struct { uint64_t handle; } dia_vcpu;
typedef struct { uint64_t handle; } dia_mutex;
typedef struct { uint64_t handle; } dia_semaphore;
typedef struct { uint64_t handle; } dia_condition;
typedef struct { uint64_t handle; } dia_mailbox;
typedef struct { uint64_t handle; } dia_event;

/* The program. */

int main(void);
/* Returns a number that the description gives the program (`arguments`), index 0 to 3. */
uint64_t dia_argument(uint32_t index);
/* Copies the numbers of a setting, at most `room`; returns how many it has. */
int dia_setting(const char *name, uint64_t *values, size_t room);
/* Says one line on the console. */
void dia_log(const char *line);
/* Says one line, formatted as by dia_format. */
void dia_logf(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Formats as snprintf does: %d %i %u %x %X %c %s %p %f %%, with the flags 0 and -, a width, a
 * precision for %s and %f, and the lengths hh h l ll z. Returns the length of the whole text. */
int dia_format(char *text, size_t room, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int dia_format_list(char *text, size_t room, const char *format, va_list list);
/* Ends the calling thread. The process ends with its last thread. */
void dia_exit(uint64_t code) __attribute__((noreturn));
/* Gives up: the process ends, and its supervisor is told the number. */
void dia_fail(uint64_t place) __attribute__((noreturn));

/* Time. */

uint64_t dia_now(void);
void dia_sleep(uint64_t span);
void dia_sleep_until(uint64_t instant);
/* Uses processor time: synthetic work, one instruction per nanosecond. */
void dia_burn(uint64_t span);
/* Says that the work of this name has been done. The simulator takes the time that [[work]] gives;
 * on a machine the instructions before this call took it. */
int dia_work(const char *name);
/* Returns the processor time that the calling thread has used. */
uint64_t dia_cpu_time(void);

/* Threads. A thread ends with the return of its body. vcpu is DIA_VCPU_DEFAULT, or another of the
 * process; the priority is at most that of the process. */

#define DIA_VCPU_DEFAULT ((dia_vcpu){0})
int dia_thread_start(dia_thread *thread, dia_vcpu vcpu, const char *name, uint32_t priority,
                     uint64_t (*body)(void *), void *argument);
/* Waits for the end of a thread. Its handle is gone afterwards; code may be null. */
int dia_thread_join(dia_thread thread, uint64_t deadline, uint64_t *code);
int dia_thread_detach(dia_thread thread);
void dia_yield(void);

/* Makes the caller periodic; returns at `first`, the release of its first job. */
int dia_jobs_start(uint64_t first, uint64_t period, uint64_t deadline);
/* Ends the job and waits for the next release; returns the releases that were passed over. */
uint64_t dia_job_wait(void);

/* Virtual CPUs. */

int dia_vcpu_open(const char *name, dia_vcpu *vcpu);
int dia_vcpu_create(uint64_t budget, uint64_t period, bool background, dia_vcpu *vcpu);
/* Gives a declared one no more than the description says, unless some process may make VCPUs. */
int dia_vcpu_set(dia_vcpu vcpu, uint64_t budget, uint64_t period);
int dia_vcpu_delete(dia_vcpu vcpu);
/* Returns the largest budget that would be admitted at this period. */
int dia_vcpu_fit(uint64_t period, uint64_t *budget);

/* Objects. `open` finds what the description declares and grants; `private` makes one for this
 * process only. */

int dia_mutex_open(const char *name, dia_mutex *mutex);
int dia_mutex_private(dia_mutex *mutex);
int dia_mutex_lock(dia_mutex mutex, uint64_t deadline);
int dia_mutex_unlock(dia_mutex mutex);
int dia_mutex_delete(dia_mutex mutex);

int dia_semaphore_open(const char *name, dia_semaphore *semaphore);
int dia_semaphore_private(uint32_t initial, dia_semaphore *semaphore);
int dia_semaphore_take(dia_semaphore semaphore, uint64_t deadline);
int dia_semaphore_give(dia_semaphore semaphore);
int dia_semaphore_delete(dia_semaphore semaphore);

int dia_condition_open(const char *name, dia_condition *condition);
int dia_condition_private(dia_condition *condition);
/* Releases the mutex, waits for a signal, and holds the mutex again. */
int dia_condition_wait(dia_condition condition, dia_mutex mutex, uint64_t deadline);
int dia_condition_signal(dia_condition condition);
int dia_condition_broadcast(dia_condition condition);
int dia_condition_delete(dia_condition condition);

#define DIA_NO_EVENT ((dia_event){0})
/* The event, unless it is DIA_NO_EVENT, is raised at each arrival. */
int dia_mailbox_open(const char *name, dia_event event, dia_mailbox *mailbox);
int dia_mailbox_send(dia_mailbox mailbox, const void *message, size_t length, uint32_t priority,
                     uint64_t deadline);
/* Receives the message with the highest priority. The buffer has room for DIA_MESSAGE_BYTES;
 * length and priority may be null. */
int dia_mailbox_receive(dia_mailbox mailbox, void *buffer, size_t *length, uint32_t *priority,
                        uint64_t deadline);
/* A mailbox with a `server` in the description: the thread that serves it runs in the place of
 * whoever asks. It receives the first request with dia_mailbox_receive. Another process than
 * the `server` ends here. */
int dia_mailbox_serve(const char *name, dia_mailbox *mailbox);
/* Asks, or, called by the thread that serves, answers and waits for the next request. The buffer has
 * room for DIA_MESSAGE_BYTES, of which *length are sent; priority may be null. */
int dia_mailbox_ask(dia_mailbox mailbox, void *buffer, size_t *length, uint32_t *priority,
                    uint64_t deadline);
int dia_mailbox_delete(dia_mailbox mailbox);

int dia_event_create(dia_event *event);
/* Returns the interrupt of a granted device as an event. */
int dia_event_interrupt(const char *device, dia_event *event);
/* Waits until the event has occurred; `count`, which may be null, is how often. */
int dia_event_wait(dia_event event, uint64_t deadline, uint64_t *count);
int dia_event_delete(dia_event event);

/* A timer is an event. It expires at `first`, then every `period` (0: never again). */
int dia_timer_create(dia_event *timer);
int dia_timer_start(dia_event timer, uint64_t first, uint64_t period);
int dia_timer_stop(dia_event timer);

int dia_doorbell_ring(const char *name);

/* Memory. */

/* Attaches a shared segment for the life of the process. The first to attach finds it zeroed. */
int dia_segment_attach(const char *name, void **address);
/* Takes zeroed pages of the process's `heap`, for good. */
int dia_pages(size_t pages, void **address);

/* Functions of a C library that programs and compilers expect. */

void *memcpy(void *to, const void *from, size_t length);
void *memmove(void *to, const void *from, size_t length);
void *memset(void *to, int value, size_t length);
int memcmp(const void *a, const void *b, size_t length);
size_t strlen(const char *text);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t length);

#ifdef __cplusplus
}
#endif

#endif
