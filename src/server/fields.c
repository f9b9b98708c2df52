/* The request fields that chat and text completions share. docs/api.md lists every one. */
#include "server/call.h"

#include "base/num.h"
#include "lanes/request.h"

#include <string.h>

enum { BIAS_KEY_MAX = 11 /* digits of an id */ };

static pl_status wrong_type(const char *name, const char *expected, const pl_json *found, pl_error *err)
{
    return pl_fail_param(err, PL_EINVAL, name, "%s: expected %s, found %s", name, expected, pl_json_type_name(found));
}

pl_status pl__field_bool(const pl_json *root, const char *name, bool *value, bool *found, pl_error *err)
{
    const pl_json *field = pl_json_get_set(root, name);
    *found = field != NULL;
    if (!field)
        return PL_OK;
    if (!pl_json_is_bool(field))
        return wrong_type(name, "true or false", field, err);
    *value = pl_json_is(field, PL_JSON_TRUE);
    return PL_OK;
}

/* 3.0 is a whole number too, as in JSON Schema: some clients know no other numbers. Up to 2^53, where each is exact. */
static bool whole(const pl_json *field, int64_t min, int64_t max, int64_t *value)
{
    static const double exact = 9007199254740992.0;
    double real;
    if (!pl_json_is(field, PL_JSON_REAL) || !pl_json_f64(field, -exact, exact, &real))
        return false;
    int64_t v = (int64_t)real;
    if ((double)v != real || v < min || v > max)
        return false;
    *value = v;
    return true;
}

pl_status pl__field_int(const pl_json *root, const char *name, int64_t min, int64_t max, int64_t *value, bool *found,
                        pl_error *err)
{
    const pl_json *field = pl_json_get_set(root, name);
    *found = field != NULL;
    if (!field || pl_json_i64(field, min, max, value) || whole(field, min, max, value))
        return PL_OK;
    size_t len;
    const char *text = pl_json_string(field, &len);
    if (pl_json_is(field, PL_JSON_INT) || pl_json_is(field, PL_JSON_REAL))
        return pl_fail_param(err, PL_EINVAL, name, "%s: expected a whole number from %lld to %lld, found %.*s", name,
                             (long long)min, (long long)max, (int)(len < 40 ? len : 40), text);
    return wrong_type(name, "a whole number", field, err);
}

pl_status pl__field_real(const pl_json *root, const char *name, double min, double max, double *value, bool *found,
                         pl_error *err)
{
    const pl_json *field = pl_json_get_set(root, name);
    *found = field != NULL;
    if (!field || pl_json_f64(field, min, max, value))
        return PL_OK;
    size_t len;
    const char *text = pl_json_string(field, &len);
    if (pl_json_is(field, PL_JSON_INT) || pl_json_is(field, PL_JSON_REAL))
        return pl_fail_param(err, PL_EINVAL, name, "%s: expected a number from %g to %g, found %.*s", name, min, max,
                             (int)(len < 40 ? len : 40), text);
    return wrong_type(name, "a number", field, err);
}

/* ---- sampling ---------------------------------------------------------------------------------------------------- */

typedef struct real_field {
    const char *name;
    double min, max;
    bool above; /* min itself is out of range */
    unsigned bit;
    size_t at; /* in pl_sampling */
} real_field;

static const real_field real_fields[] = {
    {"temperature", 0, 2, false, PL_HAS_TEMPERATURE, offsetof(pl_sampling, temperature)},
    {"top_p", 0, 1, true, PL_HAS_TOP_P, offsetof(pl_sampling, top_p)},
    {"min_p", 0, 1, false, PL_HAS_MIN_P, offsetof(pl_sampling, min_p)},
    {"repetition_penalty", 0, 100, true, PL_HAS_REPETITION, offsetof(pl_sampling, repetition_penalty)},
    {"frequency_penalty", -2, 2, false, PL_HAS_FREQUENCY, offsetof(pl_sampling, frequency_penalty)},
    {"presence_penalty", -2, 2, false, PL_HAS_PRESENCE, offsetof(pl_sampling, presence_penalty)},
};

