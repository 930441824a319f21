/*
 * Holds the virtual clock of a QEMU machine at every slice until the device server has answered.
 *
 * Works with QEMU 7.2 on an x86-64 host, one instruction counter (-icount shift=N,sleep=off). All of
 * virtual time is made by the thread that runs the processors: it counts instructions, it skips
 * idle time, and it waits here at T = 0, slice, 2 x slice, ... QEMU's main loop, which runs
 * in host time, may do neither; in stock QEMU it skips idle time and races with that thread.
 * cores.c lets several processors run side by side.
 *
 * It is the other end of the wires of Ethernet adapters, too (wires=N: the netdevs wire0, wire1, ...,
 * all of one kind that only sends, such as dgram). A frame is kept with the time at which the guest sent it,
 * until the guest stands still. A frame for the guest arrives at the time that the server names.
 *
 * The plugin interface of 7.2 has no control of time, so functions that QEMU exports are
 * redirected: see take_over() and take_cores(). Everything else is called as it is.
 */
#include <errno.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "plugin.h"

#ifndef __x86_64__
#error "the redirection of functions is written for x86-64 hosts"
#endif

int qemu_plugin_version = 1;

/* Other functions of QEMU that are used: exported by the program, stable within 7.2. */

enum { INSTRUCTIONS_COUNTED = 1, NANOSECONDS = 1 };
enum { POLL_FILL = 0 };
enum { WIRES_MAX = 16 };

/* Set apart for a QEMUTimer, which has 48 bytes. */
typedef struct {
    uint64_t words[16];
} Timer;

typedef struct Notifier {
    void (*notify)(struct Notifier *, void *);
    void *links[2];
} Notifier;

typedef struct {
    int fd;
    unsigned short wanted, ready;
} Descriptor;

typedef struct {
    int state;
    uint32_t timeout_ms;
    struct {
        Descriptor *all;
        unsigned int count;
    } *descriptors;
} Poll;

/* How a backend of the network is driven: the first members. */
typedef struct {
    int kind;
    size_t size;
    ssize_t (*receive)(void *, const unsigned char *, size_t);
    void *receive_raw, *receive_parts, *can_receive;
} Driver;

typedef struct {
    Driver *driver;
} Wire;

extern int use_icount;
extern bool runstate_is_running(void);
extern bool all_cpu_threads_idle(void);
extern void icount_account_warp_timer(void);
extern void icount_start_warp_timer(void);
extern int64_t qemu_clock_get_ns(int clock);
extern void qemu_clock_enable(int clock, bool enabled);
extern void timer_init_full(Timer *, void *, int clock, int scale, int, void (*)(void *), void *);
extern void timer_mod_ns(Timer *, int64_t);
extern void main_loop_poll_add_notifier(Notifier *);
extern void qemu_notify_event(void);
extern Wire *qemu_find_netdev(const char *name);
extern int qemu_can_send_packet(Wire *);
extern ssize_t qemu_send_packet(Wire *, const unsigned char *, int length);
extern void qemu_mutex_unlock_iothread(void);
extern void qemu_mutex_lock_iothread_impl(const char *file, int line);

/* The answers of the server. */
enum { GO = 'g', AGAIN = 'a', END = 'e' };
/* Rounds of the main loop that must find nothing to do; the second sees what the first left. */
enum { QUIET_ROUNDS = 2 };

static int server = -1;
static int64_t slice, next;
/* Time that was skipped because the processors had nothing to do. */
static int64_t idle;
static Timer boundary;
static bool begun;
/* The processors' thread asks for idle time to be skipped; nobody else can see it set. */
static __thread bool skipping;

/* A frame, as the server and the plugin tell each other; its bytes follow. */
typedef struct {
    int64_t at;
    uint32_t wire, length;
} Frame;

/* Frames one behind the other. */
typedef struct {
    unsigned char *bytes;
    size_t used, room;
    uint32_t count;
} Frames;

static Wire *wires[WIRES_MAX];
static int wires_used;
static Frames sent, coming;
/* What of `coming` has arrived. */
static size_t arrived;
static Timer arrival;
/* Frames that came to an adapter without room for them, or switched off. */
static int64_t refused;

_Noreturn void give_up(const char *why)
{
    fprintf(stderr, "diapason clock: %s\n", why);
    fflush(NULL);
    _exit(1);
}

/* The main loop's side of settle(). */

static struct {
    bool wanted, counting;
    int quiet;
    sem_t done;
} settling;

static void main_loop_round(Notifier *self, void *data)
{
    Poll *poll = data;
    bool ready = false;

    (void)self;
    if (!settling.wanted) {
        return;
    }
    if (poll->state == POLL_FILL) {
        poll->timeout_ms = 0;
        settling.counting = true;
        return;
    }
    if (!settling.counting) {
        return;
    }
    settling.counting = false;
    for (unsigned int i = 0; i < poll->descriptors->count; i++) {
        ready = ready || poll->descriptors->all[i].ready != 0;
    }
    settling.quiet = ready ? 0 : settling.quiet + 1;
    if (settling.quiet == QUIET_ROUNDS) {
        settling.wanted = false;
        sem_post(&settling.done);
    }
}

