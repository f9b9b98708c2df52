/* paceline drafts: what the drafter proposes behind committed ids and an anchor. */
#include "cli/load.h"
#include "model/drafter.h"

#include <inttypes.h>
#include <math.h>

enum { TEXT_CAP = 1 << 16 };

/* The most likely token, the lower id of equals. */
static int32_t best(const float *logits, int n)
{
    int32_t at = 0;
    for (int32_t i = 1; i < n; i++)
        if (logits[i] > logits[at])
            at = i;
    return at;
}

static pl_status propose(cli_model *m, const pl_settings *settings, int32_t *anchor, pl_proposal *proposal,
                         pl_error *err)
{
    if (!pl_drafter_present(m->model))
        return pl_fail(err, PL_ENOTFOUND, "%s: the checkpoint has no drafter (num_nextn_predict_layers is 0)",
                       pl_checkpoint_dir(m->checkpoint));
    *anchor = (int32_t)pl_set_int(settings, PL_SET_ANCHOR);
    if (pl_set_given(settings, PL_SET_ANCHOR) && *anchor >= m->config->vocab_size)
        return pl_fail_param(err, PL_EINVAL, "anchor",
                             "--anchor: an id below %d (the vocabulary) expected, found %" PRId32,
                             m->config->vocab_size, *anchor);
    PL_TRY(cli_model_run(m, 0, PL_WANT_LAST, NULL, NULL, NULL, err));
    if (!pl_set_given(settings, PL_SET_ANCHOR))
        *anchor = best(pl_model_logits(m->model, 0), m->config->vocab_size);
    int slot = 0;
    PL_TRY(pl_drafter_ingest(m->model, &slot, &m->count, 1, err));
    pl_ask ask = {.slot = slot, .anchor = *anchor};
    return pl_drafter_propose(m->model, &ask, 1, NULL, NULL, proposal, err);
}

static pl_status add_floats(pl_buf *out, const char *name, const float *x, int n, pl_error *err)
{
    PL_TRY(pl_buf_addf(out, err, ", \"%s\": [", name));
    for (int i = 0; i < n; i++) {
        PL_TRY(pl_buf_adds(out, i ? ", " : "", err));
        PL_TRY(isfinite(x[i]) ? pl_buf_addf(out, err, "%.9g", (double)x[i]) : pl_buf_adds(out, "null", err));
    }
    return pl_buf_addc(out, ']', err);
}

static pl_status write_json(pl_buf *out, int32_t anchor, const pl_proposal *p, int block, pl_error *err)
{
    PL_TRY(pl_buf_addf(out, err, "{\"anchor\": %" PRId32 ", \"drafts\": [", anchor));
    for (int i = 0; i < block; i++)
        PL_TRY(pl_buf_addf(out, err, "%s%" PRId32, i ? ", " : "", p->draft[i]));
    PL_TRY(pl_buf_addc(out, ']', err));
    PL_TRY(add_floats(out, "confidence", p->confidence, block, err));
    PL_TRY(add_floats(out, "margins", p->margin, block, err));
    return pl_buf_adds(out, "}\n", err);
}

static pl_status write_table(pl_buf *out, int32_t anchor, const pl_proposal *p, int block, pl_error *err)
{
    PL_TRY(pl_buf_addf(out, err, "anchor %" PRId32 "\n%8s %12s %12s\n", anchor, "drafts", "confidence", "margins"));
    for (int i = 0; i < block; i++)
        PL_TRY(pl_buf_addf(out, err, "%8" PRId32 " %12.4f %12.4f\n", p->draft[i], (double)p->confidence[i],
                           (double)p->margin[i]));
    return PL_OK;
}

int cmd_drafts(const pl_settings *settings)
{
    pl_error err;
    cli_model model;
    if (cli_model_open(&model, settings, PL_MAX_BLOCK, &err) != PL_OK)
        return cmd_fail(settings, &err);
    int32_t anchor = 0;
    pl_proposal proposal = {0};
    pl_buf out;
    pl_buf_init(&out, TEXT_CAP, "drafts");
    pl_status status = propose(&model, settings, &anchor, &proposal, &err);
    if (status == PL_OK)
        status = (pl_set_on(settings, PL_SET_JSON) ? write_json : write_table)(&out, anchor, &proposal,
                                                                               model.config->block, &err);
    if (status == PL_OK)
        status = cmd_print(out.data, out.len, &err);
    pl_buf_free(&out);
    cli_model_close(&model);
    return status == PL_OK ? CMD_OK : cmd_fail(settings, &err);
}
