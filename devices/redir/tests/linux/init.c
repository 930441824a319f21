/*
 * The only process of the Linux guest: loads the unmodified drivers, brings up the CAN channels,
 * sends and receives for a while, and reports on the console.
 *
 * Its environment (the kernel's command line) says: rates=BIT/S,... as can.h wants them; send=N
 * frames on each channel, one every millisecond; receive=N frames at which a channel is done.
 */
#include "can.h"

enum { SENT_ID = 0x7f0 };

typedef struct {
    int socket;
    unsigned received, sent;
    uint64_t hash;
    struct can_frame first;
} Channel;

static Channel channels[CHANNELS];

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
