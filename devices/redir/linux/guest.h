/*
 * What the only process of a Linux guest does first: it loads unmodified drivers, and waits for the
 * carrier of an adapter for Ethernet.
 */
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static inline _Noreturn void stop(const char *what)
{
    printf("guest: failed: %s: %m\n", what);
    for (;;) {
        pause();
    }
}

static inline void load_module(const char *name)
{
    char path[64];

    snprintf(path, sizeof path, "/%s.ko", name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || syscall(SYS_finit_module, file, "", 0)) {
        stop(name);
    }
    close(file);
}

/* Opens an adapter once it is there, and waits until there is a carrier. */
static inline void open_adapter(const char *name)
{
    struct ifreq request = {0};
    struct timespec rest = {0, 20 * 1000 * 1000};
    int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    strcpy(request.ifr_name, name);
    while (ioctl(any, SIOCGIFFLAGS, &request)) {
        nanosleep(&rest, NULL);
    }
    request.ifr_flags |= IFF_UP;
    if (ioctl(any, SIOCSIFFLAGS, &request)) {
        stop(name);
    }
    do {
        nanosleep(&rest, NULL);
        if (ioctl(any, SIOCGIFFLAGS, &request)) {
            stop(name);
        }
    } while (!(request.ifr_flags & IFF_RUNNING));
    close(any);
}
