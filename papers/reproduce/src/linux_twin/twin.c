/*
 * The only process of the Linux twin: the concentrator as one would write it for Linux.
 *
 * Five threads at default priority read one CAN channel each; three under SCHED_DEADLINE, 1 ms in
 * every 7 ms, count units of work without end. All of them measure the same window of the
 * machine's time and report after it. Time is the processor's counter: with one instruction in a
 * nanosecond that is the device server's clock, and reading it costs one instruction.
 *
 * The kernel's command line says: rates=BIT/S,... as can.h wants them; begin=NS end=NS of the
 * window; tasks=1 for the counting threads; hrtick=1 for budgets that are enforced when they end.
 */
#include "can.h"

#include <linux/net_tstamp.h>
#include <linux/errqueue.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/utsname.h>

enum { TASKS = 3, SENDERS = 8, SECONDS = 64, TRIALS = 32 };

static const uint64_t SECOND = 1000000000, MILLISECOND = 1000000;
static const uint64_t BUDGET = 1000000, PERIOD = 7000000;
/* One count of a task, in instructions. */
static const uint64_t UNIT = 10000;
/* The tasks start so long before the window. */
static const uint64_t SETTLE = 700000000;

static uint64_t begin, end;

static inline uint64_t now(void)
{
    return __builtin_ia32_rdtsc();
}

/* The readers. */

/* The last frame of an identifier: senders number their frames. */
typedef struct {
    uint32_t id;
    uint64_t number;
} Frame;

/* The findings of a reader in the window. */
typedef struct {
    int socket;
    uint64_t received, missing, disordered;
    Frame first, last, senders[SENDERS];
    unsigned known;
    /* Drops of the socket, before the window and now. */
    uint32_t dropped_before, dropped;
    /* The longest time from one frame to the next, and when the last one came. */
    uint64_t wait, came;
    /* From the device's time of a frame to here: fastest, slowest; the device's time of the first. */
    uint64_t fastest, slowest, stamp;
    uint32_t seconds[SECONDS];
} Reader;

static Reader readers[CHANNELS];

static void check_number(Reader *r, Frame frame)
{
    for (unsigned i = 0; i < r->known; i++) {
        Frame *sender = &r->senders[i];
        if (sender->id == frame.id) {
            if (frame.number > sender->number) {
                r->missing += frame.number - sender->number - 1;
                sender->number = frame.number;
            } else {
                r->disordered++;
            }
            return;
        }
    }
    if (r->known < SENDERS) {
        r->senders[r->known++] = frame;
    }
}

static void take_in(Reader *r, const struct can_frame *raw, uint64_t stamp, uint64_t time)
{
    Frame frame = {.id = raw->can_id};
    uint64_t distance = time - stamp;

    memcpy(&frame.number, raw->data, sizeof frame.number);
    if (!r->received++) {
        r->first = frame;
        r->stamp = stamp;
        r->fastest = distance;
        r->came = time;
    }
    check_number(r, frame);
    r->last = frame;
    r->fastest = distance < r->fastest ? distance : r->fastest;
    r->slowest = distance > r->slowest ? distance : r->slowest;
    r->wait = time - r->came > r->wait ? time - r->came : r->wait;
    r->came = time;
    r->seconds[(time - begin) / SECOND % SECONDS]++;
}

/* Notes of the kernel beside a frame: the device's time of it, and drops of the socket so far. */
static uint64_t beside(struct msghdr *message, uint32_t *dropped)
{
    uint64_t stamp = 0;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_type == SO_TIMESTAMPING) {
            struct scm_timestamping times;
            memcpy(&times, CMSG_DATA(c), sizeof times);
            stamp = times.ts[2].tv_sec * SECOND + times.ts[2].tv_nsec;
        } else if (c->cmsg_type == SO_RXQ_OVFL) {
            memcpy(dropped, CMSG_DATA(c), sizeof *dropped);
        }
    }
    return stamp;
}