static Notifier round_notifier = {.notify = main_loop_round};

/* Let the main loop take in all that the server has sent, and send all it has for the server. */
static void settle(void)
{
    struct timespec soon;
    bool done = false;

    settling.quiet = 0;
    settling.counting = false;
    settling.wanted = true;
    qemu_notify_event();
    qemu_mutex_unlock_iothread();
    /* The machine may be stopped meanwhile, and then waits for us. */
    while (!done && runstate_is_running()) {
        clock_gettime(CLOCK_REALTIME, &soon);
        soon.tv_sec += 1;
        done = sem_timedwait(&settling.done, &soon) == 0;
    }
    qemu_mutex_lock_iothread_impl(__FILE__, __LINE__);
    if (!done && settling.wanted) {
        settling.wanted = false;
    } else if (!done) {
        sem_wait(&settling.done);
    }
}

/* The wires. */

static unsigned char *append(Frames *frames, const Frame *frame)
{
    size_t whole = sizeof *frame + frame->length;
    unsigned char *place;

    if (frames->room - frames->used < whole) {
        frames->room = 2 * (frames->used + whole);
        frames->bytes = realloc(frames->bytes, frames->room);
        if (!frames->bytes) {
            give_up("no memory for frames");
        }
    }
    place = frames->bytes + frames->used;
    memcpy(place, frame, sizeof *frame);
    frames->used += whole;
    frames->count++;
    return place + sizeof *frame;
}

/* Instead of the netdev's function: the guest sends a frame. */
static ssize_t on_sent(void *wire, const unsigned char *bytes, size_t length)
{
    Frame frame = {.at = qemu_clock_get_ns(VIRTUAL_CLOCK), .length = length};

    for (int i = 0; i < wires_used; i++) {
        if (wires[i] == wire) {
            frame.wire = i;
            memcpy(append(&sent, &frame), bytes, length);
        }
    }
    return length;
}

/* The frames that are due arrive. */
static void on_arrival(void *nothing)
{
    int64_t now = qemu_clock_get_ns(VIRTUAL_CLOCK);
    Frame frame;

    (void)nothing;
    while (arrived < coming.used) {
        unsigned char *place = coming.bytes + arrived;

        memcpy(&frame, place, sizeof frame);
        if (frame.at > now) {
            timer_mod_ns(&arrival, frame.at);
            return;
        }
        arrived += sizeof frame + frame.length;
        if (qemu_can_send_packet(wires[frame.wire])) {
            qemu_send_packet(wires[frame.wire], place + sizeof frame, frame.length);
        } else {
            refused++;
        }
    }
}

/* Netdevs of one kind have one driver. */
static void take_wires(void)
{
    char name[16];

    for (int i = 0; i < wires_used; i++) {
        snprintf(name, sizeof name, "wire%d", i);
        wires[i] = qemu_find_netdev(name);
        if (!wires[i]) {
            give_up("an adapter has no wire");
        }
        wires[i]->driver->receive = on_sent;
        wires[i]->driver->receive_parts = NULL;
        wires[i]->driver->can_receive = NULL;
    }
}

/* The server's side. */

static void transfer(ssize_t (*move)(int, void *, size_t), void *bytes, size_t count)
{
    for (size_t done = 0; done < count;) {
        ssize_t moved = move(server, (char *)bytes + done, count - done);
        if (moved > 0) {
            done += moved;
        } else if (moved == 0 || errno != EINTR) {
            give_up("the device server is gone");
        }
    }
}

static ssize_t send_some(int to, void *bytes, size_t count)
{
    return send(to, bytes, count, MSG_NOSIGNAL);
}

static unsigned char ask(int64_t now)
{
    int64_t stop[3] = {now, idle, refused};
    unsigned char answer;

    transfer(send_some, stop, sizeof stop);
    transfer(send_some, &sent.count, sizeof sent.count);
    transfer(send_some, sent.bytes, sent.used);
    sent.used = sent.count = 0;
    transfer(read, &answer, sizeof answer);
    return answer;
}

/* Takes the frames that arrive until the next slice ends. All before have arrived. */
static void expect(void)
{
    uint32_t count;
    Frame frame;

    coming.used = coming.count = arrived = 0;
    transfer(read, &count, sizeof count);
    while (coming.count < count) {
        transfer(read, &frame, sizeof frame);
        if (frame.wire >= (uint32_t)wires_used) {
            give_up("the device server sent a frame to no adapter");
        }
        transfer(read, append(&coming, &frame), frame.length);
    }
    on_arrival(NULL);
}

static _Noreturn void end(void)
{
    unsigned char status;

    transfer(read, &status, sizeof status);
    fflush(NULL);
    _exit(status);
}

/* The guest stands still at `now` until the server lets it go on. No timer runs meanwhile, so that
 * whatever the server sends comes before whatever else is due. */
