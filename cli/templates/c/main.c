/* Reads a CAN channel and says once a second what came. */

#include <canlib.h>
#include <diapason.h>

/* The channel that is read: can0. */
#define CHANNEL 0
/* Frames of the simulated sender are numbered: their eight bytes count up. */
#define NUMBER_BYTES 8

static uint64_t frames, missing;

/* Returns the number in a frame, the lowest byte first. */
static uint64_t number_in(const uint8_t data[NUMBER_BYTES])
{
    uint64_t number = 0;
    for (int i = NUMBER_BYTES - 1; i >= 0; i--) {
        number = number << 8 | data[i];
    }
    return number;
}

/* Counts a frame. Returns how many frames are missing before it. */
static uint64_t count(const uint8_t data[NUMBER_BYTES])
{
    static uint64_t expected;
    uint64_t number = number_in(data);
    uint64_t lost = frames++ > 0 && number > expected ? number - expected : 0;
    expected = number + 1;
    missing += lost;
    return lost;
}

int main(void)
{
    CanHandle channel = canOpenChannel(CHANNEL, canOPEN_NO_INIT_ACCESS);
    if (channel < 0) {
        dia_logf("can%d: not opened: %d", CHANNEL, channel);
        return 1;
    }
    uint64_t say_at = dia_now() + DIA_SECONDS(1);
    for (;;) {
        uint8_t data[8];
        unsigned int length;
        uint64_t now = dia_now();
        unsigned long wait = now < say_at ? (say_at - now) / DIA_MS(1) + 1 : 0;
        canStatus status = canReadWait(channel, NULL, data, &length, NULL, NULL, wait);
        if (status == canOK && length >= NUMBER_BYTES) {
            dia_can_missed(channel, count(data));
            /* The simulator takes the time of this from [[work]]; a machine has taken it. */
            dia_work("reader.frame");
        } else if (status != canOK && status != canERR_NOMSG) {
            char text[64];
            canGetErrorText(status, text, sizeof text);
            dia_logf("can%d: not read: %s", CHANNEL, text);
            return 1;
        }
        if (dia_now() >= say_at) {
            dia_logf("%llu frames, %llu missing", (unsigned long long)frames,
                     (unsigned long long)missing);
            say_at += DIA_SECONDS(1);
        }
    }
}
