/* State messages, as `lib/state` has them in Rust: two counts, then slots of whole words.
 *
 * The writer announces a write, fills the next slot, and publishes it. A reader copies the slot
 * that was published last, and looks then at what has been announced meanwhile. */

#include "state.h"

/* The places of the counts and of the first slot in a cell, in words. */
enum { PUBLISHED, BEGUN, SLOTS };

static uint64_t *slot(const dia_state *state, uint64_t write)
{
    size_t words = (state->bytes + (size_t)7) / 8;
    return state->cell + SLOTS + (write % state->slots) * words;
}

int dia_state_attach(const char *name, uint32_t number, uint32_t slots, uint32_t bytes,
                     uint64_t period, dia_state *state)
{
    if (!state || slots < 2 || bytes == 0) {
        return DIA_INVALID;
    }
    void *cell;
    int attached = dia_segment_attach(name, &cell);
    if (attached == DIA_OK) {
        *state = (dia_state){
            .cell = cell, .number = number, .slots = slots, .bytes = bytes, .period = period
        };
    }
    return attached;
}

/* Reports when a count has doubled, so that an end that sees it for ever does not fill the
 * console. */
static void report(const dia_state *state, uint64_t count)
{
    if ((count & (count - 1)) == 0) {
        dia_state_report(state->number, state->overtaken, state->touched, state->early);
    }
}

/* Notes the time of a write. Writes are apart by the period, and each may be late by as much, as
 * the `Meter` in Rust has it. */
static void note(dia_state *state)
{
    uint64_t now = dia_now();
    uint64_t gap = now > state->last ? now - state->last : 0;
    state->last += gap;
    uint64_t rest = state->ahead > gap ? state->ahead - gap : 0;
    if (rest <= state->period) {
        state->ahead = rest + state->period;
        return;
    }
    state->ahead = rest;
    state->early++;
    report(state, state->early);
}

int dia_state_write(dia_state *state, const void *value)
{
    if (!state || !state->cell || !value) {
        return DIA_INVALID;
    }
    note(state);
    uint64_t next = __atomic_load_n(&state->cell[PUBLISHED], __ATOMIC_RELAXED) + 1;
    __atomic_store_n(&state->cell[BEGUN], next, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    uint64_t *to = slot(state, next);
    const unsigned char *from = value;
    size_t at = 0;
    for (; at + 8 <= state->bytes; at += 8, to++) {
        uint64_t word;
        /* An instruction, and no call. */
        __builtin_memcpy(&word, from + at, 8);
        __atomic_store_n(to, word, __ATOMIC_RELAXED);
    }
    for (unsigned char *rest = (unsigned char *)to; at < state->bytes; at++, rest++) {
        __atomic_store_n(rest, from[at], __ATOMIC_RELAXED);
    }
    __atomic_store_n(&state->cell[PUBLISHED], next, __ATOMIC_RELEASE);
    return DIA_OK;
}

int dia_state_read(dia_state *state, void *value)
{
    if (!state || !state->cell || !value) {
        return DIA_INVALID;
    }
    uint64_t newest = __atomic_load_n(&state->cell[PUBLISHED], __ATOMIC_ACQUIRE);
    const uint64_t *from = slot(state, newest);
    unsigned char *to = value;
    size_t at = 0;
    for (; at + 8 <= state->bytes; at += 8, from++) {
        uint64_t word = __atomic_load_n(from, __ATOMIC_RELAXED);
        __builtin_memcpy(to + at, &word, 8);
    }
    for (const unsigned char *rest = (const unsigned char *)from; at < state->bytes; at++, rest++) {
        to[at] = __atomic_load_n(rest, __ATOMIC_RELAXED);
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    uint64_t touched = __atomic_load_n(&state->cell[BEGUN], __ATOMIC_RELAXED) - newest;
    if (touched < state->slots) {
        return DIA_OK;
    }
    memset(value, 0, state->bytes);
    state->overtaken++;
    state->touched = touched > state->touched ? touched : state->touched;
    report(state, state->overtaken);
    return DIA_OVERTAKEN;
}

uint64_t dia_state_writes(const dia_state *state)
{
    return state && state->cell ? __atomic_load_n(&state->cell[PUBLISHED], __ATOMIC_ACQUIRE) : 0;
}
