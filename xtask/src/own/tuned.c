/* Opens a tuned pipe, is refused what cannot be, changes it, counts what comes, and closes it. */

#include <canlib.h>
#include <tpipe.h>

#define PLACE 0
#define CHANNEL 4
#define RATE 3200
#define SLOTS 128

static int checks, failed;

static void check(const char *what, bool good)
{
    checks++;
    if (!good) {
        failed++;
        dia_logf("wrong: %s", what);
    }
}

/* The function of the pipe: it runs on the pipe's thread. */
static void count(const tpipe_message *message, void *argument)
{
    _Atomic uint64_t *frames = argument;
    if (message->frame.length == 8) {
        (*frames)++;
    }
    dia_work("tuned.message");
}

static uint64_t deadline(void)
{
    return dia_now() + DIA_SECONDS(5);
}

static tpipe_qos within(uint64_t latency)
{
    uint64_t messages = RATE * latency / DIA_SECONDS(1);
    tpipe_qos qos = {
        .latency = latency,
        .bits = messages * TPIPE_MESSAGE_BYTES * 8,
        .buffer = SLOTS * TPIPE_MESSAGE_BYTES,
        .execution = SLOTS * DIA_US(3),
        .burst = 8,
    };
    return qos;
}

/* Calls that make no sense return errors. */
static void mistakes(const tpipe_qos *qos)
{
    char text[8];
    check("no place", tpipe_read(TPIPE_PLACES, 0, count, NULL, qos, 0, NULL) == DIA_ABSENT);
    check("no function", tpipe_read(PLACE, 0, NULL, NULL, qos, 0, NULL) == DIA_INVALID);
    check("no terms", tpipe_read(PLACE, 0, count, NULL, NULL, 0, NULL) == DIA_INVALID);
    check("no channel", tpipe_read(PLACE, 256, count, NULL, qos, 0, NULL) == DIA_INVALID);
    check("not open", tpipe_change(PLACE, qos, 0, NULL) == DIA_ABSENT);
    check("not closed", tpipe_close(PLACE, 0) == DIA_ABSENT);
    check("not refused", tpipe_refusal(PLACE, text, sizeof text) == DIA_ABSENT);
    check("no text", tpipe_refusal(PLACE, NULL, 8) == DIA_INVALID);
    check("no phase", tpipe_phase(TPIPE_PLACES) == DIA_ABSENT);
}

int main(void)
{
    static _Atomic uint64_t frames;
    char why[DIA_LINE_BYTES];
    tpipe_terms terms;
    tpipe_counts counts;
    uint32_t what = TPIPE_FITS_NOTHING;
    uint64_t fits = 0;
    tpipe_qos usual = within(DIA_MS(50)), quick = within(DIA_MS(35)), never = within(DIA_MS(2));
    void *argument = (void *)&frames;
    int opened;
    mistakes(&usual);
    /* Until the interface is there, every request is refused. */
    while ((opened = tpipe_read(PLACE, CHANNEL, count, argument, &usual, deadline(), &terms)) ==
           DIA_REFUSED) {
        dia_sleep(DIA_MS(200));
    }
    check("open", opened == DIA_OK && terms.bound <= usual.latency && terms.period > 0);
    check("open already", tpipe_read(PLACE, CHANNEL, count, argument, &usual, deadline(), NULL) ==
                              DIA_REFUSED);
    check("another argument",
          tpipe_read(PLACE, CHANNEL, count, NULL, &usual, deadline(), NULL) == DIA_INVALID);
    check("never", tpipe_change(PLACE, &never, deadline(), NULL) == DIA_REFUSED);
    check("why", tpipe_refusal(PLACE, why, sizeof why) == DIA_OK);
    dia_logf("tuned: %s", why);
    check("fits", tpipe_would_fit(PLACE, &what, &fits) == DIA_OK && what == TPIPE_FITS_LATENCY &&
                      fits > never.latency);
    check("quick", tpipe_change(PLACE, &quick, deadline(), &terms) == DIA_OK &&
                       terms.bound <= quick.latency);
    dia_sleep(DIA_MS(1500));
    check("phase", tpipe_phase(PLACE) == TPIPE_OPEN);
    check("report", tpipe_report(PLACE, &counts) == DIA_OK && counts.lost == 0 &&
                        counts.longest < terms.bound && counts.messages > RATE);
    check("close", tpipe_close(PLACE, deadline()) == DIA_OK);
    dia_sleep(DIA_MS(50));
    uint64_t until = frames;
    check("every message", tpipe_report(PLACE, &counts) == DIA_OK && until == counts.messages);
    dia_sleep(DIA_MS(100));
    check("closed", frames == until);
    dia_logf("tuned: %d of %d checks failed", failed, checks);
    return 0;
}
