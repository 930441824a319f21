/*
 * The only process of a Linux guest at one end of a bridge cable. It loads the unmodified drivers,
 * answers every message that comes, and sends messages of its own whose answers it compares byte
 * for byte.
 *
 * Its environment (the kernel's command line) says: bytes=N of a message, count=N messages to send.
 * A message is what lib/frame and user/apps/links/src/ping.rs say: a head of 12 bytes with number,
 * length, flag and CRC-32C, then its kind. All numbers are little-endian.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1514, HEAD = 12, KIND = 12, PATTERN = 16, PING = 1, PONG = 2, MILLISECONDS = 5 };

static const char *const MODULES[] = {
    "usb-common", "usbcore", "xhci-hcd", "xhci-pci", "mii", "usbnet", "plusb",
};

static int cable;
static size_t length;
static uint32_t numbered, sent, came, wrong, answered, damaged;
static bool waiting;

static _Noreturn void stop(const char *what)
{
    printf("guest: failed: %s: %m\n", what);
    for (;;) {
        pause();
    }
}

static uint32_t checksum(const unsigned char *bytes, size_t count, uint32_t crc)
{
    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0x82f63b78) : 0);
        }
    }
    return crc;
}

static uint32_t sum(const unsigned char *message)
{
    uint32_t crc = checksum(message, 8, UINT32_MAX);

    return ~checksum(message + HEAD, length - HEAD, crc);
}

static void seal_and_send(unsigned char *message)
{
    uint16_t behind = length - HEAD, first = numbered == 0;
    uint32_t crc;

    memcpy(message, &numbered, 4);
    memcpy(message + 4, &behind, 2);
    memcpy(message + 6, &first, 2);
    crc = sum(message);
    memcpy(message + 8, &crc, 4);
    numbered++;
    if (send(cable, message, length, 0) != (ssize_t)length) {
        stop("send");
    }
}

static unsigned char pattern(uint32_t number, size_t at)
{
    return number * 31 + at * 7 + (at >> 8);
}

static void ask(void)
{
    unsigned char message[MOST] = {0};
    uint32_t kind = PING;

    memcpy(message + KIND, &kind, 4);
    for (size_t at = PATTERN; at < length; at++) {
        message[at] = pattern(sent, at);
    }
    seal_and_send(message);
    sent++;
    waiting = true;
}

static void compare(const unsigned char *message)
{
    bool same = waiting;

    for (size_t at = PATTERN; at < length; at++) {
        same = same && message[at] == pattern(sent - 1, at);
    }
    came += same;
    wrong += !same;
    waiting = false;
}

static void take(unsigned char *message, size_t bytes)
{
    uint32_t crc, kind;

    memcpy(&crc, message + 8, 4);
    memcpy(&kind, message + KIND, 4);
    if (bytes != length || crc != sum(message)) {
        damaged++;
    } else if (kind == PING) {
        kind = PONG;
        memcpy(message + KIND, &kind, 4);
        seal_and_send(message);
        answered++;
    } else {
        compare(message);
    }
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

static void open_cable(void)
{
    struct timeval patience = {.tv_usec = MILLISECONDS * 1000};
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    struct ifreq request = {.ifr_name = "usb0", .ifr_flags = IFF_UP};

    while (!(address.sll_ifindex = if_nametoindex("usb0"))) {
        usleep(10000);
    }
    cable = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
    if (cable < 0 || bind(cable, (struct sockaddr *)&address, sizeof address) ||
        setsockopt(cable, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) ||
        ioctl(cable, SIOCSIFFLAGS, &request)) {
        stop("usb0");
    }
}

static void report(void)
{
    printf("guest: sent %u came %u wrong %u answered %u damaged %u\n", sent, came, wrong, answered,
           damaged);
}

int main(void)
{
    const char *bytes = getenv("bytes"), *count = getenv("count");
    uint32_t wanted = count ? strtoul(count, NULL, 10) : 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    length = bytes ? strtoul(bytes, NULL, 10) : 0;
    if (length <= PATTERN || length > MOST) {
        stop("bytes");
    }
    load_modules();
    open_cable();
    printf("guest: up\n");
    for (bool said = false;;) {
        unsigned char message[MOST + 1];
        struct sockaddr_ll from;
        socklen_t size = sizeof from;
        ssize_t got = recvfrom(cable, message, sizeof message, 0, (struct sockaddr *)&from, &size);
        if (got > 0 && from.sll_pkttype != PACKET_OUTGOING) {
            take(message, got);
        }
        if (!waiting && sent < wanted && (got < 0 || answered >= 5 * sent)) {
            ask();
        }
        if (!said && came + wrong == wanted) {
            report();
            said = true;
        }
    }
}
