/* `paceline inspect DIR` and `paceline inspect --config FILE`: the config, bytes by part, what is mapped and what
 * resident. With a folder every tensor is checked on the way; the figures are those of the folder then. */
#include "api/resident.h"
#include "base/file.h"
#include "base/utf8.h"
#include "checkpoint/inventory.h"
#include "cli/cmd.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_CAP = 1 << 20 };

typedef struct report {
    const char *source; /* the folder or the file */
    bool folder;
    pl_config config;
    pl_tally tally;
    int shards;
    uint64_t tables;         /* the checkpoint's own memory */
    pl_tokenizer *tokenizer; /* NULL: there is none to count */
    pl_model_settings settings;
    pl_resident resident;
} report;

static pl_status read_folder(report *r, int threads, pl_error *err)
{
    pl_checkpoint *checkpoint;
    PL_TRY(pl_checkpoint_open(&checkpoint, r->source, threads, NULL, NULL, err));
    pl_checkpoint_info info;
    pl_checkpoint_info_get(checkpoint, &info);
    r->config = *pl_checkpoint_config(checkpoint);
    pl_tally_checkpoint(checkpoint, &r->tally);
    r->shards = (int)info.shards;
    r->tables = info.heap;
    pl_checkpoint_close(checkpoint);
    return PL_OK;
}

static pl_status read_config(report *r, const char *path, pl_error *err)
{
    PL_TRY(pl_config_load(&r->config, path, err));
    pl_tally_config(&r->config, &r->tally);
    r->shards = pl_inventory_shards(&r->config);
    r->tables = pl_checkpoint_table_bytes(&r->config);
    return PL_OK;
}

/* The folder's tokenizer. A folder may lack one: then it can be inspected, not served. */
static pl_status read_tokenizer(report *r, pl_error *err)
{
    char *path = pl_path_join(r->source, "tokenizer.json");
    if (!path)
        return pl_fail(err, PL_ENOMEM, "no memory for the tokenizer's name");
    pl_status status = access(path, F_OK) == 0 ? pl_tokenizer_load(&r->tokenizer, path, err) : PL_OK;
    free(path);
    return status;
}

static pl_status fill(report *r, const pl_settings *settings, pl_error *err)
{
    PL_TRY(r->folder ? read_folder(r, cmd_threads(settings), err)
                     : read_config(r, pl_set_text(settings, PL_SET_CONFIG), err));
    PL_TRY(r->folder ? read_tokenizer(r, err) : PL_OK);
    r->settings.threads = cmd_threads(settings);
    r->settings.context = (int)pl_set_int(settings, PL_SET_CONTEXT);
    r->settings.slots = (int)pl_set_int(settings, PL_SET_PARALLEL);
    if (!r->settings.slots)
        PL_TRY(pl_resident_parallel(&r->settings.slots, &r->config, &r->settings, err));
    PL_TRY(pl_model_settings_resolve(&r->settings, &r->config, err));
    return pl_resident_plan(&r->resident, &r->config, &r->settings, r->tables, r->tokenizer, err);
}

/* A number with commas: 510,286,023,000. */
static const char *grouped(uint64_t n, char out[32])
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
    char *p = out;
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            *p++ = ',';
        *p++ = digits[i];
    }
    *p = 0;
    return out;
}

static pl_status line(pl_buf *out, const char *name, uint64_t bytes, pl_error *err)
{
    char text[32];
    return pl_buf_addf(out, err, "  %-40s %20s\n", name, grouped(bytes, text));
}

static pl_status list(pl_buf *out, const char *name, const int *value, int n, pl_error *err)
{
    PL_TRY(pl_buf_addf(out, err, "%s", name));
    for (int i = 0; i < n; i++)
        PL_TRY(pl_buf_addf(out, err, "%s%d", i ? "," : " ", value[i]));
    return n ? PL_OK : pl_buf_adds(out, " none", err);
}

