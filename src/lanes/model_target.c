/* Windows and pieces as runs of a model. The model rewinds by itself when a run starts before its end, so that keeping
 * is remembering a length. */
#include "lanes/model_target.h"

#include "model/drafter.h"

#include <stdlib.h>
#include <string.h>

struct pl_model_target {
    pl_model *model;
    pl_target table;
    pl_draft_table drafter;
    int *kept;             /* [slots] */
    pl_run *run;           /* [slots] scratch of a launch */
    pl_ask *ask;           /* [slots] scratch of a pass */
    pl_proposal *proposal; /* [slots] */
    int *count;            /* [slots] */
};

static pl_status admit(void *arg, int slot, pl_error *err)
{
    (void)err;
    pl_model_target *t = arg;
    pl_model_reset(t->model, slot);
    t->kept[slot] = 0;
    return PL_OK;
}

static pl_status prefill(void *arg, int slot, const int32_t *token, int rows, bool last, const atomic_bool *cancel,
                         pl_error *err)
{
    pl_model_target *t = arg;
    pl_run run = {
        .slot = slot, .pos = t->kept[slot], .rows = rows, .token = token, .want = last ? PL_WANT_LAST : PL_WANT_NONE};
    PL_TRY(pl_model_forward(t->model, &run, 1, cancel, NULL, err));
    t->kept[slot] += rows;
    return PL_OK;
}

static pl_status window(void *arg, const pl_window *windows, int count, const atomic_bool *cancel, pl_error *err)
{
    pl_model_target *t = arg;
    if (count < 1 || count > t->table.slots)
        return pl_fail(err, PL_EINVAL, "a launch of %d windows, expected 1 to %d", count, t->table.slots);
    for (int i = 0; i < count; i++)
        t->run[i] = (pl_run){.slot = windows[i].slot,
                             .pos = t->kept[windows[i].slot],
                             .rows = windows[i].rows,
                             .token = windows[i].token,
                             .want = PL_WANT_ALL};
    return pl_model_forward(t->model, t->run, count, cancel, NULL, err);
}

static const float *logits(void *arg, int i)
{
    pl_model_target *t = arg;
    return pl_model_logits(t->model, i);
}

static pl_status keep(void *arg, int slot, int count, pl_error *err)
{
    pl_model_target *t = arg;
    if (count < t->kept[slot] || count > pl_model_len(t->model, slot))
        return pl_fail(err, PL_EINVAL, "slot %d: cannot keep %d tokens, expected %d to %d", slot, count, t->kept[slot],
                       pl_model_len(t->model, slot));
    t->kept[slot] = count;
    return PL_OK;
}

static void release(void *arg, int slot)
{
    pl_model_target *t = arg;
    pl_model_reset(t->model, slot);
    t->kept[slot] = 0;
}

static pl_status ingest(void *arg, const int *slot, int slots, pl_error *err)
{
    pl_model_target *t = arg;
    for (int i = 0; i < slots; i++)
        t->count[i] = t->kept[slot[i]];
    return pl_drafter_ingest(t->model, slot, t->count, slots, err);
}

static pl_status propose(void *arg, const pl_draft_ask *ask, int asks, pl_draft_choose *choose, void *choose_arg,
                         int32_t *draft, float *confidence, float *margin, pl_error *err)
{
    pl_model_target *t = arg;
    if (asks < 1 || asks > t->table.slots)
        return pl_fail(err, PL_EINVAL, "a pass of %d asks, expected 1 to %d", asks, t->table.slots);
    for (int i = 0; i < asks; i++)
        t->ask[i] = (pl_ask){.slot = ask[i].slot, .anchor = ask[i].anchor};
    PL_TRY(pl_drafter_propose(t->model, t->ask, asks, choose, choose_arg, t->proposal, err));
    size_t block = (size_t)t->drafter.block;
    for (int i = 0; i < asks; i++) {
        memcpy(draft + (size_t)i * block, t->proposal[i].draft, block * sizeof *draft);
        memcpy(confidence + (size_t)i * block, t->proposal[i].confidence, block * sizeof *confidence);
        memcpy(margin + (size_t)i * block, t->proposal[i].margin, block * sizeof *margin);
    }
    return PL_OK;
}

static void reset(void *arg, int slot)
{
    pl_model_target *t = arg;
    pl_model_reset(t->model, slot);
    t->kept[slot] = 0;
}

void pl_model_target_shape(pl_target *target, pl_draft_table *drafter, const pl_config *config,
                           const pl_model_settings *settings)
{
    int block = config->stages > 0 ? config->block : 0;
    *target = (pl_target){.slots = settings->slots,
                          .context = settings->context,
                          .piece = settings->piece,
                          .rows = settings->rows,
                          .window_rows = PL_WINDOW_ROWS,
                          .vocab = config->vocab_size};
    *drafter = (pl_draft_table){.block = block, .asks = block ? settings->rows / block : 0};
}

pl_status pl_model_target_open(pl_model_target **out, pl_model *model, pl_error *err)
{
    *out = NULL;
    const pl_model_settings *s = pl_model_settings_of(model);
    size_t slots = (size_t)s->slots;
    pl_model_target *t = calloc(1, sizeof *t);
    if (t) {
        t->kept = calloc(slots, sizeof *t->kept);
        t->run = calloc(slots, sizeof *t->run);
        t->ask = calloc(slots, sizeof *t->ask);
        t->proposal = calloc(slots, sizeof *t->proposal);
        t->count = calloc(slots, sizeof *t->count);
    }
    if (!t || !t->kept || !t->run || !t->ask || !t->proposal || !t->count) {
        pl_model_target_close(t);
        return pl_fail(err, PL_ENOMEM, "no memory for the tables of %d slots", s->slots);
    }
    t->model = model;
    pl_model_target_shape(&t->table, &t->drafter, pl_model_config(model), s);
    t->table.arg = t->drafter.arg = t;
    t->table.admit = admit;
    t->table.prefill = prefill;
    t->table.window = window;
    t->table.logits = logits;
    t->table.keep = keep;
    t->table.release = release;
    t->drafter.ingest = ingest;
    t->drafter.propose = propose;
    t->drafter.reset = reset;
    *out = t;
    return PL_OK;
}

void pl_model_target_close(pl_model_target *t)
{
    if (!t)
        return;
    free(t->kept);
    free(t->run);
    free(t->ask);
    free(t->proposal);
    free(t->count);
    free(t);
}

const pl_target *pl_model_target_table(const pl_model_target *t)
{
    return &t->table;
}

const pl_draft_table *pl_model_target_drafter(const pl_model_target *t)
{
    return &t->drafter;
}
