/* The [[pipe]] from a sensor on USB. The library measures what passes it and reports once a second.
 *
 * One thread at a time uses the pipe; another one gets DIA_BUSY. Before the pipe is opened, the
 * functions return DIA_ABSENT. A pipe that the description does not grant ends the process. */
#ifndef DIAPASON_SENSOR_H
#define DIAPASON_SENSOR_H

#include <diapason.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DIA_PACKET_BYTES 512

/* Flags of a packet. */
#define DIA_PACKET_OUTSIDE 1     /* it came outside of the contract of the pipe */
#define DIA_PACKET_LOST_BEFORE 2 /* the sensor said that it had lost something */

typedef struct {
    uint64_t taken;   /* ns since boot when the server had it */
    uint64_t time;    /* ns by the clock of the sensor; `taken` without a `stamp` */
    uint32_t length;  /* bytes of the data */
    uint32_t session; /* times that the sensor was found before */
    uint32_t moved;   /* ns to the server beyond the fastest packet */
    uint32_t inexact; /* ns by which that may be too short */
    uint32_t flags;
    uint32_t spare;
    uint8_t data[DIA_PACKET_BYTES];
} dia_packet;

int dia_sensor_open(void);
/* Reads the oldest packet that came; waits for one until the deadline. None in time is
 * DIA_TIMED_OUT, or DIA_WOULD_BLOCK if the deadline is DIA_NO_WAIT. packet may be null. */
int dia_sensor_read(dia_packet *packet, uint64_t deadline);
/* Counts packets that are missing by what others say, so that the report of the pipe has them. */
int dia_sensor_missed(uint64_t packets);
/* Says how many packets found no room in the pipe. */
int dia_sensor_lost(uint64_t *packets);

#ifdef __cplusplus
}
#endif

#endif