static pl_status read_reals(const pl_json *root, pl_sampling_part *part, pl_error *err)
{
    for (size_t i = 0; i < sizeof real_fields / sizeof *real_fields; i++) {
        const real_field *f = &real_fields[i];
        double value;
        bool found;
        PL_TRY(pl__field_real(root, f->name, f->min, f->max, &value, &found, err));
        if (!found)
            continue;
        float narrow = (float)value;
        if (f->above && narrow <= (float)f->min)
            return pl_fail_param(err, PL_EINVAL, f->name, "%s: expected more than %g", f->name, f->min);
        memcpy((char *)&part->value + f->at, &narrow, sizeof narrow);
        part->has |= f->bit;
    }
    return PL_OK;
}

static pl_status read_bias(const pl_json *root, const pl_call_env *env, pl_spec *spec, pl_error *err)
{
    const pl_json *field = pl_json_get_set(root, "logit_bias");
    if (!field)
        return PL_OK;
    if (!pl_json_is(field, PL_JSON_OBJECT))
        return wrong_type("logit_bias", "an object of token ids", field, err);
    for (pl_json_iter it = {0}; pl_json_each(field, &it);) {
        size_t len;
        const char *key = pl_json_string(it.key, &len);
        int64_t id;
        double add;
        bool plain =
            len <= BIAS_KEY_MAX && strlen(key) == len && (len == 1 || key[0] != '0'); /* "05" would be 5 twice */
        if (!plain || !pl_parse_i64(key, 0, env->vocab - 1, &id))
            return pl_fail_param(err, PL_EINVAL, "logit_bias", "logit_bias: \"%.*s\" is no token id from 0 to %d",
                                 (int)(len < 40 ? len : 40), key, env->vocab - 1);
        if (!pl_json_f64(it.value, -100, 100, &add))
            return pl_fail_param(err, PL_EINVAL, "logit_bias",
                                 "logit_bias: expected a number from -100 to 100 for \"%s\"", key);
        PL_TRY(pl_spec_add_bias(spec, (int32_t)id, (float)add, err));
    }
    return PL_OK;
}

static pl_status read_sampling(const pl_json *root, const pl_call_env *env, pl_spec *spec, pl_error *err)
{
    pl_sampling_part *part = &spec->sampling;
    int64_t value;
    bool found;
    PL_TRY(read_reals(root, part, err));
    PL_TRY(pl__field_int(root, "top_k", -1, INT32_MAX, &value, &found, err));
    if (found) {
        part->value.top_k = value < 0 ? 0 : (int)value;
        part->has |= PL_HAS_TOP_K;
    }
    PL_TRY(pl__field_int(root, "seed", INT64_MIN, INT64_MAX, &value, &found, err));
    if (found) {
        part->value.seed = (uint64_t)value;
        part->has |= PL_HAS_SEED;
    }
    return read_bias(root, env, spec, err);
}

/* ---- length, stops, switches ------------------------------------------------------------------------------------- */

static pl_status read_length(const pl_json *root, pl_spec *spec, pl_error *err)
{
    int64_t value;
    bool found;
    PL_TRY(pl__field_int(root, "max_tokens", 1, INT64_MAX, &value, &found, err));
    if (found)
        spec->max_tokens = value;
    /* The newer name wins where both are given. */
    PL_TRY(pl__field_int(root, "max_completion_tokens", 1, INT64_MAX, &value, &found, err));
    if (found)
        spec->max_tokens = value;
    return PL_OK;
}

static pl_status add_stop(const pl_json *value, pl_spec *spec, pl_error *err)
{
    if (!pl_json_is(value, PL_JSON_STRING))
        return wrong_type("stop", "a string or a list of strings", value, err);
    size_t len;
    const char *bytes = pl_json_string(value, &len);
    return pl_spec_add_stop(spec, bytes, len, err);
}

static pl_status read_stops(const pl_json *root, pl_spec *spec, pl_error *err)
{
    bool found;
    PL_TRY(pl__field_bool(root, "include_stop_str_in_output", &spec->keep_stop, &found, err));
    const pl_json *field = pl_json_get_set(root, "stop");
    if (!field)
        return PL_OK;
    if (!pl_json_is(field, PL_JSON_ARRAY))
        return add_stop(field, spec, err);
    for (pl_json_iter it = {0}; pl_json_each(field, &it);)
        PL_TRY(add_stop(it.value, spec, err));
    return PL_OK;
}

