/* The [[pipe]]s from and to the endpoint of any device on USB. The library measures what passes them
 * and reports once a second, so a program calls a function of its pipe at least that often.
 *
 * One thread at a time uses each pipe; another one gets DIA_BUSY. Before a pipe is opened, its
 * functions return DIA_ABSENT. A pipe that the description does not grant ends the process. */
#ifndef DIAPASON_USB_H
#define DIAPASON_USB_H

#include <sensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The pipe from an endpoint: packets as those of a sensor. */
int dia_usb_open(void);
/* Reads the oldest packet that came; waits for one until the deadline. None in time is
 * DIA_TIMED_OUT, or DIA_WOULD_BLOCK if the deadline is DIA_NO_WAIT. packet may be null. */
int dia_usb_read(dia_packet *packet, uint64_t deadline);
/* Counts packets that are missing by what others say, so that the report of the pipe has them. */
int dia_usb_missed(uint64_t packets);
/* Says how many packets found no room in the pipe. */
int dia_usb_lost(uint64_t *packets);

/* What became of a packet to an endpoint. */
#define DIA_PACKET_DONE 0     /* the device has it */
#define DIA_PACKET_FAILED 1   /* the device did not take it, or not all of it */
#define DIA_PACKET_GONE 2     /* there is no such device */
#define DIA_PACKET_NONSENSE 3 /* it is longer than a packet of the endpoint */

typedef struct {
    uint64_t written; /* ns since boot when the program wrote it */
    uint64_t taken;   /* ns since boot when the server took it in hand */
    uint64_t ended;   /* ns since boot when the server knew of its end */
    uint32_t status;  /* DIA_PACKET_DONE, FAILED, GONE or NONSENSE */
    uint32_t outside; /* 1 if it came outside of the contract of the pipe */
} dia_packet_answer;

/* The pipe to an endpoint: one packet at a time goes to the device, and each is answered. */
int dia_usb_open_to(void);
/* Writes a packet and does not wait. It takes in the answers to the packets before: a program that
 * wants them calls dia_usb_answer first. DIA_FULL: as many packets wait as the pipe holds.
 * DIA_INVALID: the packet is empty, or has more than DIA_PACKET_BYTES. */
int dia_usb_write(const void *packet, size_t length);
/* Takes the next answer; waits for it until the deadline. None in time is DIA_TIMED_OUT, or
 * DIA_WOULD_BLOCK if the deadline is DIA_NO_WAIT. answer may be null. */
int dia_usb_answer(dia_packet_answer *answer, uint64_t deadline);

#ifdef __cplusplus
}
#endif

#endif
