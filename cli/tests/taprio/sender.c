/*
 * The only process of a Linux guest at an Ethernet wire: it loads the unmodified drivers, makes a
 * virtual network with two queues on the adapter, gives it a time-aware shaper, and sends frames of
 * two priorities, all the time at another place of the cycle.
 *
 * Its environment (the kernel's command line) says: count=N frames of each priority, gates=1 for
 * the shaper.
 */
#include "guest.h"
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <x86intrin.h>

/* Frames are sent every 517 us: nearly every place of a cycle of 125 us has its turn. */
enum { PERIOD = 517000, SECOND = 1000000000, LENGTH = 100, TYPE = 0x88b5 };

static const char *const MODULES[] = {
    "e1000e", "llc", "stp", "garp", "mrp", "8021q", "sch_taprio",
};
static const unsigned char TO[6] = {2, 0, 0, 0, 0, 9};

/* What a frame says. */
struct said {
    uint32_t number, priority;
    int64_t sent, counter;
};

/* Runs a command of words with spaces between them. */
static void run(const char *line)
{
    char words[512], *each[64];
    int count = 0, status;
    pid_t child;

    snprintf(words, sizeof words, "%s", line);
    for (char *word = strtok(words, " "); word && count < 63; word = strtok(NULL, " ")) {
        each[count++] = word;
    }
    each[count] = NULL;
    child = fork();
    if (child == 0) {
        execv(each[0], each);
        _exit(1);
    }
    if (waitpid(child, &status, 0) != child || status != 0) {
        stop(line);
    }
}

static int64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_TAI, &time);
    return time.tv_sec * (int64_t)SECOND + time.tv_nsec;
}

static int open_socket(int priority)
{
    int to = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (to < 0 || setsockopt(to, SOL_SOCKET, SO_PRIORITY, &priority, sizeof priority)) {
        stop("open a socket");
    }
    return to;
}

static void send_all(uint32_t count)
{
    int sockets[2] = {open_socket(0), open_socket(1)};
    struct sockaddr_ll to = {
        .sll_family = AF_PACKET, .sll_protocol = htons(TYPE), .sll_halen = sizeof TO,
    };
    int64_t next = now() + SECOND;
    char frame[LENGTH] = {0};

    to.sll_ifindex = if_nametoindex("v5");
    memcpy(to.sll_addr, TO, sizeof TO);
    for (uint32_t number = 0; number < count; number++, next += PERIOD) {
        struct timespec until = {next / SECOND, next % SECOND};

        while (clock_nanosleep(CLOCK_TAI, TIMER_ABSTIME, &until, NULL)) {
        }
        for (uint32_t priority = 0; priority < 2; priority++) {
            struct said said = {number, priority, now(), __rdtsc()};

            memcpy(frame, &said, sizeof said);
            if (sendto(sockets[priority], frame, LENGTH, 0, (void *)&to, sizeof to) != LENGTH) {
                stop("send");
            }
        }
    }
}

int main(void)
{
    const char *count = getenv("count"), *gates = getenv("gates");
    struct sched_param urgent = {.sched_priority = 50};

    setvbuf(stdout, NULL, _IONBF, 0);
    for (size_t i = 0; i < sizeof MODULES / sizeof *MODULES; i++) {
        load_module(MODULES[i]);
    }
    if (mount("proc", "/proc", "proc", 0, NULL)) {
        stop("mount /proc");
    }
    open_adapter("eth0");
    run("/ip link add link eth0 name v5 numtxqueues 2 numrxqueues 1 type vlan id 5 "
        "egress-qos-map 0:0 1:3");
    open_adapter("v5");
    if (gates && gates[0] == '1') {
        run("/tc qdisc replace dev v5 parent root handle 100 taprio num_tc 2 "
            "map 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 queues 1@0 1@1 base-time 1000000 "
            "sched-entry S 01 62000 sched-entry S 02 63000 clockid CLOCK_TAI flags 0");
    }
    if (sched_setscheduler(0, SCHED_FIFO, &urgent)) {
        stop("become urgent");
    }
    send_all(count ? strtoul(count, NULL, 10) : 0);
    printf("guest: all is sent\n");
    for (;;) {
        pause();
    }
}
