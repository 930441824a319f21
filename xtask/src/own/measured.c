/* Reads the pipe from an instrument, whose packets are numbered, and says once a second what came. */

#include <usb.h>

int main(void)
{
    static dia_packet packet;
    uint64_t lost, packets = 0, missing = 0, expected = 0, say_at = dia_now() + DIA_SECONDS(1);
    bool good = dia_usb_read(&packet, DIA_NO_WAIT) == DIA_ABSENT &&
                dia_usb_lost(&lost) == DIA_ABSENT && dia_usb_open() == DIA_OK &&
                dia_usb_open() == DIA_BUSY &&
                dia_usb_read(NULL, DIA_NO_WAIT) == DIA_WOULD_BLOCK;
    for (;;) {
        int status = dia_usb_read(&packet, say_at);
        if (status == DIA_OK && packet.length == 64) {
            uint64_t number;
            memcpy(&number, packet.data + 8, sizeof number);
            uint64_t gap = packets++ > 0 && number > expected ? number - expected : 0;
            expected = number + 1;
            missing += gap;
            dia_usb_missed(gap);
            dia_work("endpoint.message");
        } else if (status != DIA_TIMED_OUT) {
            return 1;
        }
        if (dia_now() >= say_at) {
            good = good && dia_usb_lost(&lost) == DIA_OK && lost == 0 && packets > 0;
            dia_logf("readings: %s, %llu packets, %llu missing", good ? "good" : "wrong",
                     (unsigned long long)packets, (unsigned long long)missing);
            say_at += DIA_SECONDS(1);
        }
    }
}
