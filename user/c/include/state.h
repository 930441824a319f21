/* State messages: the newest value of one process for others to read, without waiting.
 *
 * `diapason build` writes generated/states.h with a type and functions for each [[state]] of the
 * description. Those call the functions below, so that a program has no sizes of its own. */
#ifndef DIAPASON_STATE_H
#define DIAPASON_STATE_H

#include <diapason.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The writer came back while the value was read: it writes more often than the description says,
 * or the reader did not get its budget. The run has an alarm. */
#define DIA_OVERTAKEN (-34)

/* One end of a state message. A thread has it for itself. */
typedef struct {
    uint64_t *cell;     /* two counts, then the slots; null before it is attached */
    uint64_t overtaken; /* reads that were overtaken up to now */
    uint64_t touched;   /* most writes that touched one of them */
    uint64_t period;    /* shortest time between two writes, in ns; 0 of an end that reads */
    uint64_t last;      /* the time of the last write */
    uint64_t ahead;     /* how far the writes are ahead of one in each period, in ns */
    uint64_t early;     /* writes that came too soon up to now */
    uint32_t number;    /* of the message in the description */
    uint32_t slots;
    uint32_t bytes;     /* of a value */
} dia_state;

/* Attaches one end of the message, for the life of the process. */
int dia_state_attach(const char *name, uint32_t number, uint32_t slots, uint32_t bytes,
                     uint64_t period, dia_state *state);
/* Publishes a value. One that comes too soon is published, too, and the run has an alarm. */
int dia_state_write(dia_state *state, const void *value);
/* Copies the newest value. Before the first write all its bytes are zero. */
int dia_state_read(dia_state *state, void *value);
/* Returns the number of writes up to now: 0 before the first one. */
uint64_t dia_state_writes(const dia_state *state);
/* Reports overtaken reads and early writes; dia_state_read and dia_state_write call it. */
void dia_state_report(uint32_t number, uint64_t overtaken, uint64_t writes, uint64_t early);

#ifdef __cplusplus
}
#endif

#endif