static void *read_channel(void *argument)
{
    Reader *r = argument;
    struct can_frame frame;
    char control[256];
    struct iovec part = {&frame, sizeof frame};

    for (;;) {
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
                                 .msg_controllen = sizeof control};
        uint32_t dropped = r->dropped;
        ssize_t length = recvmsg(r->socket, &message, 0);
        uint64_t time = now();
        if (time >= end) {
            return NULL;
        }
        if (length != sizeof frame) {
            continue;
        }
        uint64_t stamp = beside(&message, &dropped);
        if (time >= begin) {
            take_in(r, &frame, stamp, time);
        } else {
            r->dropped_before = dropped;
        }
        r->dropped = dropped;
    }
}

static void listen_well(int socket)
{
    int on = 1, stamps = SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE;
    struct timeval longest = {0, 100000};

    if (setsockopt(socket, SOL_SOCKET, SO_TIMESTAMPING, &stamps, sizeof stamps) ||
        setsockopt(socket, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof on) ||
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest)) {
        stop("socket options");
    }
}

/* The tasks. */

/* The argument of sched_setattr(); the C library has it under several names. */
typedef struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
} Attributes;

enum { UNDER_DEADLINE = 6 };

typedef struct {
    volatile uint64_t count;
    /* When it began, and its counts in the window. */
    uint64_t started, done;
} Task;

static Task tasks[TASKS];
static uint64_t loops, unit;

/* One unit: work, then counted. */
__attribute__((noinline)) static void work(volatile uint64_t *count, uint64_t left)
{
    __asm__ volatile("1: dec %0\n jnz 1b" : "+r"(left));
    *count = *count + 1;
}

static uint64_t fastest_unit(void)
{
    volatile uint64_t count = 0;
    uint64_t fastest = UINT64_MAX;

    for (int i = 0; i < TRIALS; i++) {
        uint64_t start = now();
        work(&count, loops);
        uint64_t took = now() - start;
        fastest = took < fastest ? took : fastest;
    }
    return fastest;
}

/* As many loops as make a unit: each is two instructions, and the rest of it is measured. */
static void measure_unit(void)
{
    loops = UNIT / 4;
    loops = (UNIT - (fastest_unit() - 2 * loops)) / 2;
    unit = fastest_unit();
}

static void under_deadline(void)
{
    Attributes wanted = {.size = sizeof wanted, .policy = UNDER_DEADLINE, .runtime = BUDGET,
                         .deadline = PERIOD, .period = PERIOD};

    if (syscall(SYS_sched_setattr, 0, &wanted, 0)) {
        stop("SCHED_DEADLINE");
    }
}

static void *count_units(void *argument)
{
    Task *task = argument;
    uint64_t until = begin + (end - begin) / PERIOD * PERIOD, before = 0;

    under_deadline();
    task->started = now();
    for (uint64_t time; (time = now()) < until;) {
        before = time < begin ? task->count : before;
        work(&task->count, loops);
    }
    task->done = task->count - before;
    return NULL;
}

/* The kernel's own counters. */

typedef struct {
    uint64_t overruns[CHANNELS], dropped[CHANNELS], backlog;
} Counters;

static uint64_t statistic(int channel, const char *name)
{
    char path[96];
    uint64_t value = 0;

    snprintf(path, sizeof path, "/sys/class/net/can%d/statistics/%s", channel, name);
    FILE *file = fopen(path, "re");
    if (!file || fscanf(file, "%" SCNu64, &value) != 1) {
        stop(path);
    }
    fclose(file);
    return value;
}

/* Frames that found the queue between driver and sockets full. */
static uint64_t backlog_drops(void)
{
    uint64_t dropped = 0;
    FILE *file = fopen("/proc/net/softnet_stat", "re");

    if (!file || fscanf(file, "%*x %" SCNx64, &dropped) != 1) {
        stop("softnet_stat");
    }
    fclose(file);
    return dropped;
}

static Counters read_counters(void)
{
    Counters c = {.backlog = backlog_drops()};

    for (int i = 0; i < CHANNELS; i++) {
        c.overruns[i] = statistic(i, "rx_over_errors");
        c.dropped[i] = statistic(i, "rx_dropped");
    }
    return c;
}

/* The main thread. */

static void mount_all(void)
{
    if (mkdir("/proc", 0755) || mount("none", "/proc", "proc", 0, NULL) ||
        mkdir("/sys", 0755) || mount("none", "/sys", "sysfs", 0, NULL) ||
        mkdir("/debug", 0755) || mount("none", "/debug", "debugfs", 0, NULL)) {
        stop("mount");
    }
}