/* Runs of equal ratios: "0 x 2, 2 x 18, 1 x 20". */
static pl_status ratios(pl_buf *out, const pl_config *c, pl_error *err)
{
    PL_TRY(pl_buf_adds(out, "  compression  ratios ", err));
    for (int i = 0, j; i < c->layers; i = j) {
        for (j = i; j < c->layers && c->ratio[j] == c->ratio[i]; j++)
            ;
        PL_TRY(pl_buf_addf(out, err, "%s%d x %d", i ? ", " : "", c->ratio[i], j - i));
    }
    int kv[PL_MAX_LAYERS], index[PL_MAX_LAYERS], kvs = 0, indexes = 0;
    for (int i = 0; i < c->layers; i++) {
        if (pl_config_owns_kv(c, i))
            kv[kvs++] = i;
        if (pl_config_owns_index(c, i))
            index[indexes++] = i;
    }
    if (!kvs)
        return pl_buf_adds(out, "\n", err);
    PL_TRY(list(out, "; entries of layers", kv, kvs, err));
    PL_TRY(list(out, "\n               lists of layers", index, indexes, err));
    PL_TRY(pl_buf_addf(out, err, ": %d heads of %d, top %d", c->index_heads, c->index_dim, c->index_topk));
    if (c->candidate_layer >= 0)
        PL_TRY(pl_buf_addf(out, err, "; candidates of layer %d: %d blocks of %d", c->candidate_layer,
                           c->candidate_blocks, c->candidate_block));
    return pl_buf_adds(out, "\n", err);
}

static pl_status print_config(pl_buf *out, const pl_config *c, pl_error *err)
{
    char positions[32], rows[32];
    PL_TRY(pl_buf_addf(out, err, "  model        vocabulary %d, hidden %d, %d layers, %d streams, %s positions\n",
                       c->vocab_size, c->hidden, c->layers, c->hc_mult,
                       grouped((uint64_t)c->max_positions, positions)));
    PL_TRY(pl_buf_addf(
        out, err, "  attention    %d heads of %d (rope on %d), window %d, query rank %d, output %d groups of rank %d\n",
        c->heads, c->head_dim, c->rope_dim, c->window, c->q_lora, c->o_groups, c->o_lora));
    PL_TRY(ratios(out, c, err));
    PL_TRY(pl_buf_addf(out, err, "  experts      %d of width %d, %d a token, and one shared\n", c->experts,
                       c->moe_inter, c->experts_per_tok));
    if (c->engrams) {
        PL_TRY(list(out, "  engram       layers", c->engram_layer, c->engrams, err));
        PL_TRY(pl_buf_addf(out, err, ": n-grams up to %d, %d heads of %d, %d classes, rows", c->engram_ngram,
                           c->engram_heads, c->engram_dim, c->engram_classes));
        for (int i = 0; i < c->engrams; i++)
            PL_TRY(pl_buf_addf(out, err, " %s", grouped((uint64_t)c->engram_rows[i], rows)));
        PL_TRY(pl_buf_adds(out, "\n", err));
    }
    if (c->stages) {
        PL_TRY(pl_buf_addf(out, err, "  drafter      %d stages, blocks of %d, %d experts, %d a token, Markov rank %d, ",
                           c->stages, c->block, c->draft_experts, c->draft_experts_per_tok, c->markov_rank));
        PL_TRY(list(out, "taps of layers", c->tap_layer, c->taps, err));
        PL_TRY(pl_buf_adds(out, "\n", err));
    }
    return PL_OK;
}

static pl_status print_parts(pl_buf *out, const pl_tally *t, pl_error *err)
{
    char tensors[32], bytes[32];
    PL_TRY(pl_buf_addf(out, err, "\n  %-40s %9s %20s\n", "part", "tensors", "bytes"));
    for (int p = 0; p < PL_PARTS; p++)
        if (t->tensors[p])
            PL_TRY(pl_buf_addf(out, err, "  %-40s %9s %20s\n", pl_part_name((pl_part)p),
                               grouped((uint64_t)t->tensors[p], tensors), grouped(t->bytes[p], bytes)));
    return pl_buf_addf(out, err, "  %-40s %9s %20s\n", "total", grouped((uint64_t)t->total_tensors, tensors),
                       grouped(t->total_bytes, bytes));
}

