/* Says once a second what the newest number is. */

#include <diapason.h>
#include <states.h>

int main(void)
{
    newest_reader newest;
    if (newest_reader_open(&newest) != DIA_OK) {
        return 1;
    }
    dia_jobs_start(dia_now(), DIA_MS(100), DIA_MS(100));
    for (unsigned job = 0;; job++) {
        newest_value value;
        if (job % 10 == 0 && newest_read(&newest, &value) == DIA_OK) {
            dia_logf("the newest is %llu", (unsigned long long)value.number);
        }
        dia_job_wait();
    }
}
