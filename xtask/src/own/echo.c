/* Sends every datagram back to its peer, and says once a second how many came. */

#include <diapason.h>
#include <socket.h>

static int wrong(const char *what, int code)
{
    dia_logf("wrong: %s: %d", what, code);
    return 1;
}

/* Calls that make no sense are errors. Returns how many were not. */
static int nonsense(int socket, dia_datagram *datagram)
{
    static const uint8_t data[DIA_DATAGRAM_BYTES + 1];
    int unnoticed = 0;
    unnoticed += dia_socket_bind(NULL) != DIA_INVALID;
    unnoticed += dia_socket_bind("nobodys") != DIA_ABSENT;
    unnoticed += dia_socket_bind("drive") != DIA_BUSY;
    unnoticed += dia_socket_receive(socket, NULL, DIA_NO_WAIT) != DIA_INVALID;
    unnoticed += dia_socket_receive(socket + 1, datagram, DIA_NO_WAIT) != DIA_ABSENT;
    unnoticed += dia_socket_receive(-1, datagram, DIA_NO_WAIT) != DIA_ABSENT;
    unnoticed += dia_socket_receive(DIA_SOCKETS, datagram, DIA_NO_WAIT) != DIA_ABSENT;
    unnoticed += dia_socket_receive(socket, datagram, DIA_NO_WAIT) != DIA_WOULD_BLOCK;
    unnoticed += dia_socket_send(socket, NULL, 8) != DIA_INVALID;
    unnoticed += dia_socket_send(socket, data, sizeof data) != DIA_INVALID;
    unnoticed += dia_socket_send(socket + 1, data, 8) != DIA_ABSENT;
    return unnoticed;
}

int main(void)
{
    static dia_datagram datagram;
    int socket = dia_socket_bind("drive");
    if (socket < 0) {
        return wrong("bind", socket);
    }
    int unnoticed = nonsense(socket, &datagram);
    if (unnoticed != 0) {
        return wrong("unnoticed nonsense", unnoticed);
    }
    uint64_t came = 0;
    uint64_t say_at = dia_now() + DIA_SECONDS(1);
    for (;;) {
        int code = dia_socket_receive(socket, &datagram, say_at);
        if (code == DIA_OK) {
            came++;
            if (datagram.address != 0x0a000001 || datagram.port != 4000 || datagram.length != 64) {
                return wrong("the sender", (int)datagram.port);
            }
            code = dia_socket_send(socket, datagram.data, datagram.length);
            if (code != DIA_OK) {
                return wrong("send", code);
            }
        } else if (code != DIA_TIMED_OUT) {
            return wrong("receive", code);
        }
        if (dia_now() >= say_at) {
            say_at += DIA_SECONDS(1);
            dia_logf("echo in C: %llu datagrams", (unsigned long long)came);
        }
    }
}
