/*
 * What every program here does first as the only process of a Linux guest: it loads the unmodified
 * drivers, waits for the CAN channels and brings them up.
 *
 * Its environment is the kernel's command line: rates=BIT/S,... has one for each channel,
 * driver=NAME is the driver of the interface, and data_rate=BIT/S turns on CAN FD on all channels.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/can.h>
#include <linux/can/netlink.h>
#include <linux/can/raw.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "guest.h"

enum { CHANNELS = 5, RECEIVE_BUFFER = 4 << 20 };

static const char *const MODULES[] = {
    "usb-common", "usbcore", "xhci-hcd", "xhci-pci", "can", "can-raw", "can-dev",
};

static void rest(long milliseconds)
{
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* A number of the environment; 0 if it is not there. */
static uint64_t number(const char *name)
{
    const char *value = getenv(name);

    return value ? strtoull(value, NULL, 10) : 0;
}

static void load_modules(void)
{
    const char *driver = getenv("driver");

    for (size_t i = 0; i < sizeof MODULES / sizeof *MODULES; i++) {
        load_module(MODULES[i]);
    }
    load_module(driver ? driver : "kvaser_usb");
}

/* The number that the kernel gave to a channel, once there is one. */
static unsigned wait_for_channel(int channel)
{
    char name[IFNAMSIZ];
    unsigned index;

    snprintf(name, sizeof name, "can%d", channel);
    while (!(index = if_nametoindex(name))) {
        rest(10);
    }
    return index;
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

/* Does what `ip link set canN up type can bitrate R [dbitrate D fd on]` does. */
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
    struct can_bittiming timing = {.bitrate = rate}, fast = {.bitrate = number("data_rate")};
    struct can_ctrlmode mode = {.mask = CAN_CTRLMODE_FD, .flags = CAN_CTRLMODE_FD};
    struct {
        struct nlmsghdr header;
        struct nlmsgerr error;
        char more[1024];
    } answer;
    struct rtattr *link = attribute(&request.header, IFLA_LINKINFO, "", 0);

    attribute(&request.header, IFLA_INFO_KIND, "can", 4);
    struct rtattr *data = attribute(&request.header, IFLA_INFO_DATA, "", 0);
    attribute(&request.header, IFLA_CAN_BITTIMING, &timing, sizeof timing);
    if (fast.bitrate) {
        attribute(&request.header, IFLA_CAN_CTRLMODE, &mode, sizeof mode);
        attribute(&request.header, IFLA_CAN_DATA_BITTIMING, &fast, sizeof fast);
    }
    close_attribute(&request.header, data);
    close_attribute(&request.header, link);
    if (send(netlink, &request, request.header.nlmsg_len, 0) < 0 ||
        recv(netlink, &answer, sizeof answer, 0) < 0 || answer.error.error) {
        stop("netlink");
    }
}

/* A socket that receives from one channel, which is up from now on. */
static int open_channel(int netlink, unsigned index, unsigned rate, int flags)
{
    struct sockaddr_can address = {.can_family = AF_CAN, .can_ifindex = index};
    int buffer = RECEIVE_BUFFER, raw = socket(PF_CAN, SOCK_RAW | flags, CAN_RAW);
    int fd = number("data_rate") != 0;

    if (raw < 0 || setsockopt(raw, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer) ||
        setsockopt(raw, SOL_CAN_RAW, CAN_RAW_FD_FRAMES, &fd, sizeof fd) ||
        bind(raw, (struct sockaddr *)&address, sizeof address)) {
        stop("socket");
    }
    bring_up(netlink, index, rate);
    return raw;
}

/* All of them, with the rates of the environment. */
static void open_channels(int sockets[CHANNELS], int flags)
{
    unsigned indices[CHANNELS];
    char *rates = getenv("rates");
    int netlink = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);

    if (!rates) {
        stop("no rates");
    }
    for (int i = 0; i < CHANNELS; i++) {
        indices[i] = wait_for_channel(i);
    }
    for (int i = 0; i < CHANNELS; i++) {
        sockets[i] = open_channel(netlink, indices[i], strtoul(rates, &rates, 10), flags);
        rates += *rates == ',';
    }
}
