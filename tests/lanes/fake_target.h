/* A target without a model: the next token is a hash of the tokens before it, so that any reply can be foretold, and
 * any wrong row, length or order of calls gives another reply. Calls can be held, to look at the engine in the
 * middle of one. */
#ifndef TESTS_LANES_FAKE_TARGET_H
#define TESTS_LANES_FAKE_TARGET_H

#include "lanes/target.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAKE_VOCAB = 97, FAKE_CONTEXT = 4096, FAKE_PIECE = 16 };

typedef struct fake {
    pl_target table;
    float row[FAKE_VOCAB];
    int32_t token[FAKE_CONTEXT];
    int kept, len; /* committed; with the last window */
    bool admitted;
    bool broken_logits; /* set before the first request */
    int32_t order[64];  /* the first prompt token of each admission; read it when all is over */

    /* any thread */
    atomic_int prefills, windows, admits, releases;
    atomic_int
        hold_prefill; /* prefill calls from this number on wait until it changes or they are cancelled; -1: none */
    atomic_int hold_window;
    atomic_int fail_prefill, fail_window; /* the call with this number fails with `failure`; -1: none */
    pl_status failure;
    atomic_bool holding; /* a call waits right now */
    atomic_int misuse;   /* calls that break the table's rules */
} fake;

/* The token after tokens[0..n). */
static inline int32_t fake_next(const int32_t *token, int n)
{
    uint64_t h = 1469598103934665603u;
    for (int i = 0; i < n; i++)
        h = (h ^ (uint64_t)(uint32_t)token[i]) * 1099511628211u;
    return (int32_t)(2 + (h >> 20) % (FAKE_VOCAB - 2)); /* never 0 or 1: those are for end tokens */
}

static inline void fake_logits(fake *f, int n)
{
    for (int i = 0; i < FAKE_VOCAB; i++)
        f->row[i] = (float)(i % 7) * 0.25f;
    f->row[fake_next(f->token, n)] = 9;
    for (int i = 0; f->broken_logits && i < FAKE_VOCAB; i++)
        f->row[i] = NAN;
}

/* Wait while the hold is on; true when the call was cancelled. */
static inline bool fake_wait(fake *f, atomic_int *hold, int number, const atomic_bool *cancel)
{
    while (*hold >= 0 && number >= *hold) {
        f->holding = true;
        if (cancel && *cancel)
            break;
        usleep(200);
    }
    f->holding = false;
    return cancel && *cancel;
}

static inline pl_status fake_admit(void *arg, int slot, pl_error *err)
{
    (void)err;
    fake *f = arg;
    f->misuse += slot != 0 || f->admitted;
    f->admitted = true;
    f->kept = f->len = 0;
    f->admits++;
    return PL_OK;
}

static inline pl_status fake_prefill(void *arg, int slot, const int32_t *token, int rows, bool last,
                                     const atomic_bool *cancel, pl_error *err)
{
    fake *f = arg;
    int number = f->prefills++;
    f->misuse += slot != 0 || !f->admitted || rows < 1 || rows > FAKE_PIECE || f->kept + rows > FAKE_CONTEXT;
    if (number == f->fail_prefill)
        return pl_fail(err, f->failure, "the fake prefill fails");
    if (fake_wait(f, &f->hold_prefill, number, cancel))
        return pl_fail(err, PL_ECANCELED, "cancelled");
    if (f->kept == 0 && f->admits <= 64)
        f->order[f->admits - 1] = token[0];
    memcpy(f->token + f->kept, token, (size_t)rows * sizeof *token);
    f->kept += rows;
    f->len = f->kept;
    if (last)
        fake_logits(f, f->kept);
    return PL_OK;
}

static inline pl_status fake_window(void *arg, const pl_window *w, int windows, const atomic_bool *cancel,
                                    pl_error *err)
{
    fake *f = arg;
    int number = f->windows++;
    f->misuse += windows != 1 || w->slot != 0 || w->rows != 1 || !f->admitted || f->kept + 1 > FAKE_CONTEXT;
    if (number == f->fail_window)
        return pl_fail(err, f->failure, "the fake window fails");
    if (fake_wait(f, &f->hold_window, number, cancel))
        return pl_fail(err, PL_ECANCELED, "cancelled");
    f->token[f->kept] = w->token[0];
    f->len = f->kept + 1;
    fake_logits(f, f->len);
    return PL_OK;
}

static inline const float *fake_row(void *arg, int i)
{
    fake *f = arg;
    f->misuse += i != 0;
    return f->row;
}

static inline pl_status fake_keep(void *arg, int slot, int count, pl_error *err)
{
    (void)err;
    fake *f = arg;
    f->misuse += slot != 0 || count < f->kept || count > f->len;
    f->kept = count;
    return PL_OK;
}

static inline void fake_release(void *arg, int slot)
{
    fake *f = arg;
    f->misuse += slot != 0 || !f->admitted;
    f->admitted = false;
    f->releases++;
}

static inline void fake_init(fake *f)
{
    memset(f, 0, sizeof *f);
    f->hold_prefill = f->hold_window = f->fail_prefill = f->fail_window = -1;
    f->failure = PL_EFAULT;
    f->table = (pl_target){.arg = f,
                           .slots = 1,
                           .context = FAKE_CONTEXT,
                           .piece = FAKE_PIECE,
                           .rows = 16,
                           .window_rows = 16,
                           .vocab = FAKE_VOCAB,
                           .admit = fake_admit,
                           .prefill = fake_prefill,
                           .window = fake_window,
                           .logits = fake_row,
                           .keep = fake_keep,
                           .release = fake_release};
}

/* Let every held call go on. */
static inline void fake_go(fake *f)
{
    f->hold_prefill = -1;
    f->hold_window = -1;
}

/* Wait until a call is held; false after ten seconds. */
static inline bool fake_await_hold(fake *f)
{
    for (int i = 0; i < 50000 && !f->holding; i++)
        usleep(200);
    return f->holding;
}

#endif
