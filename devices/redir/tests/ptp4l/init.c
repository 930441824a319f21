/*
 * The only process of a Linux guest at an Ethernet wire: it loads the unmodified driver of the
 * adapter, waits until there is a carrier, and becomes ptp4l.
 *
 * Its environment is the kernel's command line: priority1=N says how willing it is to lead.
 */
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Noreturn void stop(const char *what)
{
    printf("guest: failed: %s: %m\n", what);
    for (;;) {
        pause();
    }
}

static void load_module(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);

    if (file < 0 || syscall(SYS_finit_module, file, "", 0)) {
        stop(path);
    }
    close(file);
}

static void wait_for_carrier(void)
{
    struct ifreq request = {.ifr_name = "eth0"};
    struct timespec rest = {0, 20 * 1000 * 1000};
    int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    while (ioctl(any, SIOCGIFFLAGS, &request)) {
        nanosleep(&rest, NULL);
    }
    request.ifr_flags |= IFF_UP;
    if (ioctl(any, SIOCSIFFLAGS, &request)) {
        stop("open eth0");
    }
    do {
        nanosleep(&rest, NULL);
        if (ioctl(any, SIOCGIFFLAGS, &request)) {
            stop("look at eth0");
        }
    } while (!(request.ifr_flags & IFF_RUNNING));
    close(any);
}

int main(void)
{
    const char *priority = getenv("priority1");
    char option[32];

    setvbuf(stdout, NULL, _IONBF, 0);
    load_module("/e1000e.ko");
    wait_for_carrier();
    snprintf(option, sizeof option, "--priority1=%s", priority ? priority : "128");
    printf("guest: ptp4l starts\n");
    execl("/ptp4l", "ptp4l", "-i", "eth0", "-f", "/ptp4l.cfg", "-S", "-m", option, (char *)NULL);
    stop("become ptp4l");
}
