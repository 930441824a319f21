/*
 * The only process of a Linux guest at an Ethernet wire: it loads the unmodified driver of the
 * adapter, waits until there is a carrier, and becomes ptp4l.
 *
 * Its environment is the kernel's command line: priority1=N says how willing it is to lead.
 */
#include "guest.h"
#include <stdlib.h>

int main(void)
{
    const char *priority = getenv("priority1");
    char option[32];

    setvbuf(stdout, NULL, _IONBF, 0);
    load_module("e1000e");
    open_adapter("eth0");
    snprintf(option, sizeof option, "--priority1=%s", priority ? priority : "128");
    printf("guest: ptp4l starts\n");
    execl("/ptp4l", "ptp4l", "-i", "eth0", "-f", "/ptp4l.cfg", "-S", "-m", option, (char *)NULL);
    stop("become ptp4l");
}
