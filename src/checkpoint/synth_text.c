#include "checkpoint/synth_text.h"

#include <jansson.h>
#include <stdlib.h>

/* The text of root, with 15 digits a number where that loses nothing (1e-06, not 9.9999999999999995e-07), else 17. */
static char *dump(const json_t *root)
{
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    json_t *back = text ? json_loads(text, 0, NULL) : NULL;
    bool same = back && json_equal(root, back);
    json_decref(back);
    if (same)
        return text;
    free(text);
    return json_dumps(root, JSON_INDENT(2));
}

pl_status pl__synth_config(const char *json, size_t len, int64_t classes, pl_buf *out, pl_error *err)
{
    json_t *root = json_loadb(json, len, JSON_REJECT_DUPLICATES, NULL);
    json_t *text_config = json_object_get(root, "text_config");
    char *text = NULL;
    if (json_is_object(text_config) &&
        (classes < 0 || json_object_set_new(text_config, "engram_compressed_vocab_size", json_integer(classes)) == 0))
        text = dump(root);
    json_decref(root);
    if (!text)
        return pl_fail(err, PL_ENOMEM, "no memory for the config");
    pl_status status = pl_buf_adds(out, text, err);
    free(text);
    return status == PL_OK ? pl_buf_addc(out, '\n', err) : status;
}

static pl_status add_id(pl_buf *out, const char *key, int id, pl_error *err)
{
    return id < 0 ? PL_OK : pl_buf_addf(out, err, "  \"%s\": %d,\n", key, id);
}

pl_status pl__synth_generation_config(const pl_config *config, pl_buf *out, pl_error *err)
{
    PL_TRY(pl_buf_adds(out, "{\n  \"_from_model_config\": true,\n", err));
    PL_TRY(add_id(out, "bos_token_id", config->bos, err));
    PL_TRY(add_id(out, "eos_token_id", config->eos, err));
    PL_TRY(add_id(out, "pad_token_id", config->pad, err));
    return pl_buf_adds(out, "  \"do_sample\": true,\n  \"temperature\": 1.0,\n  \"top_p\": 1.0\n}\n", err);
}

static pl_status add_token(pl_buf *out, const char *key, const char *content, pl_error *err)
{
    return pl_buf_addf(
        out, err,
        "  \"%s\": {\n    \"__type\": \"AddedToken\",\n    \"content\": \"%s\",\n    \"lstrip\": false,\n"
        "    \"normalized\": true,\n    \"rstrip\": false,\n    \"single_word\": false\n  },\n",
        key, content);
}

pl_status pl__synth_tokenizer_config(const pl_config *config, pl_buf *out, pl_error *err)
{
    PL_TRY(pl_buf_adds(out, "{\n  \"add_bos_token\": false,\n  \"add_eos_token\": false,\n", err));
    PL_TRY(add_token(out, "bos_token", "<｜begin▁of▁sentence｜>", err));
    PL_TRY(add_token(out, "eos_token", "<｜end▁of▁sentence｜>", err));
    PL_TRY(add_token(out, "pad_token", "<｜▁pad▁｜>", err));
    return pl_buf_addf(out, err,
                       "  \"unk_token\": null,\n  \"clean_up_tokenization_spaces\": false,\n  \"legacy\": true,\n"
                       "  \"model_max_length\": %d,\n  \"tokenizer_class\": \"PreTrainedTokenizerFast\"\n}\n",
                       config->max_positions);
}
