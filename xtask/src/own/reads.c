/* Reads three state messages every 20 ms, and names each read. */

#include <diapason.h>
#include <states.h>

int main(void)
{
    static byte_reader byte;
    static odd_reader odd;
    static block_reader block;
    static byte_value level;
    static odd_value some;
    static block_value all;
    if (byte_reader_open(&byte) != DIA_OK || odd_reader_open(&odd) != DIA_OK
        || block_reader_open(&block) != DIA_OK) {
        return 1;
    }
    dia_jobs_start(dia_now(), DIA_MS(20), DIA_MS(20));
    for (;;) {
        dia_work("c.before");
        dia_work("c.empty");
        (void)byte_read(&byte, &level);
        dia_work("c.byte");
        (void)odd_read(&odd, &some);
        dia_work("c.odd");
        (void)block_read(&block, &all);
        dia_work("c.block");
        dia_job_wait();
    }
}
