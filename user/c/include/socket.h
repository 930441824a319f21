/* UDP sockets that the description declares ([[socket]]). The library measures what passes a socket
 * and reports once a second, in whatever call the program is then.
 *
 * A socket is bound once and stays bound. One thread at a time uses it; another one gets DIA_BUSY.
 * The number of a socket that was never bound is DIA_ABSENT. */
#ifndef DIAPASON_SOCKET_H
#define DIAPASON_SOCKET_H

#include <diapason.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DIA_SOCKETS 16
#define DIA_DATAGRAM_BYTES 1472

typedef struct {
    uint32_t address;  /* the sender's: 0x0a000001 is 10.0.0.1 */
    uint32_t port;
    uint32_t length;   /* bytes of the data */
    uint32_t bypassed; /* not 0: it came in a short frame, past the layers */
    uint8_t data[DIA_DATAGRAM_BYTES];
} dia_datagram;

/* Returns the number of the socket of this name, or an error: DIA_ABSENT if the description
 * declares no such socket for this process, DIA_BUSY if it is bound already. */
int dia_socket_bind(const char *name);
/* Takes the oldest datagram; waits for one until the deadline. None in time is DIA_TIMED_OUT, or
 * DIA_WOULD_BLOCK if the deadline is DIA_NO_WAIT. */
int dia_socket_receive(int socket, dia_datagram *datagram, uint64_t deadline);
/* Sends a datagram to the peer of the socket: DIA_ABSENT if it has none, DIA_FULL if too many
 * frames wait to be sent, DIA_INVALID if it is longer than DIA_DATAGRAM_BYTES. */
int dia_socket_send(int socket, const void *data, size_t length);

#ifdef __cplusplus
}
#endif

#endif
