/* Opens a tuned pipe to a channel, or one from a channel to another, is refused what cannot be,
 * changes it, and closes it. Arguments: the place (0 writes, 1 passes on), and the channels (that
 * of the far end times 16). */

#include <canlib.h>
#include <tpipe.h>

#define RATE 400
#define SLOTS 64
#define WRITES 0

static int checks, failed;

static void check(const char *what, bool good)
{
    checks++;
    if (!good) {
        failed++;
        dia_logf("wrong: %s", what);
    }
}

/* What the pipe's thread has done. */
static struct {
    _Atomic uint64_t came, went, wrong;
} done;

/* Fills in as many frames as there is room for, each with its number. */
static uint32_t numbered(tpipe_frame *frames, uint32_t room, void *argument)
{
    for (uint32_t at = 0; at < room; at++) {
        uint64_t number = done.went++;
        frames[at] = (tpipe_frame){ .id = 0x103, .flags = canMSG_STD, .length = 8 };
        memcpy(frames[at].data, &number, sizeof number);
        dia_work("tuned.message");
    }
    done.wrong += argument != &done;
    return room;
}

/* Passes on all but the first message, under another identifier. */
static bool renamed(const tpipe_message *message, tpipe_frame *passed, void *argument)
{
    done.wrong += argument != &done || passed->length != message->frame.length;
    passed->id = 0x203;
    passed->flags = canMSG_STD;
    dia_work("tuned.message");
    if (done.came++ == 0) {
        return false;
    }
    done.went++;
    return true;
}

static uint64_t deadline(void)
{
    return dia_now() + DIA_SECONDS(5);
}

static tpipe_qos within(uint64_t latency)
{
    tpipe_qos qos = {
        .latency = latency,
        .bits = RATE * latency / DIA_SECONDS(1) * TPIPE_MESSAGE_BYTES * 8,
        .buffer = SLOTS * TPIPE_MESSAGE_BYTES,
        .execution = SLOTS * DIA_US(3),
        .burst = 8,
    };
    return qos;
}

static int opens(uint32_t place, uint32_t channels, const tpipe_qos *qos, tpipe_terms *terms)
{
    if (place == WRITES) {
        return tpipe_write(place, channels, numbered, &done, qos, deadline(), terms);
    }
    return tpipe_pass(place, channels % 16, channels / 16, renamed, &done, qos, deadline(), terms);
}

static void mistakes(uint32_t place, const tpipe_qos *qos)
{
    check("no source", tpipe_write(place, 0, NULL, NULL, qos, 0, NULL) == DIA_INVALID);
    check("no channel", tpipe_write(place, 256, numbered, NULL, qos, 0, NULL) == DIA_INVALID);
    check("no passage", tpipe_pass(place, 0, 1, NULL, NULL, qos, 0, NULL) == DIA_INVALID);
    check("no way out", tpipe_pass(place, 0, 256, renamed, NULL, qos, 0, NULL) == DIA_INVALID);
    check("no place", tpipe_write(TPIPE_PLACES, 0, numbered, NULL, qos, 0, NULL) == DIA_ABSENT);
}

int main(void)
{
    uint32_t place = (uint32_t)dia_argument(0), channels = (uint32_t)dia_argument(1);
    const char *name = place == WRITES ? "written" : "passed";
    tpipe_terms terms;
    tpipe_counts counts;
    tpipe_qos usual = within(DIA_MS(100)), quick = within(DIA_MS(96)), never = within(DIA_MS(2));
    int opened;
    mistakes(place, &usual);
    /* Until the interface is there, every request is refused. */
    while ((opened = opens(place, channels, &usual, &terms)) == DIA_REFUSED) {
        dia_sleep(DIA_MS(100));
    }
    check("open", opened == DIA_OK && terms.bound <= usual.latency && terms.taken > 0);
    check("never", tpipe_change(place, &never, deadline(), NULL) == DIA_REFUSED);
    check("quick", tpipe_change(place, &quick, deadline(), &terms) == DIA_OK &&
                       terms.bound <= quick.latency);
    dia_sleep(DIA_MS(1500));
    check("phase", tpipe_phase(place) == TPIPE_OPEN);
    check("report", tpipe_report(place, &counts) == DIA_OK && counts.lost == 0 &&
                        counts.longest < terms.bound && counts.messages > RATE);
    check("close", tpipe_close(place, deadline()) == DIA_OK);
    dia_sleep(DIA_MS(300));
    uint64_t went = done.went;
    uint64_t all = place == WRITES ? went : done.came;
    /* What comes while the pipe is being closed goes no further than the function. */
    check("counts", tpipe_report(place, &counts) == DIA_OK && counts.lost == 0);
    check("every message",
          counts.messages == went || (place != WRITES && counts.messages < went));
    dia_sleep(DIA_MS(100));
    check("closed", done.went == went && done.wrong == 0);
    check("all but the first", place == WRITES || went + 1 == all);
    dia_logf("%s: %llu messages, %d of %d checks failed", name, (unsigned long long)went, failed,
             checks);
    return 0;
}
