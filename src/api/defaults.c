/* generation_config.json as a source of defaults. */
#include "api/defaults.h"

#include "base/file.h"
#include "text/json_text.h"

#include <stdlib.h>

void pl_defaults_unset(pl_defaults *d)
{
    *d = (pl_defaults){.thinking = -1};
}

/* A number of the file. above: min itself is out of range. */
static pl_status take_real(const pl_json *root, const char *name, double min, double max, bool above, unsigned bit,
                           float *value, unsigned *has, const char *where, pl_error *err)
{
    const pl_json *field = pl_json_get_set(root, name);
    double found;
    if (!field)
        return PL_OK;
    if (!pl_json_f64(field, min, max, &found) || (above && !(found > min)))
        return pl_fail_param(err, PL_EFORMAT, name, "%s: %s: expected a number %s %g, at most %g", where, name,
                             above ? "above" : "from", min, max);
    *value = (float)found;
    *has |= bit;
    return PL_OK;
}

static pl_status take_sampling(pl_sampling_part *part, const pl_json *root, const char *where, pl_error *err)
{
    pl_sampling *v = &part->value;
    unsigned *has = &part->has;
    PL_TRY(take_real(root, "temperature", 0, 2, false, PL_HAS_TEMPERATURE, &v->temperature, has, where, err));
    PL_TRY(take_real(root, "top_p", 0, 1, true, PL_HAS_TOP_P, &v->top_p, has, where, err));
    PL_TRY(take_real(root, "min_p", 0, 1, false, PL_HAS_MIN_P, &v->min_p, has, where, err));
    PL_TRY(take_real(root, "repetition_penalty", 0, 100, true, PL_HAS_REPETITION, &v->repetition_penalty, has, where,
                     err));
    const pl_json *top_k = pl_json_get_set(root, "top_k");
    int64_t k;
    if (top_k) {
        if (!pl_json_i64(top_k, -1, INT32_MAX, &k))
            return pl_fail_param(err, PL_EFORMAT, "top_k", "%s: top_k: expected a whole number from -1", where);
        v->top_k = k < 0 ? 0 : (int)k;
        *has |= PL_HAS_TOP_K;
    }
    const pl_json *sample = pl_json_get_set(root, "do_sample");
    if (sample && !pl_json_is_bool(sample))
        return pl_fail_param(err, PL_EFORMAT, "do_sample", "%s: do_sample: expected true or false, found %s", where,
                             pl_json_type_name(sample));
    if (sample && pl_json_is(sample, PL_JSON_FALSE)) {
        v->temperature = 0;
        *has |= PL_HAS_TEMPERATURE;
    }
    return PL_OK;
}

static pl_status take_fields(pl_defaults *d, const pl_json *root, const char *where, int32_t *eos, pl_error *err)
{
    if (!pl_json_is(root, PL_JSON_OBJECT))
        return pl_fail(err, PL_EFORMAT, "%s: expected an object, found %s", where, pl_json_type_name(root));
    PL_TRY(take_sampling(&d->sampling, root, where, err));
    const pl_json *thinking = pl_json_get_set(root, "thinking");
    if (thinking && !pl_json_is_bool(thinking))
        return pl_fail_param(err, PL_EFORMAT, "thinking", "%s: thinking: expected true or false, found %s", where,
                             pl_json_type_name(thinking));
    if (thinking)
        d->thinking = pl_json_is(thinking, PL_JSON_TRUE);
    int64_t id;
    if (pl_json_i64(pl_json_get(root, "eos_token_id"), 0, INT32_MAX, &id))
        *eos = (int32_t)id;
    return PL_OK;
}

pl_status pl_defaults_parse(pl_defaults *d, const char *json, size_t len, const char *where, int32_t *eos,
                            pl_error *err)
{
    pl_defaults_unset(d);
    pl_json_doc *doc;
    pl_error inner;
    pl_status status = pl_json_parse(json, len, NULL, &doc, &inner);
    if (status != PL_OK)
        return pl_fail_at(err, status, inner.offset, "%s: %s", where, inner.message);
    status = take_fields(d, pl_json_root(doc), where, eos, err);
    pl_json_free(doc);
    return status;
}

pl_status pl_defaults_from_dir(pl_defaults *d, const char *dir, int32_t *eos, pl_error *err)
{
    pl_defaults_unset(d);
    char *path = pl_path_join(dir, "generation_config.json");
    if (!path)
        return pl_fail(err, PL_ENOMEM, "no memory for a path");
    pl_buf text;
    pl_buf_init(&text, PL_GENERATION_CONFIG_MAX, "generation_config.json");
    pl_status status = pl_file_read(&text, path, err);
    if (status == PL_OK)
        status = pl_defaults_parse(d, text.data ? text.data : "", text.len, path, eos, err);
    else if (status == PL_ENOTFOUND)
        status = PL_OK;
    pl_buf_free(&text);
    free(path);
    return status;
}
