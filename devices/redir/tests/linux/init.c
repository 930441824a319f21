/*
 * The only process of the Linux guest: loads the unmodified drivers, brings up the CAN channels,
 * sends and receives for a while, and reports on the console.
 *
 * Its environment (the kernel's command line) says: rates=BIT/S,... as can.h wants them; send=N
 * frames on each channel, one every millisecond; receive=N frames at which a channel is done. With
 * data_rate=BIT/S the frames that it sends are of CAN FD.
 */
#include "can.h"

enum { SENT_ID = 0x7f0, SENT_BYTES = 12 };

typedef struct {
    int socket;
    unsigned received, sent;
    uint64_t hash;
    struct canfd_frame first;
} Channel;

static Channel channels[CHANNELS];

/* FNV-1a over identifier, length, flags and data. */
static void take_in(Channel *c, const struct canfd_frame *frame, size_t size)
{
    const unsigned char *bytes = (const void *)frame;

    for (size_t i = 0; i < size; i++) {
        c->hash = (c->hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    if (!c->received++) {
        c->first = *frame;
    }
}

static void receive(Channel *c, unsigned wanted)
{
    struct canfd_frame frame;
    ssize_t size;

    while (c->received < wanted &&
           (size = read(c->socket, &frame, sizeof frame)) >= (ssize_t)CAN_MTU) {
        take_in(c, &frame, size);
    }
}

static void transmit(Channel *c)
{
    int fd = number("data_rate") != 0;
    struct canfd_frame frame = {.can_id = SENT_ID, .len = fd ? SENT_BYTES : 4};
    ssize_t size = fd ? CANFD_MTU : CAN_MTU;

    frame.flags = fd ? CANFD_BRS : 0;
    memcpy(frame.data, &c->sent, 4);
    if (write(c->socket, &frame, size) == size) {
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

static uint64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * UINT64_C(1000000000) + time.tv_nsec;
}

int main(void)
{
    int sockets[CHANNELS];

    setvbuf(stdout, NULL, _IOLBF, 0);
    load_modules();
    open_channels(sockets, SOCK_NONBLOCK);
    for (int i = 0; i < CHANNELS; i++) {
        channels[i] = (Channel){.socket = sockets[i], .hash = UINT64_C(0xcbf29ce484222325)};
    }
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
