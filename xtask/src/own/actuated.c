/* Writes numbered packets to an actuator, one every 20 ms, and says once a second how they went. */

#include <usb.h>

#define PERIOD (DIA_SECONDS(1) / 50)

int main(void)
{
    static uint8_t packet[64], longer[DIA_PACKET_BYTES + 1];
    dia_packet_answer answer;
    uint64_t done = 0, failed = 0, number = 0, at = dia_now(), say_at = at + DIA_SECONDS(1);
    bool good = dia_usb_write(packet, sizeof packet) == DIA_ABSENT &&
                dia_usb_answer(&answer, DIA_NO_WAIT) == DIA_ABSENT &&
                dia_usb_open_to() == DIA_OK && dia_usb_open_to() == DIA_BUSY &&
                dia_usb_write(packet, 0) == DIA_INVALID &&
                dia_usb_write(NULL, 8) == DIA_INVALID &&
                dia_usb_write(longer, sizeof longer) == DIA_INVALID &&
                dia_usb_answer(NULL, DIA_NO_WAIT) == DIA_WOULD_BLOCK;
    for (;;) {
        memcpy(packet, &number, sizeof number);
        good = good && dia_usb_write(packet, sizeof packet) == DIA_OK;
        dia_work("sink.message");
        number++;
        at += PERIOD;
        for (;;) {
            int status = dia_usb_answer(&answer, at);
            if (status == DIA_TIMED_OUT)
                break;
            if (status != DIA_OK)
                return 1;
            if (answer.status == DIA_PACKET_DONE)
                done++;
            else if (answer.status != DIA_PACKET_GONE || done > 0)
                failed++;
        }
        if (dia_now() >= say_at) {
            good = good && failed == 0 && done > 0;
            dia_logf("packets: %s, %llu done, %llu failed", good ? "good" : "wrong",
                     (unsigned long long)done, (unsigned long long)failed);
            say_at += DIA_SECONDS(1);
        }
    }
}
