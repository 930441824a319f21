/* Tuned pipes: a program asks the USB server for a pipe with a quality of service, and gets a bound
 * or a refusal that says what would fit.
 *
 * A pipe is named by its place: the number of its [[tpipe]] in the description. The first call that
 * opens the pipe of a place starts its thread, which calls the function for each message. The
 * thread takes one of the process's `threads`, runs on a VCPU of its own, measures, and reports once
 * a second. Later calls for the place have to name the same function and argument.
 *
 * The functions return DIA_OK, DIA_REFUSED, or one of these:
 *   DIA_TIMED_OUT  the server did not answer before the deadline
 *   DIA_ABSENT     there is no such place, or no pipe was asked for there
 *   DIA_BUSY       another thread is in a call for this place
 *   DIA_INVALID    a null pointer, another function than before, or an answer without sense
 * A place that the description does not grant ends the process. */
#ifndef DIAPASON_TPIPE_H
#define DIAPASON_TPIPE_H

#include <diapason.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TPIPE_PLACES 5
#define TPIPE_MESSAGE_BYTES 16 /* of each message in a buffer; 8 times as many bits */

/* What a pipe is asked for. */
typedef struct {
    uint64_t latency;   /* ns until the function is done with a message, or the message is through */
    uint64_t bits;      /* that come in so much time, TPIPE_MESSAGE_BYTES * 8 for each message */
    uint64_t buffer;    /* bytes, TPIPE_MESSAGE_BYTES for each message */
    uint64_t execution; /* ns that the function takes at most for a full buffer */
    uint64_t burst;     /* messages that come at once, at least 1 */
} tpipe_qos;

/* What was given. */
typedef struct {
    uint64_t budget; /* ns of the thread's VCPU in each period */
    uint64_t period; /* ns */
    uint64_t bound;  /* ns: no message takes longer */
    uint64_t taken;  /* ns until the server has taken a message to a device, else 0 */
    uint64_t slots;  /* messages that wait in the buffer at most */
} tpipe_terms;

/* A CAN frame. The flags are canMSG_RTR, canMSG_EXT, canMSG_STD; of one that came also
 * canMSGERR_SW_OVERRUN. */
typedef struct {
    uint32_t id;
    uint32_t flags;
    uint32_t length;
    uint8_t data[8];
} tpipe_frame;

/* A message that came. */
typedef struct {
    tpipe_frame frame;
    uint32_t outside; /* not 0: it came outside of what the pipe was asked for */
    uint64_t time;    /* ns, by the clock of the interface */
} tpipe_message;

/* What the thread of a pipe has counted since it began. */
typedef struct {
    uint64_t messages; /* read, or known to be through */
    uint64_t lost;
    uint64_t longest; /* ns that one took, beyond the fastest way */
} tpipe_counts;

/* Gets each message of a pipe from a channel. */
typedef void tpipe_reader(const tpipe_message *message, void *argument);
/* Fills in at most `room` frames of this period, and returns how many. A larger number, or a frame
 * that makes no sense, ends the process. */
typedef uint32_t tpipe_source(tpipe_frame *frames, uint32_t room, void *argument);
/* Gets each message, and returns whether `passed`, a copy of it that may be changed, goes on. */
typedef bool tpipe_passage(const tpipe_message *message, tpipe_frame *passed, void *argument);

/* Opens a pipe from a channel of the interface. terms may be null, here and below. */
int tpipe_read(uint32_t place, uint32_t from, tpipe_reader *function, void *argument,
               const tpipe_qos *qos, uint64_t deadline, tpipe_terms *terms);
/* Opens a pipe to a channel. */
int tpipe_write(uint32_t place, uint32_t to, tpipe_source *function, void *argument,
                const tpipe_qos *qos, uint64_t deadline, tpipe_terms *terms);
/* Opens a pipe from one channel to another, with one bound for the whole way. */
int tpipe_pass(uint32_t place, uint32_t from, uint32_t to, tpipe_passage *function,
               void *argument, const tpipe_qos *qos, uint64_t deadline, tpipe_terms *terms);
/* Asks for other terms. A refused pipe goes on as before. */
int tpipe_change(uint32_t place, const tpipe_qos *qos, uint64_t deadline, tpipe_terms *terms);
/* Closes a pipe. Messages in its buffer are still handled when no other thread wants to run. */
int tpipe_close(uint32_t place, uint64_t deadline);

/* Writes why the last request of this place was refused, and what would fit, cut to the room. */
int tpipe_refusal(uint32_t place, char *text, size_t room);

/* What would have fit, all else as asked for. */
#define TPIPE_FITS_NOTHING 0
#define TPIPE_FITS_LATENCY 1 /* this latency */
#define TPIPE_FITS_BUFFER 2  /* a buffer of so many bytes */
#define TPIPE_FITS_BITS 3    /* so many bits in the latency */
int tpipe_would_fit(uint32_t place, uint32_t *what, uint64_t *amount);

/* Where the channel of an open pipe is, as its thread knows it. */
#define TPIPE_ABSENT 0   /* there is no interface */
#define TPIPE_CLOSED 1   /* it takes no part in its bus */
#define TPIPE_CHANGING 2 /* it is being opened or closed */
#define TPIPE_OPEN 3
#define TPIPE_BUS_OFF 4
int tpipe_phase(uint32_t place);

int tpipe_report(uint32_t place, tpipe_counts *counts);

#ifdef __cplusplus
}
#endif

#endif