static void hold(int64_t now)
{
    check_cores();
    on_arrival(NULL);
    qemu_clock_enable(VIRTUAL_CLOCK, false);
    for (;;) {
        switch (ask(now)) {
        case GO:
            expect();
            qemu_clock_enable(VIRTUAL_CLOCK, true);
            return;
        case AGAIN:
            settle();
            if (!runstate_is_running()) {
                qemu_clock_enable(VIRTUAL_CLOCK, true);
                return;
            }
            break;
        case END:
            end();
        default:
            give_up("the device server answered nonsense");
        }
    }
}

/* The processors' thread. */

static bool processors_idle(void)
{
    void *cpu;

    for (int i = 0; (cpu = qemu_get_cpu(i)); i++) {
        if (!cpu_thread_is_idle(cpu)) {
            return false;
        }
    }
    return true;
}

/* A timer that does nothing: QEMU never counts beyond the next timer. */
static void at_boundary(void *nothing)
{
    (void)nothing;
}

/* Instead of icount_account_warp_timer(), which has nothing to do with sleep=off: the processors'
 * thread calls it before each turn, before it looks at timers, with QEMU's lock held. */
static void before_turn(void)
{
    int64_t now;

    end_cores_turn();
    now = qemu_clock_get_ns(VIRTUAL_CLOCK);
    if (!runstate_is_running()) {
        return;
    }
    if (!begun) {
        begun = true;
        main_loop_poll_add_notifier(&round_notifier);
        timer_init_full(&boundary, NULL, VIRTUAL_CLOCK, NANOSECONDS, 0, at_boundary, NULL);
        timer_init_full(&arrival, NULL, VIRTUAL_CLOCK, NANOSECONDS, 0, on_arrival, NULL);
        take_wires();
        take_interrupts();
        settle();
    } else if (processors_idle()) {
        skipping = true;
        icount_start_warp_timer();
        skipping = false;
        if (qemu_clock_deadline_ns_all(VIRTUAL_CLOCK, ALL_TIMERS) != 0) {
            give_up("idle time was not skipped: start QEMU with -icount shift=N,sleep=off");
        }
        idle += qemu_clock_get_ns(VIRTUAL_CLOCK) - now;
        now = qemu_clock_get_ns(VIRTUAL_CLOCK);
    }
    if (now >= next) {
        hold(now);
        next += slice;
        timer_mod_ns(&boundary, next);
    }
}

/* Instead of all_cpu_threads_idle(): while the machine runs, the main loop never sees idle
 * processors and so does not skip time, and the processors' thread never goes to sleep. */
static bool idle_as_seen(void)
{
    return skipping || (!runstate_is_running() && processors_idle());
}

/* Start-up. */

bool redirect(void *from, void *to)
{
    unsigned char jump[14] = {0xff, 0x25, 0, 0, 0, 0}; /* jmp *0(%rip) */
    uintptr_t page = sysconf(_SC_PAGESIZE), start = (uintptr_t)from & ~(page - 1);
    size_t length = (uintptr_t)from + sizeof jump - start;

    memcpy(jump + 6, &to, sizeof to);
    if (mprotect((void *)start, length, PROT_READ | PROT_WRITE | PROT_EXEC)) {
        return false;
    }
    memcpy(from, jump, sizeof jump);
    return mprotect((void *)start, length, PROT_READ | PROT_EXEC) == 0;
}

static bool take_over(void)
{
    return redirect((void *)all_cpu_threads_idle, (void *)idle_as_seen) &&
           redirect((void *)icount_account_warp_timer, (void *)before_turn);
}

static bool reach(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof address.sun_path) {
        return false;
    }
    strcpy(address.sun_path, path);
    server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return server >= 0 && connect(server, (struct sockaddr *)&address, sizeof address) == 0;
}

int qemu_plugin_install(uint64_t id, const Machine *machine, int argc, char **argv)
{
    const char *path = NULL;

    for (int i = 0; i < argc; i++) {
        if (!strncmp(argv[i], "socket=", 7)) {
            path = argv[i] + 7;
        } else if (!strncmp(argv[i], "slice=", 6)) {
            slice = strtoll(argv[i] + 6, NULL, 10);
        } else if (!strncmp(argv[i], "wires=", 6)) {
            wires_used = atoi(argv[i] + 6);
        }
    }
    if (!path || slice <= 0 || wires_used < 0 || wires_used > WIRES_MAX) {
        give_up("needs socket=PATH, slice=NANOSECONDS, and at most 16 wires=");
    }
    if (!machine->system_emulation || use_icount != INSTRUCTIONS_COUNTED) {
        give_up("start QEMU with -icount shift=N,sleep=off");
    }
    if (sem_init(&settling.done, 0, 0) || !reach(path)) {
        give_up("cannot reach the device server");
    }
    if (!take_over() || !take_cores(id, machine->smp_vcpus)) {
        give_up("QEMU's functions cannot be redirected");
    }
    return 0;
}
