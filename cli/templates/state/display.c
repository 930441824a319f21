/* Shows the newest speed once a second. */

#include <diapason.h>
#include <states.h>

int main(void)
{
    speed_reader speed;
    if (speed_reader_open(&speed) != DIA_OK) {
        return 1;
    }
    dia_jobs_start(dia_now(), DIA_SECONDS(1), DIA_SECONDS(1));
    for (;;) {
        speed_value value;
        if (speed_read(&speed, &value) == DIA_OK && speed_writes(&speed) > 0) {
            dia_logf("%u turns, %u a minute, %llu us ago", value.turns, value.per_minute,
                     (unsigned long long)(dia_now() - value.time_ns) / DIA_US(1));
        }
        dia_job_wait();
    }
}