static pl_status print_memory(pl_buf *out, const report *r, pl_error *err)
{
    uint64_t tables = r->tally.bytes[PL_PART_ENGRAM_TABLES];
    PL_TRY(pl_buf_adds(out, "\nmapped, read from the files as needed, bytes\n", err));
    PL_TRY(line(out, "weights", r->tally.total_bytes - tables, err));
    PL_TRY(line(out, "Engram tables (a few rows a token)", tables, err));
    PL_TRY(pl_buf_addf(out, err, "\nresident beyond the map, bytes (context %d, %d slot, %d threads)\n",
                       r->settings.context, r->settings.slots, r->settings.threads));
    PL_TRY(line(out, "sequence state", r->resident.model.state, err));
    PL_TRY(line(out, "activations", r->resident.model.activations, err));
    PL_TRY(line(out, "logits", r->resident.model.logits, err));
    PL_TRY(line(out, "kernel scratch", r->resident.model.scratch, err));
    PL_TRY(line(out, "small weights and token map, copied", r->resident.model.weights_copied, err));
    PL_TRY(line(out, "lanes", r->resident.lanes, err));
    PL_TRY(line(out, "table of tensors", r->resident.tensor_table, err));
    if (r->tokenizer)
        PL_TRY(line(out, "tokenizer", r->resident.tokenizer, err));
    PL_TRY(line(out, "program and threads", r->resident.program, err));
    PL_TRY(line(out, "total", r->resident.total, err));
    return r->tokenizer ? PL_OK : pl_buf_adds(out, "  (without a tokenizer: none is here to count)\n", err);
}

static pl_status print_text(pl_buf *out, const report *r, pl_error *err)
{
    PL_TRY(
        pl_buf_addf(out, err, "%s: %d shards%s\n", r->source, r->shards, r->folder ? ", all tensors as expected" : ""));
    PL_TRY(print_config(out, &r->config, err));
    PL_TRY(print_parts(out, &r->tally, err));
    return print_memory(out, r, err);
}

static json_t *number(uint64_t n)
{
    return json_integer((json_int_t)n);
}

static json_t *config_json(const pl_config *c)
{
    json_t *ratio = json_array(), *kv = json_array(), *index = json_array(), *engram = json_array();
    for (int i = 0; i < c->layers; i++) {
        json_array_append_new(ratio, json_integer(c->ratio[i]));
        json_array_append_new(kv, json_integer(c->kv_owner[i]));
        json_array_append_new(index, json_integer(c->index_owner[i]));
    }
    for (int i = 0; i < c->engrams; i++)
        json_array_append_new(engram, json_integer(c->engram_layer[i]));
    return json_pack("{s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:o,s:o,s:o,s:o}", "vocab_size",
                     c->vocab_size, "hidden_size", c->hidden, "layers", c->layers, "heads", c->heads, "head_dim",
                     c->head_dim, "window", c->window, "max_positions", c->max_positions, "experts", c->experts,
                     "experts_per_token", c->experts_per_tok, "draft_stages", c->stages, "draft_block", c->block,
                     "draft_experts", c->draft_experts, "engram_classes", c->engram_classes, "engram_layers", engram,
                     "ratios", ratio, "kv_owner", kv, "index_owner", index);
}

