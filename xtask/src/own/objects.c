/* Uses every kind of object once, looks at each result, and then says what a program in Rust sends. */

#include <canlib.h>
#include <diapason.h>

static int checks, failed;

static void check(const char *what, bool good)
{
    checks++;
    if (!good) {
        failed++;
        dia_logf("wrong: %s", what);
    }
}

static dia_mutex mutex;
static dia_condition condition;
static bool ready;

/* The body of the second thread: says that it is ready, and returns twice its argument. */
static uint64_t helper(void *argument)
{
    dia_mutex_lock(mutex, DIA_FOREVER);
    ready = true;
    dia_condition_signal(condition);
    dia_mutex_unlock(mutex);
    return 2 * (uint64_t)(uintptr_t)argument;
}

static void threads(void)
{
    dia_thread thread;
    uint64_t code = 0;
    check("mutex", dia_mutex_private(&mutex) == DIA_OK);
    check("condition", dia_condition_private(&condition) == DIA_OK);
    check("lock", dia_mutex_lock(mutex, DIA_FOREVER) == DIA_OK);
    check("start", dia_thread_start(&thread, DIA_VCPU_DEFAULT, "helper", 20, helper,
                                    (void *)21) == DIA_OK);
    while (!ready) {
        dia_condition_wait(condition, mutex, DIA_FOREVER);
    }
    check("unlock", dia_mutex_unlock(mutex) == DIA_OK);
    check("join", dia_thread_join(thread, DIA_FOREVER, &code) == DIA_OK && code == 42);
    check("no body", dia_thread_start(&thread, DIA_VCPU_DEFAULT, "x", 1, NULL, NULL) == DIA_INVALID);
    check("unlock twice", dia_mutex_unlock(mutex) == DIA_NOT_OWNER);
    check("delete", dia_mutex_delete(mutex) == DIA_OK);
    check("gone", dia_mutex_lock(mutex, DIA_FOREVER) == DIA_GONE);
}

static void events(void)
{
    dia_semaphore semaphore;
    dia_event timer;
    uint64_t count = 0, before = dia_now();
    check("semaphore", dia_semaphore_private(1, &semaphore) == DIA_OK);
    check("take", dia_semaphore_take(semaphore, DIA_NO_WAIT) == DIA_OK);
    check("take none", dia_semaphore_take(semaphore, DIA_NO_WAIT) == DIA_WOULD_BLOCK);
    check("give", dia_semaphore_give(semaphore) == DIA_OK);
    check("timer", dia_timer_create(&timer) == DIA_OK);
    check("no event yet", dia_event_wait(timer, DIA_NO_WAIT, &count) == DIA_WOULD_BLOCK);
    check("start", dia_timer_start(timer, before + DIA_MS(20), 0) == DIA_OK);
    check("wait", dia_event_wait(timer, DIA_FOREVER, &count) == DIA_OK && count == 1);
    check("time", dia_now() >= before + DIA_MS(20));
    dia_sleep(DIA_MS(1));
}

static void memory(void)
{
    void *pages = NULL, *segment = NULL;
    char text[64], small[4];
    check("pages", dia_pages(2, &pages) == DIA_OK);
    memset(pages, 1, 2 * DIA_PAGE);
    check("segment", dia_segment_attach("shared", &segment) == DIA_OK && segment != NULL);
    check("no place", dia_segment_attach("shared", NULL) == DIA_INVALID);
    check("no name", dia_segment_attach(NULL, &segment) == DIA_INVALID);
    check("arguments", dia_argument(1) == 8 && dia_argument(4) == 0);
    dia_format(text, sizeof text, "%d|%5u|%-3c|%04x|%s|%.1f|%lld", -5, 42u, 'c', 0x2au, "end", -2.75,
               (long long)INT64_MIN);
    check("format", strcmp(text, "-5|   42|c  |002a|end|-2.8|-9223372036854775808") == 0);
    check("cut", dia_format(small, sizeof small, "%s", "12345") == 5 && strcmp(small, "123") == 0);
    check("no channel", canRead(3, NULL, NULL, NULL, NULL, NULL) == canERR_INVHANDLE &&
                            canOpenChannel(10, 0) == canERR_NOTFOUND);
}

/* The other process of this program: it answers each request with one byte more. */
static int serve(void)
{
    dia_mailbox asked;
    uint8_t message[DIA_MESSAGE_BYTES];
    size_t length = 0;
    if (dia_mailbox_serve("asked", &asked) != DIA_OK ||
        dia_mailbox_receive(asked, message, &length, NULL, DIA_FOREVER) != DIA_OK) {
        return 1;
    }
    do {
        message[length++] = '!';
    } while (dia_mailbox_ask(asked, message, &length, NULL, DIA_FOREVER) == DIA_OK);
    return 1;
}

static void questions(void)
{
    dia_mailbox asked;
    uint8_t message[DIA_MESSAGE_BYTES] = "who";
    size_t length = 3, too_long = DIA_MESSAGE_BYTES + 1;
    uint32_t priority = 7;
    int status;
    check("asked", dia_mailbox_open("asked", DIA_NO_EVENT, &asked) == DIA_OK);
    check("too long", dia_mailbox_ask(asked, message, &too_long, NULL, DIA_FOREVER) == DIA_INVALID);
    while ((status = dia_mailbox_ask(asked, message, &length, &priority, DIA_FOREVER)) == DIA_GONE) {
        dia_sleep(DIA_MS(1));
    }
    check("answer", status == DIA_OK && length == 4 && memcmp(message, "who!", 4) == 0);
    check("its priority", priority == 0);
}

int main(void)
{
    dia_mailbox seconds;
    uint64_t second = 0;
    if (dia_argument(1) == 9) {
        return serve();
    }
    threads();
    events();
    memory();
    questions();
    dia_logf("objects: %d of %d checks failed", failed, checks);
    if (dia_mailbox_open("seconds", DIA_NO_EVENT, &seconds) != DIA_OK) {
        return 1;
    }
    for (;;) {
        uint8_t message[DIA_MESSAGE_BYTES];
        size_t length = 0;
        if (dia_mailbox_receive(seconds, message, &length, NULL, DIA_FOREVER) == DIA_OK) {
            memcpy(&second, message, sizeof second);
            dia_logf("objects: second %llu from Rust", (unsigned long long)second);
        }
    }
}