/* "background", "foreground" or "normal"; or a number as other servers take it, above 0 for later. */
static pl_status read_priority(const pl_json *root, pl_spec *spec, pl_error *err)
{
    const pl_json *field = pl_json_get_set(root, "priority");
    int64_t number;
    if (!field || pl_json_equals(field, "foreground") || pl_json_equals(field, "normal"))
        return PL_OK;
    if (pl_json_i64(field, INT32_MIN, INT32_MAX, &number))
        spec->background = number > 0;
    else if (pl_json_equals(field, "background"))
        spec->background = true;
    else
        return pl_fail_param(err, PL_EINVAL, "priority",
                             "priority: expected \"foreground\", \"background\" or a number");
    return PL_OK;
}

/* ---- refused by name --------------------------------------------------------------------------------------------- */

/* Fields of other servers that would change the reply. Allowed where they ask for nothing: null, false, 0, "", [], {},
 * or the number at which they do nothing. */
static const struct {
    const char *name;
    double neutral;
} refused[] = {
    {"min_tokens", 0},
    {"stop_token_ids", 0},
    {"bad_words", 0},
    {"allowed_token_ids", 0},
    {"guided_json", 0},
    {"guided_regex", 0},
    {"guided_choice", 0},
    {"guided_grammar", 0},
    {"structured_outputs", 0},
    {"grammar", 0},
    {"json_schema", 0},
    {"regex", 0},
    {"use_beam_search", 0},
    {"best_of", 1},
    {"length_penalty", 1},
    {"typical_p", 1},
    {"tfs_z", 1},
    {"mirostat", 0},
    {"mirostat_mode", 0},
    {"dry_multiplier", 0},
    {"xtc_probability", 0},
    {"repeat_penalty", 1},
    {"top_a", 0},
    {"top_n_sigma", -1},
    {"dynatemp_range", 0},
    {"logits_processors", 0},
    {"truncate_prompt_tokens", 0},
    {"functions", 0},
};

static bool asks_nothing(const pl_json *field, double neutral)
{
    double number;
    size_t len;
    if (pl_json_is(field, PL_JSON_FALSE))
        return true;
    if (pl_json_f64(field, -1e300, 1e300, &number))
        return number == 0 || number == neutral;
    if (pl_json_is(field, PL_JSON_STRING))
        return pl_json_string(field, &len) && len == 0;
    return (pl_json_is(field, PL_JSON_ARRAY) || pl_json_is(field, PL_JSON_OBJECT)) && pl_json_count(field) == 0;
}

static pl_status refuse_others(const pl_json *root, pl_error *err)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const pl_json *field = pl_json_get_set(root, refused[i].name);
        if (field && !asks_nothing(field, refused[i].neutral))
            return pl__call_unsupported(refused[i].name, "it would change the reply", err);
    }
    return PL_OK;
}

pl_status pl__fields_read(const pl_json *root, const pl_call_env *env, pl_spec *spec, pl_error *err)
{
    bool found;
    PL_TRY(read_sampling(root, env, spec, err));
    PL_TRY(read_length(root, spec, err));
    PL_TRY(read_stops(root, spec, err));
    PL_TRY(pl__field_bool(root, "ignore_eos", &spec->ignore_eos, &found, err));
    PL_TRY(pl__field_bool(root, "draft", &spec->draft, &found, err));
    PL_TRY(read_priority(root, spec, err));
    return refuse_others(root, err);
}

pl_status pl__fields_delivery(const pl_json *root, pl_call *call, pl_error *err)
{
    bool found;
    int64_t n = 1;
    PL_TRY(pl__field_int(root, "n", 1, PL_CALL_CHOICES_MAX, &n, &found, err));
    call->n = (size_t)n;
    PL_TRY(pl__field_bool(root, "stream", &call->stream, &found, err));
    const pl_json *options = pl_json_get_set(root, "stream_options");
    if (!options)
        return PL_OK;
    if (!pl_json_is(options, PL_JSON_OBJECT))
        return wrong_type("stream_options", "an object", options, err);
    if (!call->stream)
        return pl_fail_param(err, PL_EINVAL, "stream_options", "stream_options: only allowed when stream is true");
    pl_status status = pl__field_bool(options, "include_usage", &call->include_usage, &found, err);
    return status == PL_OK ? PL_OK
                           : pl_fail_param(err, PL_EINVAL, "stream_options.include_usage",
                                           "stream_options.include_usage: expected true or false");
}
