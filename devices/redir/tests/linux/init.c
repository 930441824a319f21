/*
 * The only process of the Linux guest: loads the unmodified drivers, brings up the CAN channels,
 * sends and receives for a while, and reports on the console.
 *
 * Its environment (the kernel's command line) says: rates=BIT/S,... one for each channel; send=N
 * frames on each channel, one every millisecond; receive=N frames at which a channel is done.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/can.h>
#include <linux/can/netlink.h>
#include <linux/can/raw.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { CHANNELS = 5, RECEIVE_BUFFER = 4 << 20, SENT_ID = 0x7f0 };

static const char *const MODULES[] = {
    "usb-common", "usbcore", "xhci-hcd", "xhci-pci", "can", "can-raw", "can-dev", "kvaser_usb",
};

typedef struct {
    int socket;
    unsigned index;
    unsigned received, sent;
    uint64_t hash;
    struct can_frame first;
} Channel;

static Channel channels[CHANNELS];

static void stop(const char *what)
{
    printf("guest: failed: %s: %m\n", what);
    for (;;) {
        pause();
    }
}

static void rest(long milliseconds)
{
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static void load_modules(void)
{
    char path[64];

    for (size_t i = 0; i < sizeof MODULES / sizeof *MODULES; i++) {
        snprintf(path, sizeof path, "/%s.ko", MODULES[i]);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0 || syscall(SYS_finit_module, file, "", 0)) {
            stop(MODULES[i]);
        }
        close(file);
    }
}

static void wait_for_channels(void)
{
    char name[IFNAMSIZ];

    for (int i = 0; i < CHANNELS; i++) {
        snprintf(name, sizeof name, "can%d", i);
        while (!(channels[i].index = if_nametoindex(name))) {
            rest(10);
        }
    }
}

/* An attribute at the end of a message; what follows until close_attribute() is inside it. */
static struct rtattr *attribute(struct nlmsghdr *message, int type, const void *data, size_t size)
{
    struct rtattr *at = (void *)((char *)message + NLMSG_ALIGN(message->nlmsg_len));

    at->rta_type = type;
    at->rta_len = RTA_LENGTH(size);
    memcpy(RTA_DATA(at), data, size);
    message->nlmsg_len = NLMSG_ALIGN(message->nlmsg_len) + RTA_SPACE(size);
    return at;
}

static void close_attribute(struct nlmsghdr *message, struct rtattr *at)
{
    at->rta_len = (char *)message + message->nlmsg_len - (char *)at;
}

/* What `ip link set canN up type can bitrate R` does. */
static void bring_up(int netlink, unsigned index, unsigned rate)
{
    struct {
        struct nlmsghdr header;
        struct ifinfomsg info;
        char attributes[256];
    } request = {
        .header = {.nlmsg_len = NLMSG_LENGTH(sizeof request.info),
                   .nlmsg_type = RTM_NEWLINK,
                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
        .info = {.ifi_index = index, .ifi_flags = IFF_UP, .ifi_change = IFF_UP},
    };
    struct can_bittiming timing = {.bitrate = rate};
    struct {
        struct nlmsghdr header;
        struct nlmsgerr error;
        char more[1024];
    } answer;
    struct rtattr *link = attribute(&request.header, IFLA_LINKINFO, "", 0);

    attribute(&request.header, IFLA_INFO_KIND, "can", 4);
    struct rtattr *data = attribute(&request.header, IFLA_INFO_DATA, "", 0);
    attribute(&request.header, IFLA_CAN_BITTIMING, &timing, sizeof timing);
    close_attribute(&request.header, data);
    close_attribute(&request.header, link);
    if (send(netlink, &request, request.header.nlmsg_len, 0) < 0 ||
        recv(netlink, &answer, sizeof answer, 0) < 0 || answer.error.error) {
        stop("netlink");
    }
}

static void open_channels(void)
{
    char *rates = getenv("rates");
    int netlink = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    int buffer = RECEIVE_BUFFER;

    for (int i = 0; i < CHANNELS; i++) {
        Channel *c = &channels[i];
        struct sockaddr_can address = {.can_family = AF_CAN, .can_ifindex = c->index};
        c->hash = UINT64_C(0xcbf29ce484222325);
        c->socket = socket(PF_CAN, SOCK_RAW | SOCK_NONBLOCK, CAN_RAW);
        if (c->socket < 0 || !rates ||
            setsockopt(c->socket, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer) ||
            bind(c->socket, (struct sockaddr *)&address, sizeof address)) {
            stop("socket");
        }
        bring_up(netlink, c->index, strtoul(rates, &rates, 10));
        rates += *rates == ',';
    }
}

/* FNV-1a over identifier, length and data. */
static void take_in(Channel *c, const struct can_frame *frame)
{
    const unsigned char *bytes = (const void *)frame;

    for (size_t i = 0; i < sizeof *frame; i++) {
        c->hash = (c->hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    if (!c->received++) {
        c->first = *frame;
    }
}

static void receive(Channel *c, unsigned wanted)
{
    struct can_frame frame;

    while (c->received < wanted && read(c->socket, &frame, sizeof frame) == sizeof frame) {
        take_in(c, &frame);
    }
}

static void transmit(Channel *c)
{
    struct can_frame frame = {.can_id = SENT_ID, .len = 4};

    memcpy(frame.data, &c->sent, 4);
    if (write(c->socket, &frame, sizeof frame) == sizeof frame) {
        c->sent++;
    }
}

static void exchange(unsigned send, unsigned wanted)
{
    for (bool busy = true; busy;) {
        rest(1);
        busy = false;
        for (int i = 0; i < CHANNELS; i++) {
            Channel *c = &channels[i];
            receive(c, wanted);
            if (c->sent < send) {
                transmit(c);
            }
            busy = busy || c->sent < send || c->received < wanted;
        }
    }
}

static unsigned number(const char *name)
{
    const char *value = getenv(name);

    return value ? strtoul(value, NULL, 10) : 0;
}

static uint64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * UINT64_C(1000000000) + time.tv_nsec;
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    load_modules();
    wait_for_channels();
    open_channels();
    printf("guest: up at %" PRIu64 "\n", now());
    exchange(number("send"), number("receive"));
    for (int i = 0; i < CHANNELS; i++) {
        Channel *c = &channels[i];
        uint64_t data;
        memcpy(&data, c->first.data, sizeof data);
        printf("guest: can%d received %u from %x %" PRIx64 " hash %" PRIx64 " sent %u\n", i,
               c->received, c->first.can_id, data, c->hash, c->sent);
    }
    printf("guest: done at %" PRIu64 "\n", now());
    for (;;) {
        pause();
    }
}