static void say_kernel(void)
{
    static char features[4096];
    struct utsname name;

    if (number("hrtick")) {
        int file = open("/debug/sched/features", O_WRONLY | O_CLOEXEC);
        if (file < 0 || write(file, "HRTICK_DL", 9) != 9) {
            stop("HRTICK_DL");
        }
        close(file);
    }
    int file = open("/debug/sched/features", O_RDONLY | O_CLOEXEC);
    if (file < 0 || read(file, features, sizeof features - 1) <= 0 || uname(&name)) {
        stop("features");
    }
    close(file);
    printf("guest: kernel %s %s\n", name.release, name.version);
    const char *state = strstr(features, "NO_HRTICK_DL") ? "off"
                        : strstr(features, "HRTICK_DL")  ? "on" : "missing";
    printf("guest: hrtick %s\n", state);
}

/* Sleeps until a time of the processor's counter, or a little longer. */
static void rest_until(uint64_t time)
{
    for (uint64_t at; (at = now()) < time;) {
        rest((time - at) / MILLISECOND + 1);
    }
}

static void start(pthread_t *thread, void *(*body)(void *), void *argument)
{
    if (pthread_create(thread, NULL, body, argument)) {
        stop("thread");
    }
}

static void report_reader(int i, const Counters *before, const Counters *after)
{
    const Reader *r = &readers[i];

    printf("guest: can%d received %" PRIu64 " missing %" PRIu64 " disordered %" PRIu64
           " socket %u driver %" PRIu64 " overruns %" PRIu64 "\n", i, r->received, r->missing,
           r->disordered, r->dropped - r->dropped_before, after->dropped[i] - before->dropped[i],
           after->overruns[i] - before->overruns[i]);
    printf("guest: can%d from %u %" PRIu64 " to %u %" PRIu64 "\n", i, r->first.id & CAN_EFF_MASK,
           r->first.number, r->last.id & CAN_EFF_MASK, r->last.number);
    printf("guest: can%d wait %" PRIu64 " stamp %" PRIu64 " fastest %" PRIu64 " slowest %" PRIu64
           "\n", i, r->wait, r->stamp, r->fastest, r->slowest);
    printf("guest: can%d seconds", i);
    for (unsigned s = 0; s < (end - begin) / SECOND && s < SECONDS; s++) {
        printf(" %u", r->seconds[s]);
    }
    printf("\n");
}

static void report(const Counters *before, const Counters *after)
{
    printf("guest: backlog %" PRIu64 "\n", after->backlog - before->backlog);
    for (int i = 0; i < CHANNELS; i++) {
        report_reader(i, before, after);
    }
    for (int i = 0; i < TASKS && number("tasks"); i++) {
        printf("guest: task%d unit %" PRIu64 " done %" PRIu64 " started %" PRIu64 "\n", i,
               unit, tasks[i].done, tasks[i].started);
    }
    printf("guest: done\n");
}

int main(void)
{
    int sockets[CHANNELS];
    pthread_t reading[CHANNELS], counting[TASKS];

    setvbuf(stdout, NULL, _IOLBF, 0);
    begin = number("begin");
    end = number("end");
    mount_all();
    load_modules();
    say_kernel();
    measure_unit();
    open_channels(sockets, 0);
    for (int i = 0; i < CHANNELS; i++) {
        listen_well(sockets[i]);
        readers[i].socket = sockets[i];
        start(&reading[i], read_channel, &readers[i]);
    }
    printf("guest: ready at %" PRIu64 "\n", now());
    rest_until(begin - SETTLE);
    for (int i = 0; i < TASKS && number("tasks"); i++) {
        start(&counting[i], count_units, &tasks[i]);
    }
    rest_until(begin);
    Counters before = read_counters();
    rest_until(end);
    Counters after = read_counters();
    for (int i = 0; i < TASKS && number("tasks"); i++) {
        pthread_join(counting[i], NULL);
    }
    for (int i = 0; i < CHANNELS; i++) {
        pthread_join(reading[i], NULL);
    }
    report(&before, &after);
    for (;;) {
        pause();
    }
}