static json_t *report_json(const report *r, const char *source)
{
    uint64_t tables = r->tally.bytes[PL_PART_ENGRAM_TABLES];
    json_t *parts = json_object();
    for (int p = 0; p < PL_PARTS; p++)
        if (r->tally.tensors[p])
            json_object_set_new(parts, pl_part_key((pl_part)p),
                                json_pack("{s:I,s:I}", "tensors", (json_int_t)r->tally.tensors[p], "bytes",
                                          (json_int_t)r->tally.bytes[p]));
    json_t *mapped =
        json_pack("{s:o,s:o}", "weights", number(r->tally.total_bytes - tables), "engram_tables", number(tables));
    const pl_plan *plan = &r->resident.model;
    json_t *resident = json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:i,s:i,s:i}", "state", number(plan->state),
                                 "activations", number(plan->activations), "logits", number(plan->logits), "scratch",
                                 number(plan->scratch), "weights_copied", number(plan->weights_copied), "lanes",
                                 number(r->resident.lanes), "tensor_table", number(r->resident.tensor_table),
                                 "tokenizer", r->tokenizer ? number(r->resident.tokenizer) : json_null(), "program",
                                 number(r->resident.program), "total", number(r->resident.total), "context",
                                 r->settings.context, "slots", r->settings.slots, "threads", r->settings.threads);
    return json_pack("{s:s,s:o,s:i,s:I,s:o,s:o,s:o,s:o}", "source", source, "config", config_json(&r->config), "shards",
                     r->shards, "tensors", (json_int_t)r->tally.total_tensors, "bytes", number(r->tally.total_bytes),
                     "parts", parts, "mapped", mapped, "resident", resident);
}

static pl_status print_json(pl_buf *out, const report *r, pl_error *err)
{
    pl_buf source; /* a path need not be UTF-8, JSON must */
    pl_buf_init(&source, TEXT_CAP, "path");
    PL_TRY(pl_utf8_repair(&source, r->source, strlen(r->source), err));
    json_t *root = report_json(r, source.data ? source.data : "");
    pl_buf_free(&source);
    char *text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
    json_decref(root);
    if (!text)
        return pl_fail(err, PL_ENOMEM, "no memory for the report");
    pl_status status = pl_buf_adds(out, text, err);
    free(text);
    return status == PL_OK ? pl_buf_addc(out, '\n', err) : status;
}

static pl_status inspect(report *r, const pl_settings *settings, pl_error *err)
{
    PL_TRY(fill(r, settings, err));
    pl_buf out;
    pl_buf_init(&out, TEXT_CAP, "report");
    pl_status status = pl_set_on(settings, PL_SET_JSON) ? print_json(&out, r, err) : print_text(&out, r, err);
    if (status == PL_OK)
        status = cmd_print(out.data, out.len, err);
    pl_buf_free(&out);
    return status;
}

int cmd_inspect(const pl_settings *settings)
{
    static report r; /* static: the config holds three lists of PL_MAX_LAYERS */
    pl_error err;
    char *embedded = NULL;
    const char *config = pl_set_text(settings, PL_SET_CONFIG);
    pl_status status = PL_OK;
    r.folder = !*config;
    bool by_flag = settings->value[PL_SET_MODEL].source == PL_FROM_FLAG;
    if (settings->args && by_flag)
        status = pl_fail_param(&err, PL_EINVAL, "model", "DIR and -m both name a folder: give one");
    else if (*config && (settings->args || by_flag))
        status = pl_fail_param(&err, PL_EINVAL, "config", "a folder or --config FILE expected, found both");
    else if (*config)
        r.source = pl_input_name(config);
    else if (settings->args && strcmp(settings->arg[0], "-") == 0)
        status = pl_fail(&err, PL_EINVAL, "a folder expected, found - (of standard input, --config - reads a config)");
    else if (settings->args)
        r.source = settings->arg[0];
    else
        status = cmd_model_dir(settings, &embedded, &err);
    if (embedded)
        r.source = embedded;
    if (status == PL_OK)
        status = inspect(&r, settings, &err);
    pl_tokenizer_close(r.tokenizer);
    free(embedded);
    return status == PL_OK ? CMD_OK : cmd_fail(settings, &err);
}
